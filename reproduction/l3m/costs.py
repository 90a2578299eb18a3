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
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import NuSVC
from sklearn.utils.extmath import row_norms

from loclin import L3MClassifier
from loclin.datasets import make_gaussian_line, make_xor
from reproduction.choices import FOLDS
from reproduction.l3m.tables import problem_of
from reproduction.quick import sized
from reproduction.store import Cache

PICTURES: dict[str, Callable[..., Any]] = {
    "xor": lambda seed: make_xor(200, std=0.25, random_state=seed),
    "line": lambda seed: make_gaussian_line(200, 4, std=0.1, random_state=seed),
}
ALPHAS = sized((1e-1, 1e-3), quick=(1e-1,))
MARGINS = sized((1.0, 10.0, 100.0), quick=(1.0,))
TRIED: dict[str, list[dict[str, Any]]] = {
    "convex": [{"loss": "hinge", "alpha": a, "margin": m, "tol": 1e-2}
               for a in ALPHAS for m in MARGINS],
    "online": [{"alpha": a, "margin": m} for a in ALPHAS for m in MARGINS],
    "refined": [{"alpha": a} for a in ALPHAS],
}  # fmt: skip
SEEDS = sized(10, quick=1)
REGIONS = sized((2, 3, 4, 6, 8, 12, 16), quick=(2, 3))
STUMPS = sized((1, 2, 5, 10, 20, 50, 100, 200), quick=(1, 5))
NUS = sized((0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5), quick=(0.1,))
FACTORS = sized((-6, -5, -4, -3, -2), quick=(-4,))  # alpha = 10^(k/2) mean ||x||^2 / n
RUNS = sized(5, quick=1)

Point = list[float]  # multiplications, error in %


def training_errors(picture: str, solver: str, cache: Cache) -> list[float]:
    """Least training error in % over the parameters, of each seed."""

    def compute() -> list[float]:
        errors = []
        for seed in range(SEEDS):
            X, y = PICTURES[picture](seed)
            models = (
                L3MClassifier(
                    2, solver=solver, random_state=seed, **parameters, standardize=False
                ).fit(X, y)
                for parameters in TRIED[solver]
            )
            errors.append(min(100 * (1 - model.score(X, y)) for model in models))
        return errors

    settings = {"tried": TRIED[solver], "seeds": SEEDS, "rows": 200}
    return cache(f"{picture} | {solver} | figure 3", settings, compute)


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
        search = GridSearchCV(
            L3MClassifier(r, random_state=0, standardize=False), {"alpha": alphas}, cv=folds
        )
        best = search.fit(A, y).best_params_
        models = (
            L3MClassifier(r, random_state=seed, **best, standardize=False).fit(A, y)
            for seed in range(RUNS)
        )
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
    key = f"{name} | {system} | figure 6"
    return cache(key, {"tried": tried}, lambda: measure(*scaled(name)))
