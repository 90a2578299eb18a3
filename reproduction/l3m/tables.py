"""Table 2 of L3M (Wang and Saligrama, 2013): six regions, official splits.

Systems and what is chosen by 5-fold cross-validation on the training split (`choices`):

- refined: preprocessing, strength, loss.
- online: the same, and the margin.
- convex: the paper's own protocol: all pairs of its lambda and beta, 30 draws of constraints each
  (on the smallest sets; lambda and beta of 1e2 and 1e6 with one draw elsewhere), for a gap
  of 10 %, but at most 5 rounds. The least training error is kept, and solved again for 1 %, but at
  most 15 rounds: with nearly no penalty a draw may be far from its optimum. alpha is 2 lambda / n
  and, read as the reciprocal, 2 / (lambda n). Features standardised.
- linear SVM, RBF SVM: preprocessing, strength, loss or width of the kernel.
- AdaBoost on stumps, one class against the rest; a tree by Gini's index, its pruning chosen; MDA,
  six Gaussians a class, their kind of covariance chosen. Features standardised.

Banana has no test split: ten random ones of 400 training rows, everything chosen anew on each. Mean
and deviation over these, or over five seeds where a system is random.

Run ``LOCLIN_DATA=FOLDER python -m benchmarks.l3m_tables table2 [banana dna ...] --json FILE``. A
stopped run goes on from its JSON file (one run a file).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import validate_data

from benchmarks.choices import (
    COARSE,
    FOLDS,
    LIMITS,
    PREPARE,
    Cache,
    Case,
    Knob,
    Problem,
    Search,
    each_seed,
    from_0_to_1,
    quiet,
    shown_choice,
    verdict,
)
from loclin import L3MClassifier
from loclin.datasets import load

SETS = ("banana", "dna", "satimage", "vowel", "optdigits", "pendigits", "segment")
REGIONS = 6
SPLITS, SEEDS = 10, 5
BANANA_ROWS = 400
# The paper's grid, and how many draws of constraints: (powers of ten of lambda and beta, draws).
WHOLE = ((2, 3, 4, 5, 6), 30)
PART = ((2, 6), 1)
CONVEX = {"banana": WHOLE, "vowel": WHOLE, "segment": WHOLE}  # else PART
LOOSE, TIGHT = (1e-1, 5), (1e-2, 15)  # gap and most rounds, on the grid and for what it chose
GAMMA = Knob("gamma", 1.0, 2, 1 / 64, 64)
MARGIN = Knob("margin", 10.0, 3, 0.1, 1000)
FORESTS = {
    "AdaBoost, stumps": (OneVsRestClassifier(AdaBoostClassifier(n_estimators=200)), {}),
    "tree": (DecisionTreeClassifier(min_samples_leaf=5),
             {"ccp_alpha": [0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2]}),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A system, the paper's errors on SETS, and what is searched besides the strength."""

    how: str
    paper: tuple[float | None, ...]
    knobs: tuple[Knob, ...] = ()


L3M = (11.84, 5.31, 17.50, 40.69, 7.12, 10.52, 10.76)
ROWS = {
    "L3M, refined": Row("refined", L3M),
    "L3M, online": Row("online", L3M, (MARGIN,)),
    "L3M, convex": Row("convex", L3M),
    "Linear SVM": Row("linear", (39.55, 7.08, 17.90, 59.09, 7.63, 10.92, 8.24)),
    "RBF SVM": Row("kernel", (11.86, 5.48, 9.70, 37.23, 2.34, 1.86, 11.30), (GAMMA,)),
    "AdaBoost, stumps": Row("forest", (32.98, 8.35, 16.1, 69.7, 12.24, 11.29, 10.38)),
    "tree": Row("forest", (14.33, 9.36, 14.45, 56.93, 14.58, 8.78, 9.71)),
    "MDA": Row("mda", (20.45, 12.14, 36.45, 67.32, 9.79, 7.75, 15.43)),
}
RANDOM = ("refined", "online", "mda", "forest")
LOSSES = {"linear": ("squared_hinge", "hinge")}  # else of L3M


