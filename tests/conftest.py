"""Settings of the whole suite: one thread, and compiled code that is never out of date."""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Numba notices a change in the file of a compiled function, not in the files of the functions that
# it calls; a cache folder named after all the sources cannot be stale.
_SOURCES = sorted((ROOT / "src" / "loclin").rglob("*.py"))
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:16]
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
