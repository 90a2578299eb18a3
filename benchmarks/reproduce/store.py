"""Results in a folder, a file for each: processes share them, and a stopped run loses none."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.choices import Cache
from loclin import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib")


def made_with() -> dict[str, Any]:
    """Versions of what computes a result, and its threads."""
    own = {"python": platform.python_version(), "loclin": __version__, "threads": 1}
    return own | {name: version(name) for name in PACKAGES}


def plain(value: Any) -> Any:
    """Return the value as JSON gives it back."""
    return json.loads(json.dumps(value))


class Folder(Cache):
    """Results by key, each in a file of its own; used again where their settings are the same.

    A file appears whole or not at all. While a result is computed its key is locked, so that
    another process waits for it instead of computing it too; a lock dies with its process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        entries = (json.loads(file.read_text()) for file in sorted(path.glob("*.json")))
        self.stored = {entry["key"]: entry for entry in entries}

    def __call__(self, key: str, settings: dict[str, Any], compute: Callable[[], Any]) -> Any:
        """Return the stored result, or compute and store it."""
        settings = plain(settings)
        with self._locked(key):
            found = self._read(key)
            if not found or found["settings"] != settings:
                wall, processor = time.perf_counter(), time.process_time()
                result = compute()
                seconds = time.process_time() - processor, time.perf_counter() - wall
                found = self.put(key, settings, result, seconds)
        self.stored[key] = found
        return found["result"]

    def put(self, key: str, settings: Any, result: Any, seconds: Any = None) -> dict[str, Any]:
        """Store a result; `seconds` are those of the processor and of the clock."""
        entry = plain({"key": key, "settings": settings, "made with": made_with(),
                       "seconds": seconds, "result": result})  # fmt: skip
        self.path.mkdir(parents=True, exist_ok=True)
        unfinished = self._file(key).with_suffix(f".{os.getpid()}.tmp")
        unfinished.write_text(json.dumps(entry, indent=1) + "\n")
        unfinished.replace(self._file(key))
        self.stored[key] = entry
        return entry

    def take(self, file: Path) -> int:
        """Take over the results of a JSON file of `Cache`, where there are none yet."""
        new = {k: v for k, v in json.loads(file.read_text()).items() if k not in self.stored}
        for key, entry in new.items():
            self.put(key, entry["settings"], entry["result"])
        return len(new)

    def _file(self, key: str) -> Path:
        return self.path / (re.sub(r"[^\w.,+=()-]+", "_", key) + ".json")

    def _read(self, key: str) -> dict[str, Any] | None:
        file = self._file(key)
        return json.loads(file.read_text()) if file.exists() else None

    @contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        folder = self.path / ".locks"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / self._file(key).stem).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
