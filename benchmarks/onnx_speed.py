"""Speed of ONNX graphs in onnxruntime beside `predict`, one row and many, on one thread.

``python -m benchmarks.onnx_speed --rows 10000``

Rows are those of digits, as often as it takes. A graph gives labels and probabilities; `predict`
gives labels alone. Ratios above 1 say how many times as fast the graph is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from sklearn.datasets import load_digits

from benchmarks._timing import interleaved, pinned_threads
from loclin import (
    CSVMClassifier,
    ForestClassifier,
    L3MClassifier,
    LDKLClassifier,
    LLSVMClassifier,
    LMKLClassifier,
    ML3Classifier,
    SAPLClassifier,
    USSVMClassifier,
)
from loclin.codings import OrthogonalCoding
from loclin.onnx import to_onnx

_SHORT = {"alpha": "scale", "max_iter": 3, "random_state": 0}
_SEEDED = {"alpha": "scale", "random_state": 0}
MODELS: dict[str, Any] = {
    "ML3": ML3Classifier(**_SHORT),
    "ML3, no pieces": ML3Classifier(pieces=None, metric=None, **_SHORT),
    "ML3, p = 1.2": ML3Classifier(p=1.2, pieces=None, metric=None, **_SHORT),
    "LL-SVM, planes": LLSVMClassifier(OrthogonalCoding(10), **_SHORT),
    "LL-SVM, anchors": LLSVMClassifier(**_SHORT),
    "SAPL": SAPLClassifier(**_SHORT),
    "L3M": L3MClassifier(n_restarts=1, max_iter=8, **_SEEDED),
    "LDKL": LDKLClassifier(**_SHORT),
    "L-MKL": LMKLClassifier(**_SHORT),
    "CSVM": CSVMClassifier(**_SEEDED),
    "US-SVM": USSVMClassifier(max_iter=3, random_state=0),
    "forest": ForestClassifier(random_state=0),
}


def session_of(graph: Any) -> Any:
    """Return what runs a graph, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=providers)


def repeated(task: Callable[[], Any], times: int) -> Callable[[], None]:
    """Return a task that does another so many times."""

    def repeat() -> None:
        for _ in range(times):
            task()

    return repeat


def measure(model: Any, X: Any, rows: int, repeats: int) -> dict[str, float]:
    """Return microseconds a row of predict and of the graph, and labels that differ."""
    session = session_of(to_onnx(model, X[:1]))
    figures = {}
    for name, n, times in (("one", 1, 100), ("many", rows, 1)):
        part = X[:n]
        tasks = {
            "predict": repeated(lambda part=part: model.predict(part), times),
            "graph": repeated(lambda part=part: session.run(None, {"X": part}), times),
        }
        for task, seconds in interleaved(tasks, repeats).items():
            figures[f"{name} {task}"] = float(np.median(seconds)) / n / times * 1e6
    (labels,) = session.run(["label"], {"X": X})
    return figures | {"labels differ": float((labels != model.predict(X)).sum())}


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Run the benchmark, print it and return its numbers."""
    args = _parser().parse_args(argv)
    found, y = load_digits(return_X_y=True)
    results: dict[str, Any] = {}
    print(f"{'microseconds a row':28}{'one row':>10}{'graph':>8}{'x':>6}", end="")
    print(f"{f'{args.rows:,} rows':>14}{'graph':>8}{'x':>6}{'differ':>8}")
    with pinned_threads(1):
        for dtype in (np.float32, np.float64):
            X = np.resize(found, (args.rows, found.shape[1])).astype(dtype)
            for name in args.models or MODELS:
                model = MODELS[name].fit(found[: args.train].astype(dtype), y[: args.train])
                told = measure(model, X, args.rows, args.repeats)
                results[f"{name}, {np.dtype(dtype).name}"] = told
                print(f"{f'{name}, {np.dtype(dtype).name}':28}", end="")
                for n, width in (("one", 10), ("many", 14)):
                    predict, graph = told[f"{n} predict"], told[f"{n} graph"]
                    print(f"{predict:{width}.2f}{graph:8.2f}{predict / graph:6.1f}", end="")
                print(f"{told['labels differ']:8.0f}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return results


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.onnx_speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rows", type=int, default=10_000)
    add("--train", type=int, default=1300, help="rows to fit on")
    add("--repeats", type=int, default=7)
    add("--models", nargs="*", choices=list(MODELS), help="by name; all by default")
    add("--json", type=Path, metavar="FILE", help="write the numbers to this file")
    return parser


if __name__ == "__main__":
    main()
