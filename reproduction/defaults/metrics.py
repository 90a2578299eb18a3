"""What `metric` gives, on the sets and by the protocol of the table of defaults.

Errors, log loss and seconds of ML3, SAPL and LL-SVM without a metric, with the diagonal, with the
whole matrix, and with the one that held-out rows choose; nothing else differs from the defaults.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from loclin.datasets import load
from reproduction.defaults.table import (
    REPEATS,
    SETS,
    SMALL,
    TUNED,
    compile_loops,
    of_probabilities,
    parts_of,
    pipeline,
)
from reproduction.entry import Entry
from reproduction.judge import MARKS, WAITING, average_ranks
from reproduction.markdown import table
from reproduction.store import Cache

MODELS = ("ML3Classifier", "SAPLClassifier", "LLSVMClassifier")
METRICS = (None, "diagonal", "full", "auto")
MOST_FEATURES = 2000  # of a whole matrix
# The systems of the first table of defaults, among which ranks are given.
BESIDE = (TUNED, "LinearSVC", "Nystroem(1000) + LinearSVC", "HistGradientBoosting",
          "random forest", "k-NN", "MLP", "L3MClassifier", "USSVMClassifier")  # fmt: skip
NOTE = """All settings but `metric` are defaults. The columns:

- error, log loss: over those without a metric, the geometric mean over the sets;
- better, worse: sets with a lower and a higher error;
- time: seconds of the fit over those without a metric, at the median and at most;
- rank: the model's average rank by error among twelve systems, the two other models without a
  metric among them.
"""


def measured(data: str, name: str, metric: str | None, repeat: int) -> dict[str, Any]:
    """Error, log loss and seconds on a split."""
    X, y, X_test, y_test = parts_of(data, repeat)
    if metric == "full" and (sparse.issparse(X) or X.shape[1] > MOST_FEATURES):
        return {"left out": "sparse rows, or too many features"}
    compile_loops(name, "sparse" if sparse.issparse(X) else "dense")
    model = pipeline(name, X, repeat)
    model[-1].set_params(metric=metric)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    error = 100 * float(np.mean(model.predict(X_test) != y_test))
    return {"error %": error, "train s": seconds,
            **of_probabilities(model, name, X, y, X_test, y_test)}  # fmt: skip


def cell(data: str, name: str, metric: str | None, cache: Cache) -> dict[str, Any]:
    """Measure a model with a metric on every split of a set."""
    whole: Any = load(data)
    small = whole.y_test is None and whole.X_train.shape[0] < SMALL
    found = [
        cache(f"{data} | {name}, {metric} | {repeat}", {"metric": metric},
              partial(measured, data, name, metric, repeat))
        for repeat in range(REPEATS if small else 1)
    ]  # fmt: skip
    if "left out" in found[0]:
        return found[0]
    return {what: [run[what] for run in found] for what in found[0]}


def entries() -> Iterator[Entry]:
    """Yield the entries."""
    for data, minutes in SETS.items():
        for name in MODELS:
            for metric in METRICS:
                run = partial(cell, data, name, metric)
                yield Entry("defaults", "metric", data, f"{name}, {metric}", run, minutes / 3)


def metric_section(found: dict[str, dict[str, Any]], results: dict[tuple[str, str], Any],
                   ) -> Iterable[str]:  # fmt: skip
    """Yield the section; `found` are the results of the table of defaults, by system and set."""
    means = {
        (name, metric): {
            data: {what: float(np.mean(runs)) for what, runs in result.items()}
            for data in SETS
            if (result := results.get(("defaults", f"metric | {data} | {name}, {metric}")))
            and "left out" not in result
        }
        for name in MODELS
        for metric in METRICS
    }
    rivals = {name: errors_of(found[name]) for name in BESIDE}
    plain = {name: errors_of(means[name, None]) for name in MODELS}
    rows = []
    for (name, metric), of in means.items():
        both = sorted(of.keys() & means[name, None].keys())
        if not both:
            rows.append([name, str(metric), MARKS[WAITING], *[""] * 5])
            continue
        base = means[name, None]
        ratio = {
            what: np.array([(of[d][what] + floor) / (base[d][what] + floor) for d in both])
            for what, floor in (("error %", 1e-9), ("log loss", 0.0), ("train s", 0.0))
        }
        ranks, sets = average_ranks(rivals | plain | {name: errors_of(of)})
        errors = ratio["error %"]
        rows.append([
            name, str(metric), f"{np.exp(np.mean(np.log(errors))):.3f}",
            f"{np.exp(np.mean(np.log(ratio['log loss']))):.3f}",
            f"{np.count_nonzero(errors < 1)}, {np.count_nonzero(errors > 1)}",
            f"{np.median(ratio['train s']):.2f}, {ratio['train s'].max():.1f}",
            f"{ranks[name]:.2f} of {len(ranks)}, {len(sets)} sets" if ranks else "",
            f"{ranks[TUNED]:.2f}" if ranks else "",
        ])  # fmt: skip
    yield NOTE
    yield table(["", "metric", "error", "log loss", "better, worse", "time", "rank", "SVC's"], rows)


def errors_of(of: dict[str, Any]) -> dict[str, float]:
    """Return the errors by set."""
    return {data: float(result["error %"]) for data, result in of.items()}
