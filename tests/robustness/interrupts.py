"""Interrupt fits, streams and predictions of every class at random moments, in child processes.

``python -m tests.robustness.interrupts --times 200`` (``--by sigint``, ``--twice``, ``--n-jobs 2``,
``--only ML3``)

A row of the table is a class, a call and a layout, and a process of its own. The call is timed
once, when everything is compiled; then each interrupt comes at a random moment of it, by a timer
(SIGALRM) or as Ctrl-C does (SIGINT, sent from a thread). Promised is, each time:

- the process lives;
- the call raises KeyboardInterrupt, or was over before the signal;
- the estimator is what it was, bit for bit, wherever it raised; so are the limits on threads, and
  what becomes of warnings and overflows;
- afterwards the call gives what it gives without an interrupt.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_info

import loclin
from loclin.codings import LocalCoordinateCoding, OrthogonalCoding

SHORT = {"max_iter": 6, "random_state": 0}
KINDS: dict[str, Any] = {
    "ML3": loclin.ML3Classifier(4, **SHORT),
    "LL-SVM": loclin.LLSVMClassifier(**SHORT),
    "LL-SVM, dual": loclin.LLSVMClassifier(OrthogonalCoding(4), solver="dual_cd", **SHORT),
    "SAPL": loclin.SAPLClassifier(8, **SHORT),
    "L3M": loclin.L3MClassifier(2, n_restarts=1, **SHORT),
    "L3M, online": loclin.L3MClassifier(2, solver="online", **SHORT),
    "US-SVM": loclin.USSVMClassifier(6, **SHORT),
    "CSVM": loclin.CSVMClassifier(4, **SHORT),
    "LDKL": loclin.LDKLClassifier(2, **SHORT),
    "L-MKL": loclin.LMKLClassifier(3, **SHORT),
    "L-MKL, kernels": loclin.KernelLMKLClassifier(["linear", "rbf"], **SHORT),
    "SVM-KNN": loclin.SVMKNNClassifier(),
    "Ensemble": loclin.LocallyLinearEnsemble(
        [loclin.ML3Classifier(4, max_iter=2), loclin.SAPLClassifier(8, max_iter=2)],
        n_folds=2, random_state=0,
    ),
    "LCC": LocalCoordinateCoding(8, random_state=0),
}  # fmt: skip
CALLS = ("fit", "stream", "predict")
LAYOUTS: dict[str, Any] = {"dense": np.asarray, "sparse": sparse.csr_matrix}
N_ROWS = 150


def rows_of(layout: str) -> tuple[Any, Any]:
    """Return rows of three classes that bend."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 6))
    y = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]), [-0.5, 0.5])
    return LAYOUTS[layout](X), y


def digest(value: Any) -> str:
    """Return a hash of all that an object holds, bit for bit; what it shares is not told."""
    sums, open_now = hashlib.sha256(), set()

    def take(part: Any) -> None:
        sums.update(type(part).__name__.encode())
        if id(part) in open_now:
            return
        open_now.add(id(part))
        if isinstance(part, np.ndarray) and part.dtype != object:
            sums.update(repr((part.shape, part.dtype.str)).encode() + part.tobytes())
        elif isinstance(part, np.random.Generator):
            take(part.bit_generator.state)
        elif isinstance(part, np.random.RandomState):
            take(part.get_state(legacy=False))
        elif isinstance(part, dict):
            take(list(part.items()))
        elif isinstance(part, list | tuple | set | frozenset | np.ndarray):
            for one in part:
                take(one)
        elif hasattr(part, "__dict__") and not isinstance(part, type) and not callable(part):
            take({name: one for name, one in vars(part).items() if name != "_index"})
        else:
            sums.update(repr(part).encode())
        open_now.discard(id(part))

    take(value)
    return sums.hexdigest()


def calls_of(model: Any, call: str, X: Any, y: Any) -> Callable[[Any], Any]:
    """Return what is called on an estimator."""
    if call == "fit":
        return lambda one: one.fit(X, y)
    if call == "stream":
        return lambda one: one.partial_fit(X, y, classes=[0, 1, 2])
    names = ("predict", "predict_proba", "local_model", "transform")
    methods = [name for name in names if hasattr(model, name)]
    return lambda one: [getattr(one, name)(X) for name in methods]


def thread_limits() -> dict[str, int]:
    """Return the threads of BLAS and OpenMP, library by library."""
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}


