"""Files of models taken apart and put together again, to forge them: for tests and fuzzing.

file = read(path)
file.tree["model"]["state"].append(["p", -1])
file.arrays["0.npy"] = file.arrays["0.npy"][:1]
write(path, file)
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np

TREE = "loclin.json"


@dataclass
class File:
    """A file of `loclin.io.save` in parts: the tree, and the arrays (or their bytes) by name."""

    tree: dict[str, Any]
    arrays: dict[str, np.ndarray | bytes] = field(default_factory=dict)


def of(model: Any, **arrays: np.ndarray | bytes) -> File:
    """Return a file whose tree has that node for a model."""
    return File({"format": 1, "loclin": "1.0", "scikit-learn": "1.9", "model": model}, arrays)


def read(path: Path) -> File:
    """Take a file apart."""
    with ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(contents.pop(TREE))
    return File(tree, {name: np.load(io.BytesIO(content)) for name, content in contents.items()})


def write(path: Path, file: File, method: int | None = None, letters: bytes = b"") -> Path:
    """Put a file together, its tree packed by that method; `letters` replace the tree's."""
    letters = letters or json.dumps(file.tree).encode()
    if method is None:
        method = ZIP_DEFLATED if len(letters) <= 2**20 else ZIP_STORED  # as `save` does
    with ZipFile(path, "w", ZIP_STORED) as archive:
        for name, array in file.arrays.items():
            archive.writestr(name, array if isinstance(array, bytes) else npy(array))
        archive.writestr(TREE, letters, method)
    return path


def npy(array: np.ndarray) -> bytes:
    """Return an array as the bytes of a .npy file."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()


def header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the first bytes of a .npy file that says it has that array."""
    content = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(content, about)
    return content.getvalue()
