"""Results in a folder, shared by processes: a stopped run loses none and does none twice."""

from __future__ import annotations

import fcntl
import json
import platform
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.choices import Cache, Notes
from loclin import __version__

TAKEN_OVER = "taken over from"  # a file of results of a paper's own module
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib")


def made_with() -> dict[str, Any]:
    """Versions of what computes a result, and its threads."""
    own = {"python": platform.python_version(), "loclin": __version__, "threads": 1}
    return own | {name: version(name) for name in PACKAGES}


def plain(value: Any) -> Any:
    """Return the value as JSON gives it back."""
    return json.loads(json.dumps(value))


def _as_name(key: str) -> str:
    return re.sub(r"\W+", "_", key)


class Folder(Cache):
    """Results by key, in a file for each data set; used again where their settings are the same.

    A result is stored whole or not at all, in a line of its own. While it is computed its key is
    locked, so that another process waits for it instead of computing it too; a lock dies with its
    process. A choice notes fold by fold what it has found, the fits after it seed by seed. A key
    is "set | ...", "set/split | ..." or "table 1 | set | ...".
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stored, self.computed, self.unfinished = {}, 0, {}
        for file in sorted(path.glob("*.json")):
            self.stored |= json.loads(file.read_text())

    def __call__(self, key: str, settings: dict[str, Any], compute: Callable[[], Any]) -> Any:
        """Return the stored result, or compute and store it."""
        settings = plain(settings)
        with self._locked(key):
            found = self._read(key).get(key)
            if not found or found["settings"] != settings:
                processor, wall = time.process_time(), time.perf_counter()
                result = compute()
                seconds = [time.process_time() - processor, time.perf_counter() - wall]
                notes = self.unfinished.pop(key, None)
                if notes:
                    seconds = [a + b for a, b in zip(seconds, notes.before, strict=True)]
                found = self.put(key, settings, result, seconds)
                if notes:
                    notes.path.unlink()
                self.computed += 1
        self.stored[key] = found
        return found["result"]

    def notes(self, key: str, settings: dict[str, Any]) -> Notes:
        """Return where the result of this key notes what it has found, until it is stored."""
        about = {"settings": plain(settings), "made with": made_with()}
        path = self.path / ".unfinished" / f"{_as_name(key)}.jsonl"
        self.unfinished[key] = Notes(path, about)
        return self.unfinished[key]

    def put(self, key: str, settings: Any, result: Any, seconds: Any = None,
            made: Any = None) -> dict[str, Any]:  # fmt: skip
        """Store a result; `seconds` are those of the processor and of the clock."""
        entry = plain({"settings": settings, "made with": made or made_with(), "seconds": seconds,
                       "result": result})  # fmt: skip
        file = self._file(key)
        with self._locked(file.name):
            entries = self._read(key) | {key: entry}
            lines = (f"{json.dumps(k)}: {json.dumps(e)}" for k, e in sorted(entries.items()))
            unfinished = file.with_suffix(".tmp")
            unfinished.write_text("{\n" + ",\n".join(lines) + "\n}\n")
            unfinished.replace(file)
        self.stored[key] = entry
        return entry

    def take(self, file: Path) -> int:
        """Take over the results of a JSON file of `Cache`, where there are none yet."""
        new = {k: v for k, v in json.loads(file.read_text()).items() if k not in self.stored}
        for key, entry in new.items():
            made = {TAKEN_OVER: file.name} | made_with()
            self.put(key, entry["settings"], entry["result"], made=made)
        return len(new)

    def _file(self, key: str) -> Path:
        first, *rest = key.split(" | ")
        data = rest[0] if rest and first.startswith(("table", "figure")) else first
        return self.path / f"{_as_name(data.split('/')[0])}.json"

    def _read(self, key: str) -> dict[str, Any]:
        file = self._file(key)
        return json.loads(file.read_text()) if file.exists() else {}

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        folder = self.path / ".locks"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _as_name(name)).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
