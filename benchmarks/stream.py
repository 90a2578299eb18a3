"""Learn a stream of a million rows: memory, rows a second, and the error against a fit.

``python -m benchmarks.stream --model ml3 --rows 1000000 --chunk 10000 --features 20 --classes 5``

The rows come from Gaussian clusters, several a class, drawn chunk by chunk from a fixed seed. The
same rows are drawn whatever the chunk, and are never all in memory.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._timing import memory_status
from loclin import LLSVMClassifier, ML3Classifier, SAPLClassifier

MODELS: dict[str, Any] = {"ml3": ML3Classifier, "llsvm": LLSVMClassifier, "sapl": SAPLClassifier}
_TEST_ROWS = 50_000
_TEST_SEED = 10**6
_Rows = tuple[NDArray[Any], NDArray[Any]]


class GaussianClusters:
    """Classes made of Gaussian clusters; every feature has mean 0 and variance 1.

    Parameters
    ----------
    n_features, n_classes : int
    per_class : int, default=8
        Clusters in a class, all equally likely.
    spread : float, default=0.7
        Standard deviation inside a cluster, below 1.
    """

    def __init__(
        self, n_features: int, n_classes: int, per_class: int = 8, spread: float = 0.7
    ) -> None:
        self.n_classes, self.spread = n_classes, spread
        centers = np.random.default_rng(0).standard_normal((per_class * n_classes, n_features))
        centers -= centers.mean(axis=0)
        self.centers = centers * np.sqrt((1 - spread**2) / (centers**2).mean(axis=0))

    def stream(self, n_rows: int, chunk: int, seed: int = 1) -> Iterator[_Rows]:
        """Yield `n_rows` rows in chunks; a seed gives the same rows for every chunk size."""
        pick, noise = (np.random.default_rng([seed, part]) for part in range(2))
        for first in range(0, n_rows, chunk):
            cluster = pick.integers(len(self.centers), size=min(chunk, n_rows - first))
            X = noise.standard_normal((len(cluster), self.centers.shape[1]))
            X *= self.spread
            X += self.centers[cluster]
            yield X, cluster % self.n_classes

    def rows(self, n_rows: int, seed: int = 1) -> _Rows:
        """Return the first rows of the stream, at once."""
        return next(self.stream(n_rows, n_rows, seed))

    def best_predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Predict by Bayes' rule from the true densities: no classifier errs less."""
        exponents = X @ self.centers.T - 0.5 * (self.centers**2).sum(axis=1)
        exponents /= self.spread**2
        exponents -= exponents.max(axis=1, keepdims=True)
        by_class = np.exp(exponents).reshape(len(X), -1, self.n_classes)
        return by_class.sum(axis=1).argmax(axis=1)


def learn(
    model: Any, problem: GaussianClusters, n_rows: int, chunk: int
) -> tuple[Any, float, list[float]]:
    """Learn a stream; return the model, rows a second, and resident bytes at every tenth."""
    classes = np.arange(problem.n_classes)
    resident: list[float] = []
    seen, seconds = 0, 0.0
    for X, y in problem.stream(n_rows, chunk):
        start = time.perf_counter()
        model.partial_fit(X, y, classes)
        seconds += time.perf_counter() - start
        seen += len(y)
        while seen >= (len(resident) + 1) * n_rows / 10:
            resident.append(memory_status("VmRSS"))
    return model, n_rows / seconds, resident


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Run the benchmark, print it and return its numbers."""
    args = _parser().parse_args(argv)
    problem = GaussianClusters(args.features, args.classes)
    X_test, y_test = problem.rows(_TEST_ROWS, _TEST_SEED)

    def new() -> Any:
        return MODELS[args.model](random_state=0)

    def error(predicted: NDArray[Any]) -> float:
        return 100.0 * float(np.mean(predicted != y_test))

    # Compile, and let the process grow to its working size, before memory is read.
    learn(new(), problem, min(args.rows, 1000), min(args.chunk, 1000))[0].predict(X_test)
    print(
        f"{args.model}: {args.rows:,} rows in chunks of {args.chunk:,}, {args.features} features, "
        f"{args.classes} classes"
    )
    model, speed, resident = learn(new(), problem, args.rows, args.chunk)
    growth = resident[-1] - resident[0]
    print("resident MB at every tenth: " + " ".join(f"{size / 1e6:.1f}" for size in resident))
    print(f"growth from the first tenth to the last: {growth / 1e6:+.1f} MB")
    print(f"{speed:,.0f} rows a second")

    results: dict[str, Any] = {
        "model": args.model, "rows": args.rows, "chunk": args.chunk,
        "features": args.features, "classes": args.classes,
        "rows_per_second": speed, "resident_bytes": resident, "growth_bytes": growth,
        "best_error": error(problem.best_predict(X_test)), "error": error(model.predict(X_test)),
    }  # fmt: skip
    X, y = problem.rows(args.fit_rows)
    results["fit_error"] = error(new().fit(X, y).predict(X_test))
    results["difference"] = results["error"] - results["fit_error"]
    print(f"\nerror on {_TEST_ROWS:,} fresh rows, %")
    print(f"{'the stream':32}{results['error']:8.2f}")
    print(f"{f'fit on its first {args.fit_rows:,} rows':32}{results['fit_error']:8.2f}")
    print(f"{'the best possible':32}{results['best_error']:8.2f}")
    print(f"stream less fit: {results['difference']:+.2f} points (target: at most 0.5)")

    print(f"\n{args.chunk_rows:,} rows{'chunk':>13}{'rows/s':>12}{'error %':>10}")
    results["chunks"] = {}
    for chunk in args.chunks:
        model, speed, _ = learn(new(), problem, args.chunk_rows, chunk)
        found = {"rows_per_second": speed, "error": error(model.predict(X_test))}
        results["chunks"][chunk] = found
        print(f"{chunk:>25,}{speed:>12,.0f}{found['error']:>10.2f}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return results


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stream",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--model", choices=MODELS, default="ml3")
    add("--rows", type=int, default=1_000_000, help="rows in the stream")
    add("--chunk", type=int, default=10_000, help="rows in a call of partial_fit")
    add("--features", type=int, default=20)
    add("--classes", type=int, default=5)
    add("--fit-rows", type=int, default=100_000, help="rows that fit learns at once")
    add("--chunk-rows", type=int, default=200_000, help="rows in the streams that try chunk sizes")
    add("--chunks", type=int, nargs="*", default=[100, 1000, 10_000, 100_000], help="those sizes")
    add("--json", type=Path, metavar="FILE", help="write the numbers to this file")
    return parser


if __name__ == "__main__":
    main()
