"""Ways to explain a prediction: exact, stable, fast, and faithful?

At most ``--train`` training rows of each set, standardised, and some test rows. What is explained
is the predicted class against the second, by scores, or the predicted class's probability. Errors
of explanations are shares of the spread of what they explain; the base stands beside the model's
output at the mean. Deletion replaces features by their means, those first that are said to add
most, and averages the predicted class's probability on the way; insertion starts at the mean.
"again" is the explainer with another seed, "refit" the model as well. KernelSHAP repeats fewer
rows. With ``--out``, pictures of shape functions beside an EBM's, and all numbers as JSON.

``LOCLIN_DATA=FOLDER python -m benchmarks.explanations [SET ...] [--rows 50] [--out FOLDER]``
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks import _shapes
from benchmarks._explainers import (
    LINEAR,
    LOCAL,
    PROBABILITY,
    WAYS,
    Explained,
    Explainer,
    Floats,
    Question,
    question,
)
from benchmarks._timing import pinned_threads
from reproduction.defaults.table import SYSTEMS, ebm, lightgbm, parts_of, stratified_rows

SETS = "heart", "spambase", "vowel", "satimage", "letter"
# Modules, and the packages that bring them.
LIBRARIES = {"lime": "lime", "shap": "shap", "interpret": "interpret-core",
             "lightgbm": "lightgbm", "matplotlib": "matplotlib"}  # fmt: skip
FEW = 10  # rows that KernelSHAP explains again
ORDERS = 5  # random orders of features
EBM_WORK = 10_000  # training rows times classes; with more, a fit of an EBM takes many minutes


MODELS: dict[str, Callable[[int], Any]] = {
    **{name: SYSTEMS[name] for name in LOCAL},
    LINEAR: lambda seed: LogisticRegression(max_iter=2000),
    "LightGBM": lightgbm,
    "EBM": ebm,
}


class Split(NamedTuple):
    """Standardised training rows and test rows, with their labels."""

    X: Floats
    y: Any
    X_test: Floats
    y_test: Any


def split_of(name: str, n_train: int) -> Split:
    """Return a split of a set, with about so many training rows at most."""
    X, y, Z, labels = parts_of(name, 0)
    some = stratified_rows(y, n_train, 0)
    drawn = np.random.default_rng(0).permutation(len(labels))
    scaler = StandardScaler().fit(X[some])
    return Split(scaler.transform(X[some]), y[some], scaler.transform(Z[drawn]), labels[drawn])


def spreads(asked: Question, X_test: Floats) -> Floats:
    """Return, for each row, the standard deviation over test rows of the number explained."""
    return (asked.outputs(X_test) @ asked.weights.T).std(axis=0)


def distance(one: Explained, other: Explained) -> float:
    """Return the L1 distance of two explanations in percent of the size of the first."""
    return float(100 * abs(one.added - other.added).sum() / abs(one.added).sum())


def tops_changed(one: Explained, other: Explained) -> float:
    """Return the percentage of rows whose largest contribution is another feature's."""
    first, second = (abs(each.added).argmax(axis=1) for each in (one, other))
    return float(100 * np.mean(first != second))


def areas(model: Any, rows: Floats, order: Any) -> tuple[float, float]:
    """Return the areas of deletion and insertion.

    Parameters
    ----------
    model : classifier
    rows : ndarray of shape (n_rows, d)
        Standardised, so that the mean row is zeros.
    order : ndarray of shape (n_rows, d)
        Features of each row, those first that are said to add most.
    """
    n_rows, d = rows.shape
    places = np.arange(n_rows)
    won = model.predict_proba(rows).argmax(axis=1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(d), order.shape), axis=1)
    found = np.zeros(2)
    for step in range(d + 1):
        gone = rank < step
        weight = (0.5 if step in (0, d) else 1.0) / d  # of the trapezoid rule
        for k, kept in enumerate((~gone, gone)):
            found[k] += weight * model.predict_proba(rows * kept)[places, won].mean()
    return float(found[0]), float(found[1])


def explained_figures(
    explain: Explainer, asked: Question, refit: Any, n_again: int, X_test: Floats
) -> dict[str, float]:
    """Return the figures of one way to explain one model."""
    explain(asked.first(1), 0)  # compiles
    start = time.process_time()
    found = explain(asked, 0)
    seconds = time.process_time() - start
    few = asked.first(n_again)
    begun = Explained(found.added[:n_again], found.base[:n_again])
    again, changed = explain(few, 1), explain(few._replace(model=refit), 1)
    at_mean = asked.weights @ asked.outputs(0 * asked.rows[:1])[0]
    units = spreads(asked, X_test) / 100
    lacks = asked.values() - found.added.sum(axis=1) - found.base
    deletion, insertion = areas(asked.model, asked.rows, np.argsort(-found.added, axis=1))
    return {
        "residual": float(np.mean(abs(lacks) / units)),
        "base off": float(np.mean(abs(found.base - at_mean) / units)),
        "again": distance(begun, again),
        "top again": tops_changed(begun, again),
        "refit": distance(begun, changed),
        "top refit": tops_changed(begun, changed),
        "ms": 1000 * seconds / len(asked.rows),
        "deletion": deletion,
        "insertion": insertion,
    }


