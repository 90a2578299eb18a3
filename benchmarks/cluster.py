"""Error against rounds, bytes and seconds of fits to rows in parts, beside a fit of one process.

Parts are learned one after the other, on one thread; seconds of a round are those of its slowest
part. Bytes are what would travel in a round: to every part its state, and what it has learned back.

``python -m benchmarks.cluster [--sets letter mnist covtype made] [--models ML3 SAPL] [--parts 4]
[--jsonl benchmarks/results/cluster.jsonl]``; `benchmarks.cluster_page` shows that file.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import loclin.cluster
from benchmarks._timing import pinned_threads
from benchmarks.cluster_page import add
from benchmarks.many_rows import sines
from loclin import (
    CSVMClassifier,
    L3MClassifier,
    LLSVMClassifier,
    LocallyLinearEnsemble,
    ML3Classifier,
    SAPLClassifier,
    USSVMClassifier,
)
from loclin.codings import OrthogonalCoding
from loclin.datasets import load

MODELS = {
    "ML3": ML3Classifier,
    "SAPL": SAPLClassifier,
    "OCC": partial(LLSVMClassifier, OrthogonalCoding("auto"), bias="both"),
    "L3M": partial(L3MClassifier, solver="online"),
    "US-SVM": USSVMClassifier,
    "LL-SVM": LLSVMClassifier,
    "C-SVM": CSVMClassifier,
    "ensemble": LocallyLinearEnsemble,
}


def rows_of(name: str, n_rows: int) -> tuple[Any, ...]:
    """Return training and test rows of a set in single precision, and their labels."""
    if name == "made":
        X, y = sines(n_rows + 50_000, 1)
        parts = X[:n_rows], X[n_rows:], y[:n_rows], y[n_rows:]
    elif name == "covtype":
        data = load("covtype_16pct")
        parts = train_test_split(data.X_train, data.y_train, test_size=0.25, random_state=0)
    else:
        data = load(name)
        parts = data.X_train, data.X_test, data.y_train, data.y_test
    X, X_test, y, y_test = parts
    order = np.random.default_rng(0).permutation(len(y))
    return X[order].astype(np.float32), X_test.astype(np.float32), y[order], y_test


class Measured:
    """An executor that notes what each call sends, and how long its slowest part takes."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.bytes: list[int] = []

    def __call__(self, of_part: Any, merge: Any, parts: Any, state: Any) -> Any:
        """Run one part after the other."""
        values, seconds = [], []
        for number, part in enumerate(parts):
            start = time.perf_counter()
            values.append(of_part(number, [part], state))
            seconds.append(time.perf_counter() - start)
        self.seconds.append(max(seconds))
        sent = len(parts) * len(pickle.dumps(state)) + sum(len(pickle.dumps(v)) for v in values)
        self.bytes.append(sent)
        return reduce(merge, values)


def measured(
    name: str, model: str, n_parts: int, seed: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Fit one model both ways, and measure it."""
    n_rows, rounds, sample_rows = int(options.rows), options.rounds, options.sample_rows
    X, X_test, y, y_test = rows_of(name, n_rows)
    parts = [(X[k::n_parts], y[k::n_parts]) for k in range(n_parts)]
    classifier, executor = MODELS[model](random_state=seed), Measured()
    if options.plain:
        fixed = {"alpha": "scale", "beta": "scale", "pieces": None, "metric": None}
        own = classifier.get_params().keys() & fixed.keys()
        classifier.set_params(**{one: fixed[one] for one in own})
    errors: list[float] = []

    def error(fitted: Any) -> float:
        return 100 * float(np.mean(fitted.predict(X_test) != y_test))

    start = time.perf_counter()
    whole = loclin.cluster.fit(
        classifier, parts, executor=executor, rounds=rounds, sample_rows=sample_rows,
        on_round=None if model == "ensemble" else lambda fitted: errors.append(error(fitted)),
    )  # fmt: skip
    in_turn, start = time.perf_counter() - start, time.perf_counter()
    alone = classifier.fit(X, y)
    return {
        "set": name, "rows": len(y), "model": model, "parts": n_parts, "seed": seed,
        "sample rows": sample_rows, "plain": options.plain,
        "errors": [round(one, 2) for one in errors],
        "error": error(whole), "error of one process": error(alone),
        "seconds of a round": float(np.median(executor.seconds[2:])),
        "kB of a round": float(np.median(executor.bytes[2:])) / 1000,
        "seconds in turn": in_turn, "seconds of one process": time.perf_counter() - start,
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Print errors after each tenth of the rounds, and what a round costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sets = ["letter", "mnist", "covtype", "made"]
    parser.add_argument("--sets", nargs="+", choices=sets, default=sets)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["ML3", "SAPL"])
    parser.add_argument("--parts", type=int, nargs="+", default=[4])
    parser.add_argument("--rows", type=float, default=1e6, help="of the set that is made")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--sample-rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="nothing is chosen on held-out rows")
    parser.add_argument("--jsonl", type=Path, help="to which each result is added")
    options = parser.parse_args(arguments)
    results = []
    with pinned_threads(1):
        for name in options.sets:
            for model in options.models:
                for n_parts in options.parts:
                    for seed in range(options.seeds):
                        found = measured(name, model, n_parts, seed, options)
                        results.append(found)
                        add(options.jsonl, found)
                        every = max(1, options.rounds // 10)
                        told = found | {"errors": found["errors"][every - 1 :: every]}
                        print(json.dumps(told), flush=True)
    return results


if __name__ == "__main__":
    main()