class MixtureDiscriminant(ClassifierMixin, BaseEstimator):
    """Mixture discriminant analysis: Gaussians for each class, and Bayes' rule."""

    def __init__(self, n_components: int = REGIONS, covariance_type: str = "full",
                 random_state: int | None = None) -> None:  # fmt: skip
        self.n_components, self.covariance_type = n_components, covariance_type
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> MixtureDiscriminant:
        """Fit the Gaussians of each class."""
        X, y = validate_data(self, X, y)
        self.classes_, counts = np.unique(y, return_counts=True)
        self.mixtures_ = [
            GaussianMixture(min(self.n_components, n), covariance_type=self.covariance_type,
                            reg_covar=1e-3, random_state=self.random_state).fit(X[y == c])
            for c, n in zip(self.classes_, counts, strict=True)
        ]  # fmt: skip
        self.log_priors_ = np.log(counts / len(y))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest classes."""
        X = validate_data(self, X, reset=False)
        scores = np.column_stack([mixture.score_samples(X) for mixture in self.mixtures_])
        return self.classes_[(scores + self.log_priors_).argmax(axis=1)]


def learner(row: Row, X: Any, knobs: Any, k: int, seed: int) -> Any:
    """Return the unfitted model of strength 10^(k/2) in units of the mean squared norm."""
    knobs, n = dict(knobs), len(X)
    factor, norm2 = 10 ** (k / 2), float(row_norms(X, squared=True).mean())
    if row.how == "kernel":
        gamma = knobs["gamma"] / (X.shape[1] * X.var())
        return SVC(C=1 / factor, gamma=gamma, cache_size=1000, max_iter=1_000_000)
    if row.how == "linear":
        return LinearSVC(C=1 / (factor * norm2), loss=knobs["loss"], random_state=seed)
    return L3MClassifier(REGIONS, solver=row.how, alpha=factor * norm2 / n, random_state=seed,
                         **knobs)  # fmt: skip


def fold_errors(row: Row, X: Any, y: Any, fold: Any, case: Case, ks: Any) -> list[float]:
    """Errors of one fold at each strength."""
    train, test = fold
    scaler = PREPARE[case[0]]().fit(X[train])
    A, B = scaler.transform(X[train]), scaler.transform(X[test])
    models = (learner(row, A, case[1], k, 0).fit(A, y[train]) for k in ks)
    return [100 * (1 - model.score(B, y[test])) for model in models]


def problem_of(name: str, split: int = 0) -> Problem:
    """Load a set; Banana is split by the seed."""
    data: Any = load(name)
    X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
    if name == "banana":
        X, X_test, y, y_test = train_test_split(
            X, y, train_size=BANANA_ROWS, stratify=y, random_state=split
        )
        name = f"banana/{split}"
    X, X_test = from_0_to_1(X, X_test)
    return Problem(name, X.astype(float), y, X_test.astype(float), y_test, len(X))


def settings_of(row: Row, problem: Problem) -> dict[str, Any]:
    """Collect what a stored result must agree in to be used again."""
    return {"how": row.how, "knobs": row.knobs, "prepare": list(PREPARE), "coarse": COARSE,
            "limits": LIMITS, "folds": FOLDS, "regions": REGIONS,
            "shape": problem.X.shape}  # fmt: skip


def by_strength(row: Row, problem: Problem, key: str, runs: int, cache: Cache, jobs: int) -> Any:
    """Choose by cross-validation; errors and seconds of the final fits."""

    def choose() -> dict[str, Any]:
        notes = cache.notes(f"{key} | choice", settings)
        search = Search(partial(fold_errors, row), problem.X, problem.y, jobs, notes)
        losses = LOSSES.get(row.how, ("logistic", "hinge"))
        options = {} if row.how == "kernel" else {"loss": losses}
        return search.choose(list(PREPARE), row.knobs, options)

    settings = settings_of(row, problem)
    choice = cache(f"{key} | choice", settings, choose)
    print(f"{key}: {shown_choice(choice)}", flush=True)

    def final(seed: int) -> list[float]:
        scaler = PREPARE[choice["prepare"]]().fit(problem.X)
        A, B = scaler.transform(problem.X), scaler.transform(problem.X_test)
        start = time.process_time()
        model = learner(row, A, choice["knobs"], choice["k"], seed).fit(A, problem.y)
        seconds = time.process_time() - start
        return [100 * (1 - model.score(B, problem.y_test)), seconds]

    tested = settings | {"choice": choice, "runs": runs}
    return each_seed(cache, f"{key} | test", tested, final, range(runs), jobs=1)


def by_training_error(problem: Problem, key: str, cache: Cache, jobs: int) -> Any:
    """Do what the paper does: of all parameters and draws the least training error."""
    powers, draws = CONVEX.get(problem.name.split("/")[0], PART)
    scaler = StandardScaler().fit(problem.X)
    A, B = scaler.transform(problem.X), scaler.transform(problem.X_test)
    n = len(A)

    def fit(alpha: float, margin: float, tol: float, rounds: int) -> list[float]:
        start = time.process_time()
        model = L3MClassifier(REGIONS, solver="convex", loss="hinge", alpha=alpha, margin=margin,
                              n_restarts=draws, tol=tol, max_iter=rounds,
                              random_state=0)  # fmt: skip
        model.fit(A, problem.y)
        errors = [100 * (1 - model.score(*rows)) for rows in ((A, problem.y), (B, problem.y_test))]
        return [*errors, time.process_time() - start]

    def row(alpha: float) -> list[Any]:
        return Parallel(jobs)(delayed(quiet(fit))(alpha, 10.0**p, *LOOSE) for p in powers)

    settings = {"grid": powers, "draws": draws, "ends": [LOOSE, TIGHT], "shape": problem.X.shape}
    found = {}
    for reading, alphas in (
        ("alpha = 2 lambda / n", [2 * 10.0**p / n for p in powers]),
        ("alpha = 2 / (lambda n)", [2 / (10.0**p * n) for p in powers]),
    ):
        cases = [(alpha, 10.0**p) for alpha in alphas for p in powers]
        rows = (cache(f"{key} | alpha {a:.3g}", settings, partial(row, a)) for a in alphas)
        runs = [run for of_alpha in rows for run in of_alpha]
        best = min(range(len(runs)), key=lambda i: runs[i][0])
        final = cache(f"{key} | {reading}", settings, partial(quiet(fit), *cases[best], *TIGHT))
        found[reading] = [*final, *cases[best], final[2] + sum(run[2] for run in runs)]
    for reading, (train, test, _, alpha, margin, seconds) in found.items():
        print(
            f"{key}, {reading}: training error {train:.2f} %, test {test:.2f} % at "
            f"alpha={alpha:.2g}, margin={margin:g}; {len(powers) ** 2} pairs of {draws} draws, "
            f"{seconds:.0f} s",
            flush=True,
        )
    best = min(found.values(), key=lambda run: run[0])
    return [[best[1], best[2]]]


def by_grid(name: str, problem: Problem, key: str, runs: int, cache: Cache) -> Any:
    """Errors and seconds of the systems whose only parameters are on a small grid."""

    def final(seed: int) -> list[float]:
        if name == "MDA":
            model: Any = MixtureDiscriminant(random_state=seed)
            grid: dict[str, Any] = {"covariance_type": ["full", "tied", "diag"]}
        else:
            model, grid = clone(FORESTS[name][0]), FORESTS[name][1]
            model.set_params(**{
                p: seed for p in model.get_params() if p.split("__")[-1] == "random_state"
            })  # fmt: skip
        search: Any = make_pipeline(StandardScaler(), model)
        if grid:
            step = model.__class__.__name__.lower()
            folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
            search = GridSearchCV(search, {f"{step}__{p}": v for p, v in grid.items()}, cv=folds)
        start = time.process_time()
        search.fit(problem.X, problem.y)
        return [100 * (1 - search.score(problem.X_test, problem.y_test)),
                time.process_time() - start]  # fmt: skip

    settings = {"shape": problem.X.shape, "runs": runs}
    return each_seed(cache, f"{key} | test", settings, final, range(runs), jobs=1)


def table_2(name: str, names: list[str], options: Any, cache: Cache) -> None:
    """Choose, fit and print, system by system."""
    splits = options.splits if name == "banana" else 1
    for system in names:
        row, found = ROWS[system], []
        runs = options.seeds if splits == 1 and row.how in RANDOM else 1
        for split in range(splits):
            problem = problem_of(name, split)
            key = f"{problem.name} | {system}"
            if row.how == "convex":
                found += by_training_error(problem, key, cache, options.jobs)
            elif row.how in ("forest", "mda"):
                found += by_grid(system, problem, key, runs, cache)
            else:
                found += by_strength(row, problem, key, runs, cache, options.jobs)
        errors, seconds = np.array(found).T
        std = errors.std(ddof=1) if len(errors) > 1 else 0.0
        paper = row.paper[SETS.index(name)]
        print(
            f"  {name}, {system}: {errors.mean():.2f} +- {std:.2f} % ({len(errors)} fits); "
            f"{verdict(float(errors.mean()), float(std), paper)}; {seconds.mean():.2f} s",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["table2"])
    parser.add_argument("sets", nargs="*", choices=[[], *SETS], default=[])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), metavar="ROW")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    cache = Cache(options.json)
    for name in options.sets or SETS:
        table_2(name, options.rows or list(ROWS), options, cache)


if __name__ == "__main__":
    main()
