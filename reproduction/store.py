"""Results in a folder, shared by processes: a stopped run loses none and does none twice."""

from __future__ import annotations

import fcntl
import json
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from loclin import __version__

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


class Notes:
    """What the tasks of an unfinished result have given, so that a killed run goes on from there.

    A file of lines: first what the results depend on (where that has changed, all begins anew),
    then task, result and seconds of the processor and the clock. `before` are the seconds of all
    that the file had.
    """

    def __init__(self, path: Path, about: Any) -> None:
        self.path, self.found, self.before = path, {}, [0.0, 0.0]
        first = json.dumps(about)
        lines = path.read_text().split("\n")[:-1] if path.exists() else []  # a kill may cut a line
        lines = lines if lines[:1] == [first] else [first]
        for task, result, seconds in map(json.loads, lines[1:]):
            self.found[task] = result
            self.before = [a + b for a, b in zip(self.before, seconds, strict=True)]
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_suffix(".tmp")
        whole.write_text("\n".join([*lines, ""]))
        whole.replace(path)

    def results(self, tasks: Iterable[Any], compute: Callable[[Any], Any]) -> list[Any]:
        """Return the results of the tasks; compute those that are not noted yet."""
        names = {json.dumps(task): task for task in tasks}
        for name, task in names.items():
            if name in self.found:
                continue
            start = time.process_time(), time.perf_counter()
            result = compute(task)
            end = time.process_time(), time.perf_counter()
            self.found[name] = result
            with self.path.open("a") as file:
                seconds = [b - a for a, b in zip(start, end, strict=True)]
                file.write(json.dumps([name, result, seconds]) + "\n")
        return [self.found[name] for name in names]


class Cache:
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

    def each(self, key: str, settings: dict[str, Any], tasks: Iterable[Any],
             compute: Callable[[Any], Any]) -> list[Any]:  # fmt: skip
        """Return the stored results of the tasks, or compute them one by one."""
        return self(key, settings, lambda: self.notes(key, settings).results(tasks, compute))

    def put(self, key: str, settings: Any, result: Any, seconds: Any = None) -> dict[str, Any]:
        """Store a result; `seconds` are those of the processor and of the clock."""
        entry = plain({"settings": settings, "made with": made_with(), "seconds": seconds,
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
