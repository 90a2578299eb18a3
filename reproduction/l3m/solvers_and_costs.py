"""Figures 3 and 6 of L3M (Wang and Saligrama, 2013).

Figure 3: two regions, four Gaussians at (+-1, +-1) or in a row, 200 rows. Which solver classifies
its training rows without an error? Each solver takes the best training error of its alphas and
margins (`TRIED`), as the paper does; "convex" of 30 draws. Least, median and largest of ten seeds.

Figure 6: test error against multiplications per prediction on Segment, Banana (one split of 400
training rows) and Vowel, standardised. A linear function costs d, a kernel value d and one for each
classifier that uses it, a stump one.

- L3M, refined, 2 to 16 regions: r + c functions, or r + 1 for two classes.
- AdaBoost on stumps, one class against the rest, of 1 to 200 stumps.
- nu-SVM with an RBF kernel, one class against the rest, nu from 0.001 to 0.5; the width is the
  median distance of the rows. Where there is no nu-SVM (nu too large for the class), no point.

alpha by 5-fold cross-validation, for each number of regions anew.

``LOCLIN_DATA=FOLDER python -m benchmarks.l3m_figures figure3|figure6 [SET ...] [--json FILE]``
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import NuSVC
from sklearn.utils.extmath import row_norms

from benchmarks.choices import FOLDS, Cache, quiet
from benchmarks.l3m_tables import problem_of
from loclin import L3MClassifier
from loclin.datasets import make_gaussian_line, make_xor

PICTURES: dict[str, Callable[..., Any]] = {
    "xor": lambda seed: make_xor(200, std=0.25, random_state=seed),
    "line": lambda seed: make_gaussian_line(200, 4, std=0.1, random_state=seed),
}
ALPHAS, MARGINS = (1e-1, 1e-3), (1.0, 10.0, 100.0)
TRIED: dict[str, list[dict[str, Any]]] = {
    "convex": [{"loss": "hinge", "alpha": a, "margin": m, "tol": 1e-2}
               for a in ALPHAS for m in MARGINS],
    "online": [{"alpha": a, "margin": m} for a in ALPHAS for m in MARGINS],
    "refined": [{"alpha": a} for a in ALPHAS],
}  # fmt: skip
SEEDS = 10
SETS = ("segment", "banana", "vowel")
REGIONS = (2, 3, 4, 6, 8, 12, 16)
STUMPS = (1, 2, 5, 10, 20, 50, 100, 200)
NUS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5)
FACTORS = (-6, -5, -4, -3, -2)  # alpha = 10^(k/2) times the mean of ||x||^2, over n
RUNS = 5

Point = list[float]  # multiplications, error in %


def training_errors(picture: str, solver: str, cache: Cache) -> list[float]:
    """Least training error in % over the parameters, of each seed."""

    def compute() -> list[float]:
        errors = []
        for seed in range(SEEDS):
            X, y = PICTURES[picture](seed)
            models = (
                L3MClassifier(2, solver=solver, random_state=seed, **parameters).fit(X, y)
                for parameters in TRIED[solver]
            )
            errors.append(min(100 * (1 - model.score(X, y)) for model in models))
        return errors

    settings = {"tried": TRIED[solver], "seeds": SEEDS, "rows": 200}
    return cache(f"{picture} | {solver} | figure 3", settings, quiet(compute))


def scaled(name: str) -> tuple[Any, Any, Any, Any]:
    """Standardised rows to train and to test on."""
    problem = problem_of(name)
    scaler = StandardScaler().fit(problem.X)
    return scaler.transform(problem.X), problem.y, scaler.transform(problem.X_test), problem.y_test


def by_regions(A: Any, y: Any, B: Any, y_test: Any) -> list[Point]:
    """L3M with 2 to 16 regions; mean error of the seeds."""
    norm2, points = float(row_norms(A, squared=True).mean()), []
    alphas = [10 ** (k / 2) * norm2 / len(A) for k in FACTORS]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    n_functions = 1 if len(np.unique(y)) == 2 else len(np.unique(y))
    for r in REGIONS:
        search = GridSearchCV(L3MClassifier(r, random_state=0), {"alpha": alphas}, cv=folds)
        best = search.fit(A, y).best_params_
        models = (L3MClassifier(r, random_state=seed, **best).fit(A, y) for seed in range(RUNS))
        errors = [100 * (1 - model.score(B, y_test)) for model in models]
        points.append([A.shape[1] * (r + n_functions), float(np.mean(errors))])
    return points


def by_stumps(A: Any, y: Any, B: Any, y_test: Any) -> list[Point]:
    """AdaBoost with 1 to 200 stumps a class."""
    points = []
    for n_stumps in STUMPS:
        boosted = AdaBoostClassifier(n_estimators=n_stumps, random_state=0)
        model = OneVsRestClassifier(boosted).fit(A, y)
        n_used = sum(len(one.estimators_) for one in model.estimators_)
        points.append([n_used, 100 * (1 - model.score(B, y_test))])
    return points


def by_nu(A: Any, y: Any, B: Any, y_test: Any) -> list[Point]:
    """nu-SVM, sparser with less nu."""
    gamma, points = 1 / (2 * np.median(pdist(A)) ** 2), []
    for nu in NUS:
        try:
            model = OneVsRestClassifier(NuSVC(nu=nu, gamma=gamma)).fit(A, y)
        except ValueError as error:
            if "infeasible" not in str(error):
                raise
            continue
        support = [one.support_ for one in model.estimators_]
        n_kernels = len(np.unique(np.concatenate(support)))
        cost = n_kernels * A.shape[1] + sum(map(len, support))
        points.append([cost, 100 * (1 - model.score(B, y_test))])
    return points


SYSTEMS: dict[str, tuple[Callable[..., list[Point]], Any]] = {
    "L3M, refined": (by_regions, [REGIONS, FACTORS, RUNS]),
    "AdaBoost, stumps": (by_stumps, STUMPS),
    "nu-SVM": (by_nu, NUS),
}


def cost_and_error(name: str, system: str, cache: Cache) -> list[Point]:
    """Multiplications per prediction, and test error in %, of a system on a set."""
    measure, tried = SYSTEMS[system]
    return cache(
        f"{name} | {system} | figure 6", {"tried": tried}, lambda: quiet(measure)(*scaled(name))
    )


def main(arguments: list[str] | None = None) -> None:
    """Print a figure's numbers."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.l3m_figures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["figure3", "figure6"])
    parser.add_argument("sets", nargs="*", choices=[[], *PICTURES, *SETS], default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    cache = Cache(options.json)
    if options.what == "figure3":
        for picture in options.sets or PICTURES:
            for solver in TRIED:
                errors = np.array(training_errors(picture, solver, cache))
                print(
                    f"{picture:6} {solver:8} training error {errors.min():.1f} to "
                    f"{errors.max():.1f} %, median {np.median(errors):.1f} %; perfect on "
                    f"{np.sum(errors == 0)} of {len(errors)}",
                    flush=True,
                )
        return
    for name in options.sets or SETS:
        for system in SYSTEMS:
            points = cost_and_error(name, system, cache)
            line = "  ".join(f"{cost:.0f}: {error:.2f}" for cost, error in points)
            print(f"{name:8} {system:17} {line}", flush=True)


if __name__ == "__main__":
    main()
