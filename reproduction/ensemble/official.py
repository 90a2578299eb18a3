"""`LocallyLinearEnsemble` on official splits: everything chosen on training rows.

Setting by setting, each value by 3-fold cross-validation on at most 10,000 training rows:
preprocessing, the metric, strength (in units of alpha="scale"), anchors of SAPL and models a class
of ML3 (times their defaults), members of each kind. MNIST has six times as many rows, which carry
larger models: size and members are chosen with all of them, a sixth held out. Last comes the number
of planes of LL-SVM with orthogonal coding, the third kind; 0 leaves it out. Where all rows are at
most 10,000, every setting is then tried again beside what the others have become, and members and
planes that are the most offered twice as many. Then, of at most 128 features, the number of pieces
of each, and a forest as a further kind. Where values err the same, the first stays, or the
one chosen before. The test split is used by the final fits only, one for each seed. Prediction time
is beside that of the SVC that was tuned for SAPL's table 2; features are scaled to [0, 1] first, as
there.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from loclin import (
    ForestClassifier,
    LLSVMClassifier,
    LocallyLinearEnsemble,
    ML3Classifier,
    SAPLClassifier,
)
from loclin.codings import OrthogonalCoding
from reproduction.choices import PREPARE, SUBSET, subset
from reproduction.data import Problem, problem_named
from reproduction.entry import Entry
from reproduction.quick import sized
from reproduction.sapl import tables as sapl
from reproduction.shapes import lines
from reproduction.store import Cache, Notes

SYSTEM = "LocallyLinearEnsemble"
MINUTES = {"letter": 15, "usps": 15, "mnist": 100}
SEEDS, FOLDS = sized(3, quick=1), sized(3, quick=2)
ANCHORS, MODELS = 100, 16  # of size 1
SPACE: dict[str, list[Any]] = {
    "prepare": ["standardise", *(name for name in PREPARE if name != "standardise")],
    "metric": sized(["auto", None, "full"], quick=["auto"]),
    "strength": sized([1.0, 0.25, 4.0], quick=[1.0]),
    "size": sized([1.0, 2.0], quick=[1.0]),
    "n_folds": sized([5, 10], quick=[2]),
}
MANY_ROWS = ("mnist",)
WITH_ALL_ROWS = {name: SPACE[name] for name in ("size", "n_folds")}
PLANES = {"planes": sized([0, 40, 80], quick=[0, 3])}
PLANES_OF_MANY = {"planes": PLANES["planes"][:2]}
PIECES, MOST_FEATURES_IN_PIECES = sized([None, 8, 16], quick=[None, 3]), 128
TREES = sized([0, 100], quick=[0, 3])
GROWING = ("n_folds", "planes")
TIMED_ROWS = 2000


def space_of(data: str) -> dict[str, list[Any]]:
    """Return the values that at most 10,000 rows choose from, the default first."""
    return SPACE | ({"n_folds": SPACE["n_folds"][:1]} if data in MANY_ROWS else {})


def unfitted(settings: dict[str, Any], X: Any, y: Any, seed: int) -> LocallyLinearEnsemble:
    """Return the ensemble of these settings for these rows."""
    size, strength, pieces = settings["size"], settings["strength"], settings.get("pieces")
    seen = {"metric": settings["metric"], "pieces": pieces, "standardize": pieces is not None}
    kinds: list[Any] = [
        ML3Classifier(round(size * MODELS), **seen),
        SAPLClassifier(round(size * ANCHORS), **seen),
    ]
    if planes := settings.get("planes"):
        coding = OrthogonalCoding(min(planes, np.linalg.matrix_rank(X)))
        kinds.append(LLSVMClassifier(coding, bias="both", **seen))
    for kind in kinds if strength != 1 else ():
        rule = clone(kind).set_params(alpha="scale", metric=None, max_iter=1, random_state=0)
        kind.set_params(alpha=strength * rule.fit(X, y).alpha_)
    if trees := settings.get("forest"):
        kinds.append(ForestClassifier(trees))
    return LocallyLinearEnsemble(
        kinds, n_folds=settings["n_folds"], random_state=seed, standardize=False
    )


def fold_error(X: Any, y: Any, fold: tuple[Any, Any], settings: dict[str, Any]) -> float:
    """Error of one fold in percent."""
    train, test = fold
    scaler = PREPARE[settings["prepare"]]().fit(X[train])
    A, B = scaler.transform(X[train]), scaler.transform(X[test])
    model = unfitted(settings, A, y[train], 0).fit(A, y[train])
    return 100 * (1 - model.score(B, y[test]))


def choose(
    problem: Problem,
    space: dict[str, list[Any]],
    notes: Notes,
    start: dict[str, Any] | None = None,
    rows: int = SUBSET,
) -> dict[str, Any]:
    """Choose setting by setting, by cross-validation; with all rows, by one fold of six."""
    X, y = subset(problem.X, problem.y, rows)
    n_folds, n_used = (FOLDS, FOLDS) if rows == SUBSET else (6, 1)
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))

    def error(settings: dict[str, Any]) -> float:
        found = notes.results(
            [(settings, fold) for fold in range(n_used)],
            lambda task: fold_error(X, y, folds[task[1]], task[0]),
        )
        return float(np.mean(found))

    chosen = start or {name: values[0] for name, values in space.items()}
    tried = {}
    for name, values in space.items():
        values = [chosen[name], *(value for value in values if value != chosen[name])]
        errors = [error(chosen | {name: value}) for value in values]
        tried[name] = dict(zip(map(str, values), errors, strict=True))
        chosen = chosen | {name: values[int(np.argmin(errors))]}
    return {"settings": chosen, "errors": tried}


def final(problem: Problem, settings: dict[str, Any], seed: int) -> list[Any]:
    """Error, seconds of the fit, us a row, bytes; errors of the first members of each kind."""
    scaler = PREPARE[settings["prepare"]]().fit(problem.X)
    A, B = scaler.transform(problem.X), scaler.transform(problem.X_test)
    start = time.process_time()
    model = unfitted(settings, A, problem.y, seed).fit(A, problem.y)
    seconds = time.process_time() - start
    error = 100 * (1 - model.score(B, problem.y_test))
    rows = B[:TIMED_ROWS]
    a_row = 1e6 * sapl.seconds_of(lambda: model.predict(rows)) / len(rows)
    return [error, seconds, a_row, len(pickle.dumps(model, protocol=5)),
            by_members(model, B, problem.y_test)]  # fmt: skip


def by_members(model: LocallyLinearEnsemble, X: Any, y: Any) -> list[float]:
    """Errors of the mean over the first members of each kind, at the shares of the whole."""
    by_kind = [list(members) for _, members in groupby(model.members_, key=type)]
    kept = np.flatnonzero(model.shares_)  # the others have no members
    scores, errors = 0.0, []
    for fold in range(model.n_folds):
        for kind, members in zip(kept, by_kind, strict=True):
            of_member = members[min(fold, len(members) - 1)].decision_function(X)  # one if merged
            scores = scores + model.shares_[kind] / model.units_[kind] * of_member
        winners = np.argmax(scores, axis=1)
        errors.append(100 * float(np.mean(model.classes_[winners] != y)))
    return errors


def kernel(problem: Problem, choice: dict[str, Any]) -> list[float]:
    """Error and microseconds a row of the tuned SVC."""
    A, B = sapl.prepared(problem, choice)
    made = sapl.System(sapl.ROWS["Kernel SVM"], problem.name, A, problem.y, choice["knobs"], 0)
    model = made.learner(10 ** (choice["k"] / 2)).fit(A, problem.y)
    rows = B[:TIMED_ROWS]
    seconds = sapl.seconds_of(lambda: model.predict(rows), 2)
    return [100 * (1 - model.score(B, problem.y_test)), 1e6 * seconds / len(rows)]


def chosen_of(data: str, cache: Cache) -> tuple[Problem, dict[str, Any]]:
    """Choose, or take what is stored."""
    problem, space = problem_named(data), space_of(data)

    def chosen(choice: str, space: dict[str, list[Any]], about: dict[str, Any], **more: Any) -> Any:
        key, settings = f"{data} | {SYSTEM} | {choice}", {"space": space} | about
        found = cache(
            key, settings, lambda: choose(problem, space, cache.notes(key, settings), **more)
        )
        return found["settings"]

    few = {"folds": FOLDS, "rows": SUBSET}
    now = chosen("choice", space, few)
    if data in MANY_ROWS:
        rows = len(problem.X)
        now = chosen("choice with all rows", WITH_ALL_ROWS, {"start": now}, start=now, rows=rows)
    planes = PLANES_OF_MANY if data in MANY_ROWS else PLANES
    now = now | {"planes": 0}
    now = chosen("choice of planes", planes, few | {"start": now}, start=now)
    if len(problem.X) <= SUBSET:
        space = space | planes
        now = chosen("choice, again", space, few | {"start": now}, start=now)
        most = [name for name in GROWING if now[name] == space[name][-1]]
        grown = {name: [now[name], 2 * now[name]] for name in most}
        now = chosen("choice, grown", grown, few | {"start": now}, start=now)
    in_pieces = PIECES if problem.X.shape[1] <= MOST_FEATURES_IN_PIECES else PIECES[:1]
    further = {"pieces": in_pieces, "forest": TREES}
    now = now | {name: values[0] for name, values in further.items()}
    now = chosen("choice of pieces and forest", further, few | {"start": now}, start=now)
    return problem, now


def runs_of(data: str, cache: Cache) -> list[list[Any]]:
    """Return the final fits, seed by seed."""
    problem, chosen = chosen_of(data, cache)
    run = partial(final, problem, chosen)
    return cache.each(f"{data} | {SYSTEM} | test", {"choice": chosen}, range(SEEDS), run)


def cell(data: str, cache: Cache) -> dict[str, Any]:
    """Errors, times and sizes; those of the SVC beside them."""
    problem, settings = chosen_of(data, cache)
    runs = runs_of(data, cache)
    choice = sapl.choice_of("Kernel SVM", problem, Cache(cache.path.parent / "sapl"))
    svc = cache(f"{data} | SVC", {"choice": choice}, partial(kernel, problem, choice))
    names = ("error %", "train s", "us a row", "bytes")
    columns = {name: [run[i] for run in runs] for i, name in enumerate(names)}
    return columns | {"chosen": settings, "rival's error %": [svc[0]], "rival's us a row": [svc[1]]}


def figure_1(data: str, cache: Cache) -> dict[str, Any]:
    """Error by members of each kind."""
    errors = [run[-1] for run in runs_of(data, cache)]
    x = range(1, len(errors[0]) + 1)
    return lines(x, {SYSTEM: errors}, "members of each kind", "test error, %")


def entries() -> Iterator[Entry]:
    """Yield the entries."""
    for data, minutes in MINUTES.items():
        run = partial(cell, data)
        yield Entry("ensemble", "official splits", data, SYSTEM, run, minutes, 3, True)
    for data in MINUTES:
        yield Entry("ensemble", "figure 1", data, "curves", partial(figure_1, data), 0.1, 4)