def random_figures(model: Any, rows: Floats) -> dict[str, float]:
    """Return the areas of features in random order."""
    rng = np.random.default_rng(0)
    orders = [rng.random(rows.shape).argsort(axis=1) for _ in range(ORDERS)]
    deletion, insertion = np.mean([areas(model, rows, order) for order in orders], axis=0)
    return {"deletion": float(deletion), "insertion": float(insertion)}


def lines_of(data: str, split: Split, name: str, n_rows: int) -> Iterator[dict[str, Any]]:
    """Yield the figures of a model: of each way to explain it, and of random orders."""
    model, refit = (MODELS[name](seed).fit(split.X, split.y) for seed in (0, 1))
    rows = split.X_test[:n_rows]
    head = {"set": data, "model": name, "rows": len(rows)}
    error = 100 * float(np.mean(model.predict(split.X_test) != split.y_test))
    yield head | {"way": "random order", "error": error} | random_figures(model, rows)
    for way, (models, spaces, explain) in WAYS.items():
        for space in spaces if name in models else ():
            if way == "TreeSHAP" and space == PROBABILITY and len(model.classes_) > 2:
                continue  # what shap explains is not LightGBM's probability: it misses by far
            asked = question(model, split.X, rows, space)
            n_again = FEW if way == "KernelSHAP" else len(rows)
            found = explained_figures(explain, asked, refit, n_again, split.X_test[:1000])
            yield head | {"way": way, "space": space, "error": error} | found


FIGURES = ("error", "residual", "base off", "again", "top again", "refit", "top refit", "ms",
           "deletion", "insertion")  # fmt: skip
HEAD = ("| set | model | explained | by | error | residual | base off | again | top | refit | top "
        "| ms | deletion | insertion |")  # fmt: skip


def row_of(line: dict[str, Any]) -> str:
    """Return a line as a row of the table."""

    def of(key: str, digits: str) -> str:
        return format(line[key], digits) if key in line else ""

    cells = [line["set"], line["model"], line.get("space", ""), line["way"]]
    cells += [of("error", ".1f"), of("residual", ".2g"), of("base off", ".0f")]
    cells += [of(key, ".0f") for key in ("again", "top again", "refit", "top refit")]
    cells += [of("ms", ".3g"), of("deletion", ".3f"), of("insertion", ".3f")]
    return f"| {' | '.join(cells)} |"


def means(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return means over the sets, areas less those of random orders."""
    random = {(line["set"], line["model"]): line for line in lines if "space" not in line}
    found: dict[Any, list[dict[str, Any]]] = {}
    for line in lines:
        if "space" in line:
            floor = random[line["set"], line["model"]]
            less = {area: line[area] - floor[area] for area in ("deletion", "insertion")}
            found.setdefault((line["model"], line["space"], line["way"]), []).append(line | less)
    return [
        {"set": f"mean of {len(group)}", "model": model, "space": space, "way": way}
        | {key: float(np.mean([line[key] for line in group])) for key in FIGURES}
        for (model, space, way), group in found.items()
    ]


def lines_of_set(
    data: str, models: list[str], n_rows: int, n_train: int
) -> Iterator[dict[str, Any]]:
    """Yield the figures of all models on a set."""
    split = split_of(data, n_train)
    for name in models:
        if name != "EBM" or len(split.y) * len(np.unique(split.y)) <= EBM_WORK:
            yield from lines_of(data, split, name, n_rows)


def stored(found: dict[str, Any], folder: Path | None) -> None:
    """Write what there is so far."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "explanations.json").write_text(json.dumps(found, indent=1))


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Print the tables, and return their numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rows", type=int, default=50, help="test rows to explain")
    parser.add_argument("--train", type=int, default=2000, help="most rows to learn from")
    parser.add_argument("--shapes", nargs="*", default=list(_shapes.SETS), help="sets with curves")
    parser.add_argument("--out", type=Path, help="folder for JSON and pictures")
    options = parser.parse_args(arguments)
    missing = [package for module, package in LIBRARIES.items() if find_spec(module) is None]
    if missing:
        raise SystemExit(f"This benchmark needs: pip install {' '.join(missing)}")
    found: dict[str, Any] = {"table": [], "shapes": {}}
    with pinned_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(HEAD, f"|{'---|' * (HEAD.count('|') - 1)}", sep="\n")
        for data in options.sets:
            for line in lines_of_set(data, options.models, options.rows, options.train):
                found["table"].append(line)
                print(row_of(line), flush=True)
            stored(found, options.out)
        print("\nMeans over sets, areas less those of random orders:\n")
        print(*map(row_of, means(found["table"])), sep="\n")
        for name in options.shapes if options.out else ():
            split = split_of(name, options.train)
            found["shapes"][name] = _shapes.beside_ebm(name, split, options.out)
            stored(found, options.out)
    return found


if __name__ == "__main__":
    main()
