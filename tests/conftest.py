"""Settings of the whole suite: one thread, and compiled code that is never out of date."""

import ast
import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "loclin"


def compiled_sources() -> list[Path]:
    """Files with compiled functions, and what of the package they import, directly or not."""
    sources = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    found: set[Path] = set()
    waiting = [path for path, text in sources.items() if "\n@jit" in text or "\n@overload" in text]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(sources[path])):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("loclin."):
                imported = PACKAGE.parent / (node.module.replace(".", "/") + ".py")
                waiting += [imported] if imported in sources else []
    return sorted(found)


# Numba notices a change in the file of a compiled function, not in the files of the functions that
# it calls; a cache folder named after all that is compiled cannot be stale.
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in compiled_sources())).hexdigest()[
    :16
]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / f"numba-{_DIGEST}"))

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

# The first example of a property may have to wait for the compiler.
settings.register_profile("loclin", deadline=None)
settings.load_profile("loclin")


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    with threadpool_limits(limits=1):
        yield


def pytest_collection_modifyitems(items):
    """Leave out the tests that need the papers' data where it is not at hand."""
    if not os.environ.get("LOCLIN_DATA"):
        skip = pytest.mark.skip(reason="set LOCLIN_DATA to the folder of the papers' data sets")
        for item in items:
            if "data" in item.keywords:
                item.add_marker(skip)