class Interrupter:
    """Raises KeyboardInterrupt in the main thread, some time after it is armed, while it may.

    Parameters
    ----------
    by : {"alarm", "sigint"}
    twice : bool
        Whether a second signal follows at once, while the first one is on its way up.
    """

    def __init__(self, by: str, twice: bool, rng: random.Random) -> None:
        self.by, self.twice, self.rng = by, twice, rng
        self.armed, self.served, self.place = False, 0, ""
        signal.signal(signal.SIGALRM if by == "alarm" else signal.SIGINT, self._raise)

    def _raise(self, _: int, frame: Any) -> None:
        if not self.armed:
            return
        self.served += 1
        self.place = " < ".join(
            f"{Path(one.filename).name}:{one.lineno}"
            for one in reversed(traceback.extract_stack(frame)[-4:])
        )
        if self.twice and self.served == 1:
            self._send(self.rng.uniform(1e-6, 3e-4))
        raise KeyboardInterrupt

    def _send(self, seconds: float) -> None:
        if self.by == "alarm":
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
            return
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()

    def call(self, function: Callable[[], Any], seconds: float) -> str:
        """Call a function, with an interrupt after so many seconds; return how it ended."""
        ended, self.served = "over before", 0
        try:
            self._send(seconds)
            self.armed = True
            try:
                function()
                self.armed = False
                ended = f"lost in {self.place}" if self.served else "over before"
            except KeyboardInterrupt:
                ended = "interrupted"
                self.armed = False
            except BaseException as error:
                ended = f"raised {type(error).__name__}: {error}"
        except KeyboardInterrupt:  # the second one, or one on our own lines
            ended = "interrupted"
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        return ended


def run_child(name: str, call: str, layout: str, options: argparse.Namespace) -> dict[str, int]:
    """Interrupt a call of one class so many times; return how often it ended how."""
    warnings.simplefilter("ignore")
    X, y = rows_of(layout)
    start = clone(KINDS[name])
    if "n_jobs" in start.get_params():
        start.set_params(n_jobs=options.n_jobs)
    if not hasattr(type(start), "partial_fit") and call == "stream":
        return {}
    start = start.fit(X, y) if call != "stream" else start.partial_fit(X, y, classes=[0, 1, 2])
    function = calls_of(start, call, X, y)
    told: Any = function(deepcopy(start))  # compiles
    seconds = []
    for _ in range(3):
        before, reference = time.perf_counter(), deepcopy(start)
        told = function(reference)
        seconds.append(time.perf_counter() - before)
    expected = digest(reference if call != "predict" else told)
    rng = random.Random(f"{name} {call} {layout} {options.seed}")
    interrupter = Interrupter(options.by, options.twice, rng)
    limits, filters, errors = thread_limits(), list(warnings.filters), np.geterr()
    ends: Counter[str] = Counter()
    model = deepcopy(start)
    before = digest(model)
    while ends.total() < options.times:
        moment = rng.uniform(0, max(seconds))
        ended = interrupter.call(lambda model=model: function(model), moment)
        if ended != "over before" or call == "predict":
            ended = ended if digest(model) == before else f"changed: {ended}"
        if ended == "over before":
            model = deepcopy(start)
            ends[ended] += not options.only_hits
            continue
        ends[ended] += 1
        if ended != "interrupted":
            model = deepcopy(start)
    told = function(model)
    if digest(model if call != "predict" else told) != expected:
        ends["another result afterwards"] += 1
    now = thread_limits()
    if any(now[path] != limit for path, limit in limits.items()):
        ends[f"threads {limits} became {now}"] += 1
    if list(warnings.filters) != filters or np.geterr() != errors:
        ends["warnings or overflows are handled otherwise"] += 1
    return dict(ends)


def rows_of_table(options: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Return class, call and layout of each row."""
    return [
        (name, call, layout)
        for name in KINDS for call in options.calls for layout in LAYOUTS
        if options.only in (None, name)
        and (call != "stream" or hasattr(clone(KINDS[name]), "partial_fit"))
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run all rows, a process each; the number of failures is returned."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--by", choices=["alarm", "sigint"], default="alarm")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--n-jobs", type=int, default=None)
    parser.add_argument("--only", choices=list(KINDS))
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=list(CALLS))
    parser.add_argument("--only-hits", action="store_true", help="count no call that was over")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(run_child(*options.child, options)))
        return 0
    failures, given = 0, arguments if arguments is not None else sys.argv[1:]
    total: Counter[str] = Counter()
    for row in rows_of_table(options):
        command = [sys.executable, "-m", "tests.robustness.interrupts", *given, "--child", *row]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            ends = {f"crash, exit {done.returncode}": 1}
            print(done.stderr[-2000:], file=sys.stderr)
        else:
            ends = json.loads(done.stdout.splitlines()[-1])
        bad = {end: n for end, n in ends.items() if end not in ("interrupted", "over before")}
        failures += sum(bad.values())
        total.update(ends)
        print(f"{'FAILED ' if bad else ''}{', '.join(row)}: {ends}", flush=True)
    print(f"{dict(total)}, {failures} failures")
    return failures


if __name__ == "__main__":
    sys.exit(min(main(), 1))
