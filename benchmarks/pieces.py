"""Features in pieces, on rows held out of the training rows of the defaults table's dense sets.

A third of at most ``--rows`` training rows is held out, in two splits of each set. Errors (with
half a row added) and log losses are over those without pieces: geometric means over sets and
splits. Then: how often "auto" takes pieces, and what the better of both would have.

``LOCLIN_DATA=FOLDER python -m benchmarks.pieces [SET ...] [--models ML3 ...] [--pieces 8 auto]``
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import loclin
from benchmarks._timing import pinned_threads
from loclin.codings import OrthogonalCoding
from reproduction.defaults.table import SETS, parts_of


def planes(**parameters: Any) -> Any:
    """LL-SVM with planes, as the ensemble has it, unfrozen."""
    coding = OrthogonalCoding("auto", whiten=False, norm="l2")
    return loclin.LLSVMClassifier(coding, bias="both", metric=None, **parameters)


MODELS: dict[str, Any] = {
    "ML3": loclin.ML3Classifier,
    "SAPL": loclin.SAPLClassifier,
    "LL-SVM": loclin.LLSVMClassifier,
    "planes": planes,
    "L3M": loclin.L3MClassifier,
    "CSVM": loclin.CSVMClassifier,
    "LDKL": loclin.LDKLClassifier,
    "L-MKL": loclin.LMKLClassifier,
}


def split_of(name: str, n_rows: int, repeat: int) -> tuple[Any, ...]:
    """Return rows to learn from and rows held out, with their labels; none of sparse sets."""
    X, y, _, _ = parts_of(name, repeat)
    if sparse.issparse(X):
        return ()
    X = X.astype(np.float32)
    if len(y) > n_rows:
        X, _, y, _ = train_test_split(X, y, train_size=n_rows, random_state=repeat, stratify=y)
    return tuple(train_test_split(X, y, test_size=1 / 3, random_state=repeat, stratify=y))


def measured(model: Any, parts: tuple[Any, ...]) -> dict[str, Any]:
    """Return error, log loss and processor seconds of a fit, and whether it has pieces."""
    learned, held_out, y, labels = parts
    start = time.process_time()
    model.fit(learned, y)
    seconds = time.process_time() - start
    wrong = np.sum(model.predict(held_out) != labels)
    loss = log_loss(labels, model.predict_proba(held_out), labels=model.classes_)
    return {"error": float((wrong + 0.5) / len(labels)), "log_loss": float(loss),
            "seconds": seconds, "took": model.pieces_ is not None}  # fmt: skip


def summary(found: list[dict[str, Any]], name: str, option: Any) -> str:
    """Return a line of geometric means of what one option costs and brings one model."""
    rows = [one[name] for one in found if name in one]
    plain, other = [one["None"] for one in rows], [one[str(option)] for one in rows]

    def ratio(what: str, best: bool = False) -> float:
        pairs = zip(plain, other, strict=True)
        logs = [np.log(min(b[what], a[what] if best else np.inf) / a[what]) for a, b in pairs]
        return float(np.exp(np.mean(logs)))

    losses = [b["log_loss"] / a["log_loss"] for a, b in zip(plain, other, strict=True)]
    return (
        f"{name:8}{option!s:6}{len(rows):4} splits: error {ratio('error'):.3f}, "
        f"log loss {ratio('log_loss'):.3f} (worse in {np.sum(np.array(losses) > 1)}, at most "
        f"{max(losses):.2f}; the better of both {ratio('log_loss', best=True):.3f}), "
        f"seconds {ratio('seconds'):.2f}, taken in {sum(one['took'] for one in other)}"
    )


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each model and option."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(SETS))
    parser.add_argument("--models", nargs="+", default=["ML3", "SAPL", "LL-SVM"])
    parser.add_argument("--pieces", nargs="+", default=["4", "8", "16", "auto"])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", help="file to write all of it to")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    numbers = [one if one == "auto" else int(one) for one in options.pieces]
    found: list[dict[str, Any]] = []
    with pinned_threads(1):
        for data, repeat in product(options.names, range(options.repeats)):
            parts = split_of(data, options.rows, repeat)
            if not parts:
                continue
            found.append({"set": data, "repeat": repeat})
            for name in options.models:
                found[-1][name] = {
                    str(option): measured(MODELS[name](pieces=option, random_state=0), parts)
                    for option in (None, *numbers)
                }
    for name, option in product(options.models, numbers):
        print(summary(found, name, option))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
