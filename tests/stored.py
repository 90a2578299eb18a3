"""Models in files of today's format, which every later version must read.

``python -m tests.stored`` writes them anew: after a change of what models keep, and only before the
first release that writes the new format.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import loclin.io
from tests.golden import Case, Data, data_of, fit, make, stream

DATA = Path(__file__).parent / "data"
SCORES = DATA / "scores.npz"
CASES = [
    Case("ml3", "fit", "dense", "float64", 3),
    Case("ml3", "stream", "dense", "float64", 3),
    Case("llsvm", "fit", "sparse", "float64", 3),
    Case("llsvm", "stream", "dense", "float32", 3),
    Case("llsvm dual", "fit", "dense", "float64", 2),
    Case("llsvm by-class", "fit", "dense", "float64", 3),
    Case("sapl", "fit", "dense", "float64", 3),
    Case("sapl own", "stream", "dense", "float64", 3),
    Case("l3m", "fit", "dense", "float64", 3),
    Case("l3m online", "stream", "dense", "float64", 3),
    Case("ussvm", "fit", "dense", "float64", 3),
    Case("ussvm", "stream", "dense", "float64", 3),
]


def path_of(case: Case) -> Path:
    return DATA / f"{case.model.replace(' ', '-')}-{case.learn}.loclin"


def learned(case: Case) -> tuple[Any, Data]:
    """Return the model, in a pipeline if it is fitted on dense rows, and its data."""
    data = data_of(case)
    if case.learn == "stream":
        return stream(make(case.model), data), data
    model = make(case.model)
    return fit(make_pipeline(StandardScaler(with_mean=case.layout == "dense"), model), data), data


if __name__ == "__main__":
    scores = {}
    with threadpool_limits(1):
        for case in CASES:
            model, data = learned(case)
            loclin.io.save(model, path_of(case))
            scores[path_of(case).stem] = model.decision_function(data.X)
            print(path_of(case).name, path_of(case).stat().st_size)
    np.savez_compressed(SCORES, **scores)
