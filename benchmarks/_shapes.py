"""Shape functions of an additive model of loclin beside those of an EBM without pairs.

``CSVMClassifier(1, pieces=16)`` has one linear model, and pieces, so that its score is a sum of
functions of single features. ``ML3Classifier(n_models=1)`` is no such sum: it takes the positive
part of each class's score.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from benchmarks._explainers import Floats
from loclin import CSVMClassifier
from loclin.inspection import EffectDisplay
from reproduction.defaults.table import ebm

SETS = "heart", "pima", "spambase"  # two classes
STRONGEST = 4
MIDDLE = 0.01, 0.99  # quantiles between which curves are compared


def own_curve(model: Any, X: Floats, feature: int) -> Floats:
    """Return what a feature adds to the log-odds of each row, less its mean."""
    display = EffectDisplay.from_estimator(
        model, X[:1], feature, values=X[:, feature], classes=tuple(model.classes_[::-1])
    )
    curve = np.interp(X[:, feature], display.values, display.scores[0, 0]) / model.temperature_
    return np.asarray(curve - curve.mean())


def beside_ebm(name: str, split: Any, folder: Path) -> dict[str, Any]:
    """Compare the strongest features' curves, draw them, and return the figures."""
    X, y, Z, labels = split
    own = CSVMClassifier(1, pieces=16, random_state=0).fit(X, y)
    other = ebm(0).set_params(interactions=0).fit(X, y)
    found: dict[str, Any] = {
        label: {
            "error": 100 * float(np.mean(model.predict(Z) != labels)),
            "log loss": float(log_loss(labels, model.predict_proba(Z))),
        }
        for label, model in (("CSVM", own), ("EBM", other))
    }
    told = np.asarray(other.eval_terms(X))
    theirs = {
        features[0]: told[:, k] - told[:, k].mean()
        for k, features in enumerate(other.term_features_)
    }
    ours = {k: own_curve(own, X, k) for k in theirs if np.ptp(X[:, k]) > 0}
    strength = {k: curve.std() + theirs[k].std() for k, curve in ours.items()}
    chosen = sorted(strength, key=strength.__getitem__, reverse=True)[:STRONGEST]
    found["curves"] = {f"x{k}": compared(X[:, k], ours[k], theirs[k]) for k in chosen}
    draw(name, [(k, X[:, k], ours[k], theirs[k]) for k in chosen], folder)
    return found


def compared(values: Floats, ours: Floats, theirs: Floats) -> dict[str, float]:
    """Return how alike two curves are at the rows, and how far apart where most rows are."""
    low, high = np.quantile(values, MIDDLE)
    middle = (values >= low) & (values <= high)
    return {
        "correlation": float(np.corrcoef(ours, theirs)[0, 1]),
        "apart": float(abs(ours - theirs)[middle].max()),
        "range": float(np.ptp(theirs[middle])),
    }


def draw(name: str, curves: list[tuple[int, Floats, Floats, Floats]], folder: Path) -> None:
    """Write a picture of the curves, with the rows as ticks below."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(9, 6.5), layout="constrained")
    for ax, (k, values, ours, theirs) in zip(axes.ravel(), curves, strict=False):
        at = np.argsort(values, kind="stable")
        ax.plot(values[at], ours[at], label="CSVM, one model and pieces", linewidth=2)
        ax.plot(values[at], theirs[at], label="EBM", drawstyle="steps-mid")
        ax.plot(values, np.full(len(values), 0.02), "|", color="0.4",
                transform=ax.get_xaxis_transform())  # fmt: skip
        ax.set(xlabel=f"x{k}, standard deviations from the mean", ylabel="log-odds added")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False)
    figure.suptitle(name)
    figure.savefig(folder / f"{name}.png", dpi=90)
    pyplot.close(figure)
