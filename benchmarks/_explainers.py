"""Ways to explain predictions, each as what features add to one number a row, and a base.

Features are standardised, so the training mean, with which loclin compares, is the row of zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SCORE, PROBABILITY = "score", "probability"
BOTH = SCORE, PROBABILITY
SAMPLES = 1000  # subsets of features that KernelSHAP draws, half of its default or fewer
BACKGROUND, CENTRES = 100, 20  # rows of TreeSHAP's background, and means of KernelSHAP's


class Question(NamedTuple):
    """Numbers to explain: for each row, a weighted sum of what the model says of the classes.

    Parameters
    ----------
    model : classifier
        Fitted.
    train, rows : ndarray of shape (n, d)
        The training rows, and those to explain.
    weights : ndarray of shape (n_rows, n_classes)
        Of scores, 1 for the predicted class and -1 for the second; of probabilities, 1 for the
        predicted class.
    space : {"score", "probability"}
    """

    model: Any
    train: Floats
    rows: Floats
    weights: Floats
    space: str

    def outputs(self, X: Floats) -> Floats:
        """Return what the model says of each class, (n, c)."""
        if self.space == PROBABILITY:
            return np.asarray(self.model.predict_proba(X), np.float64)
        if hasattr(self.model, "decision_function"):
            return of_both(self.model.decision_function(X))
        return of_both(self.model.predict(X, raw_score=True))  # LightGBM

    def values(self) -> Floats:
        """Return the numbers to explain, one for each row."""
        return (self.outputs(self.rows) * self.weights).sum(axis=1)

    def first(self, n_rows: int) -> Question:
        """Return the question about the first rows alone."""
        return self._replace(rows=self.rows[:n_rows], weights=self.weights[:n_rows])


class Explained(NamedTuple):
    """What each feature adds, (n_rows, d), and the base, (n_rows,)."""

    added: Floats
    base: Floats


Explainer = Callable[[Question, int], Explained]


def question(model: Any, train: Floats, rows: Floats, space: str) -> Question:
    """Ask for the predicted class: its score less that of the second, or its probability."""
    first, second = np.argsort(-model.predict_proba(rows), axis=1, kind="stable")[:, :2].T
    weights = np.zeros((len(rows), len(model.classes_)))
    at = np.arange(len(rows))
    weights[at, first] = 1.0
    if space == SCORE:
        weights[at, second] = -1.0
    return Question(model, train, rows, weights, space)


def of_both(scores: Any) -> Floats:
    """Give each of two classes half of their one score; leave several as they are."""
    scores = np.asarray(scores, np.float64)
    return np.stack([-scores, scores], axis=1) / 2 if scores.ndim == 1 else scores


def weighed(asked: Question, added: Floats, base: Floats) -> Explained:
    """Weigh what features add to each class: (n, c, d) and (n, c), or (c,)."""
    return Explained(
        np.einsum("nc,ncd->nd", asked.weights, added), (asked.weights * base).sum(axis=1)
    )


def by_local_model(asked: Question, seed: int) -> Explained:
    """Coefficients of the linear model that acts at a row, times the row."""
    coef, constant = asked.model.local_model(asked.rows, by_class=True)
    return weighed(asked, coef * asked.rows[:, None], constant)


def by_local_gradient(asked: Question, seed: int) -> Explained:
    """Slopes of the score at a row, times the row; the base is the score at the mean."""
    slopes = asked.model.local_gradient(asked.rows, by_class=True)
    return weighed(asked, slopes * asked.rows[:, None], asked.outputs(0 * asked.rows[:1])[0])


def by_contributions(asked: Question, seed: int) -> Explained:
    """Take what features add from the mean on, at the gating weights of the row."""
    found = asked.model.contributions(asked.rows, 0 * asked.rows[0], by_class=True)
    return weighed(asked, *found)


def one_by_one(asked: Question, explain: Callable[[Any, Any], tuple[Any, Any]]) -> Explained:
    """Explain rows in turn; `explain` takes a row and the function that gives its number."""
    found = [
        explain(row, lambda X, weights=weights: asked.outputs(X) @ weights)
        for row, weights in zip(asked.rows, asked.weights, strict=True)
    ]
    added, base = zip(*found, strict=True)
    return Explained(np.array(added, np.float64), np.array(base, np.float64))


def by_lime(asked: Question, seed: int) -> Explained:
    """LIME with its defaults, but for all features instead of ten."""
    from lime.lime_tabular import LimeTabularExplainer

    n_features = asked.train.shape[1]
    explainer = LimeTabularExplainer(asked.train, mode="regression", random_state=seed)

    def explain(row: Any, number: Any) -> tuple[Any, Any]:
        found = explainer.explain_instance(row, number, num_features=n_features)
        added = np.zeros(n_features)
        for feature, weight in found.local_exp[1]:
            added[feature] = weight
        return added, found.intercept[1]

    return one_by_one(asked, explain)


def by_kernel_shap(asked: Question, seed: int) -> Explained:
    """KernelSHAP of all features, its background summed up by k-means."""
    import shap

    background = shap.kmeans(asked.train, CENTRES)
    np.random.seed(seed)  # noqa: NPY002  (the generator that shap draws from)

    def explain(row: Any, number: Any) -> tuple[Any, Any]:
        explainer = shap.KernelExplainer(number, background)
        added = explainer.shap_values(row, nsamples=SAMPLES, l1_reg=False, silent=True)
        return added, explainer.expected_value

    return one_by_one(asked, explain)


def of_classes(asked: Question, values: Any, base: Any) -> Explained:
    """Weigh what a library returns: (n, d, c), or (n, d) of the second of two classes."""
    values, base = np.asarray(values, np.float64), np.ravel(base)
    if values.ndim == 2:
        half, rest = (0.5, 0.0) if asked.space == SCORE else (1.0, 1.0)
        values = half * np.stack([-values, values], axis=2)
        base = np.array([rest - half * base[0], half * base[0]])
    return weighed(asked, values.swapaxes(1, 2), base)


def by_linear_shap(asked: Question, seed: int) -> Explained:
    """Shapley values of a linear model, of features taken as independent."""
    import shap

    explainer = shap.LinearExplainer(asked.model, asked.train)
    return of_classes(asked, explainer.shap_values(asked.rows), explainer.expected_value)


def by_tree_shap(asked: Question, seed: int) -> Explained:
    """Shapley values of trees: by their paths, or, of probabilities, by a background."""
    import shap

    if asked.space == SCORE:
        explainer = shap.TreeExplainer(asked.model)
    else:
        drawn = np.random.default_rng(seed).permutation(len(asked.train))[:BACKGROUND]
        explainer = shap.TreeExplainer(asked.model, asked.train[drawn], model_output="probability")
    return of_classes(asked, explainer.shap_values(asked.rows), explainer.expected_value)


def by_terms(asked: Question, seed: int) -> Explained:
    """Terms of an EBM, as its local explanation has them; a pair's is shared by its features."""
    terms = asked.model.eval_terms(asked.rows)
    added = np.zeros((len(terms), asked.rows.shape[1], *terms.shape[2:]))
    for k, features in enumerate(asked.model.term_features_):
        for feature in features:
            added[:, feature] += terms[:, k] / len(features)
    return of_classes(asked, added, asked.model.intercept_)


LINEAR = "logistic regression"
LOCAL = "ML3Classifier", "SAPLClassifier", "LocallyLinearEnsemble"
# For each way: which models it explains, in which spaces, and what does it.
WAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Explainer]] = {
    "local_model": (LOCAL, (SCORE,), by_local_model),
    "local_gradient": (LOCAL, (SCORE,), by_local_gradient),
    "contributions": (LOCAL, (SCORE,), by_contributions),
    "LIME": (LOCAL, BOTH, by_lime),
    "KernelSHAP": (LOCAL, BOTH, by_kernel_shap),
    "LinearSHAP": ((LINEAR,), (SCORE,), by_linear_shap),
    "TreeSHAP": (("LightGBM",), BOTH, by_tree_shap),
    "EBM's terms": (("EBM",), (SCORE,), by_terms),
}
