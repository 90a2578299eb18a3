"""Which loss: errors, ranking and log loss of the hinge and the logistic loss.

Of each set's training split (at most 30,000 rows) 40 % are held out, three times. Sets of two
classes come first; "covtype 2" is the second kind of forest against all others, and "made" has
6 % of one class, and nowhere more than a third.

``LOCLIN_DATA=FOLDER python -m benchmarks.losses [SET ...]`` prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks._timing import pinned_threads
from benchmarks.cluster_page import table
from loclin import ML3Classifier, SAPLClassifier
from loclin.datasets import load

NAMES = [
    "heart", "sonar", "liver", "ionosphere", "wdbc", "pima", "german", "banana", "spambase",
    "ringnorm", "ijcnn1", "covtype 2", "covtype 4", "made",
    "vowel", "segment", "vehicle", "satimage", "optdigits", "letter",
]  # fmt: skip
MODELS: dict[str, Any] = {"ML3": ML3Classifier, "SAPL": SAPLClassifier}
LOSSES = "hinge", "logistic"
_MOST_ROWS = 30_000


def rare(n_rows: int) -> tuple[Any, Any]:
    """Return rows of two classes, of which one is rare everywhere."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 12))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + X[:, 4]
    return X, rng.random(n_rows) < 0.33 * expit(2 * score - 5)


def rows_of(name: str) -> tuple[Any, Any]:
    """Return rows of a set, and labels 0 .. c - 1."""
    if name == "made":
        X, labels = rare(_MOST_ROWS)
    elif name.startswith("covtype"):
        data = load("covtype_16pct")
        kinds = np.unique(data.y_train)
        X, labels = data.X_train, data.y_train == kinds[int(name.split()[1]) - 1]
    else:
        data = load(name)
        X, labels = data.X_train, data.y_train
    X, labels = X[:_MOST_ROWS], np.unique(labels[:_MOST_ROWS], return_inverse=True)[1]
    return (X.toarray() if sparse.issparse(X) else X).astype(float), labels


def measured(name: str, model: Any, loss: str) -> list[float]:
    """Return error in percent, area under the ROC curve (two classes) and log loss."""
    X, y = rows_of(name)
    found = []
    for seed in range(3):
        rows, out, of_rows, of_out = train_test_split(
            X, y, test_size=0.4, stratify=y, random_state=seed
        )
        fitted = model(loss=loss, random_state=seed).fit(rows, of_rows)
        said = fitted.predict_proba(out)
        area = roc_auc_score(of_out, said[:, 1]) if said.shape[1] == 2 else np.nan
        wrong = 100 * np.mean(fitted.predict(out) != of_out)
        found.append([wrong, area, log_loss(of_out, said)])
    return [float(one) for one in np.mean(found, axis=0)]


def main(arguments: list[str] | None = None) -> None:
    """Print a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, metavar="SET")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    head = ["set", "error: hinge", "logistic", "AUC: hinge", "logistic"]
    with pinned_threads(1):
        for name, model in MODELS.items():
            rows = []
            for of_set in options.names:
                (e, a, n), (f, b, m) = (measured(of_set, model, loss) for loss in LOSSES)
                areas = [f"{a:.3f}", f"{b:.3f}"] if np.isfinite(a) else ["", ""]
                rows.append([of_set, f"{e:.2f}", f"{f:.2f}", *areas, f"{n:.3f}", f"{m:.3f}"])
            print(f"{name}:\n\n{table([*head, 'log loss: hinge', 'logistic'], rows)}", flush=True)


if __name__ == "__main__":
    main()
