"""Running the cases, and judging how they end."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import IO, Any

import numpy as np

import tests.robustness.hostile
from loclin.cli import main as loclin
from tests.robustness.hostile import arrays, runs, texts
from tests.robustness.hostile.case import CSV, Case, X, Y

SECONDS, MEGABYTES = 30.0, 1000.0
CLOCK = 5 * SECONDS  # when a case is killed
SAID = re.compile(r"^(note: |wrote |saved )|[0-9] training rows, ")  # no fault
MODELS = Path(tempfile.gettempdir()) / "loclin-hostile-models"
FAULTS = ("traceback", "signal", "over time", "over memory", "status", "lines")


@dataclass(frozen=True)
class Outcome:
    """How a case ended: status (below 0: a signal), lines printed, seconds, MB, what is wrong."""

    name: str
    status: int
    out_lines: int
    err_lines: int
    seconds: float
    megabytes: float
    faults: tuple[str, ...]
    last_words: str


def cases() -> list[Case]:
    """Return all cases, each with a name of its own."""
    makers = (
        texts.packed, texts.bombs, texts.tables, texts.encodings, texts.svmlight,
        arrays.npz_bombs, arrays.npz_arrays, arrays.npz_csr, arrays.npz_files, arrays.parquet,
        runs.names, runs.options, runs.outputs, runs.streams, runs.values,
    )  # fmt: skip
    return [case for make in makers for case in make()]


def run_case(case: Case, folder: Path, command: str = "compare") -> Outcome:
    """Make the file of a case in an empty folder, and run the command line on it."""
    words = through(command, case.make(folder), folder)
    with (folder / ".out").open("w+b") as out, (folder / ".err").open("w+b") as err:
        start = _started if case.fresh else _forked
        number = start(case, words, folder, out, err)
        timer = Timer(CLOCK, os.kill, (number, signal.SIGKILL))
        timer.start()
        _, waited, usage = os.wait4(number, 0)
        late = not timer.is_alive()
        timer.cancel()
        timer.join()
        printed, told = _content(out), _content(err)
    status = os.waitstatus_to_exitcode(waited)
    seconds = usage.ru_utime + usage.ru_stime
    return _judge(case, status, printed, told, seconds, usage.ru_maxrss, late)


def through(command: str, words: list[str], folder: Path) -> list[str]:
    """Return the words that give another command the file of a comparison."""
    data = words[-1] if "--" in words else words[1] if len(words) > 1 else "digits"
    if command == "compare":
        return words
    if command == "fit":
        return ["fit", "--save", "m.loclin", "--model", "l3m", "--", data]
    arrays = data.lower().removesuffix(".gz").endswith((".npz", ".svm", ".libsvm", ".txt"))
    model = MODELS / ("arrays.loclin" if arrays else "table.loclin")
    return [command, "--", str(model), data]


def _save_models() -> None:
    """Save the models that rows are predicted by."""
    MODELS.mkdir(exist_ok=True)
    (MODELS / "table.csv").write_bytes(CSV)
    np.savez(MODELS / "arrays.npz", X=X, y=Y)
    for name in ("table.csv", "arrays.npz"):
        file = MODELS / name
        words = ["fit", str(file), "--model", "l3m", "--save", str(file.with_suffix(".loclin"))]
        subprocess.run(
            [sys.executable, "-m", "loclin.cli", *words], check=True, capture_output=True
        )


def _started(case: Case, words: list[str], folder: Path, out: IO[bytes], err: IO[bytes]) -> int:
    """Run the command in a new Python, and return the number of its process."""
    with case.stream(out) as stdout:
        process = subprocess.Popen(
            [sys.executable, "-m", "loclin.cli", *words],
            cwd=folder, env=os.environ | case.environment, stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=err, preexec_fn=case.prepare,
        )  # fmt: skip
    process.returncode = 0  # it is waited for by its number
    return process.pid


def _forked(case: Case, words: list[str], folder: Path, out: IO[bytes], err: IO[bytes]) -> int:
    """Run the command in a fork of this process, and return its number."""
    sys.stdout.flush()
    number = os.fork()
    if number:
        return number
    status = 1
    try:
        os.chdir(folder)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.argv = ["loclin", *words]
        case.prepare()
        loclin()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _judge(
    case: Case, status: int, printed: str, told: str, seconds: float, kilobytes: int, late: bool
) -> Outcome:
    """Say what is wrong with how a case ended."""
    megabytes = kilobytes / (1e6 if sys.platform == "darwin" else 1e3)
    err_lines = sum(not SAID.search(line) for line in told.splitlines())
    wrong = {
        "traceback": "Traceback" in told + printed,
        "signal": status < 0 and not late,
        "over time": late or seconds > SECONDS,
        "over memory": megabytes > MEGABYTES,
        "status": status not in case.statuses and status >= 0,
        "lines": err_lines > 1 or (status == 2 and err_lines != 1),
    }
    faults = tuple(name for name in FAULTS if wrong[name])
    words = (told or printed).strip().splitlines()[-1:] or [""]
    out_lines = printed.count("\n")
    return Outcome(case.name, status, out_lines, err_lines, seconds, megabytes, faults, words[0])


def _load() -> None:
    """Load what every case needs, so that forks have it."""
    import pandas  # noqa: F401

    import loclin.cli._app
    import loclin.cli._comparing
    import loclin.cli._served  # noqa: F401


def run_in_folder(case: Case, command: str = "compare") -> Outcome:
    """Run a case in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        try:
            return run_case(case, Path(folder), command)
        finally:
            Path(folder).chmod(0o700)


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Run the cases, print how they end and return it."""
    args = _parser().parse_args(argv)
    os.environ |= {"OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    _load()
    if args.through in ("predict", "explain"):
        _save_models()
    chosen = [case for case in cases() if args.only in case.name][: args.cases]
    if not chosen:
        raise SystemExit(f"no case has '{args.only}' in its name")
    width = max(len(case.name) for case in chosen)
    print(f"{'case':{width}}  status  out  err      s    MB")
    outcomes = []
    start = perf_counter()
    for case in chosen:
        found = run_in_folder(case, args.through)
        outcomes.append(found)
        said = f"  {found.last_words[: args.words]!r}" if args.words else ""
        print(
            f"{found.name:{width}}  {found.status:6d}{found.out_lines:5d}{found.err_lines:5d}"
            f"{found.seconds:7.1f}{found.megabytes:6.0f}  {', '.join(found.faults).upper()}{said}",
            flush=True,
        )
    print(f"{len(outcomes)} cases in {perf_counter() - start:.0f} s by the clock")
    counts = {fault: sum(fault in found.faults for found in outcomes) for fault in FAULTS}
    results: dict[str, Any] = {"cases": len(outcomes), **counts}
    print(", ".join(f"{name} {count}" for name, count in results.items()))
    slowest = max(outcomes, key=lambda found: found.seconds)
    largest = max(outcomes, key=lambda found: found.megabytes)
    print(f"slowest: {slowest.name}, {slowest.seconds:.1f} s; "
          f"largest: {largest.name}, {largest.megabytes:.0f} MB")  # fmt: skip
    if args.json:
        everything = results | {"outcomes": [asdict(found) for found in outcomes]}
        args.json.write_text(json.dumps(everything, indent=2) + "\n")
    return results


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.robustness.hostile",
        description=tests.robustness.hostile.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", default="", metavar="NAME", help="cases with this in their name")
    commands = ["compare", "fit", "predict", "explain"]
    add("--through", default="compare", choices=commands, help="the command to give the files to")
    add("--cases", type=int, metavar="N", help="the first N of them")
    add("--words", type=int, default=0, metavar="N", help="show so much of each last line")
    add("--json", type=Path, metavar="FILE", help="write the outcomes to this file")
    return parser
