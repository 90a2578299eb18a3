"""Calls of a classifier, and what is promised of them."""

from __future__ import annotations

import re
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import loclin
from loclin.codings import OrthogonalCoding, TangentCoding
from loclin.fitting.features import PLAIN
from tests.robustness.fuzz.draws import (
    class_weights_of_zero,
    draw_model,
    draw_rows,
    draw_shape,
    options,
)

_RAISERS = (Path(loclin.__file__).parent, Path(sklearn.__file__).parent / "utils")


class Broken(Exception):
    """A promise that was not kept."""


class Caller:
    """Calls a classifier and holds what comes back against the promises."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.far_apart = bool(rng.random() < 0.2)
        self.model = draw_model(rng, self.far_apart)
        self.X, self.y, self.weights = draw_rows(rng, self.far_apart)
        if not self.far_apart and "class_weight" in self.model.get_params() and rng.random() < 0.1:
            class_weights_of_zero(rng, self.model, self.y)
        self.outcomes: list[str] = []
        self.fitted = False  # by the call that runs

    def run(self) -> list[str]:
        """Make some calls; return what came of each."""
        streams = [self.stream] * 2 + [self.reshape] if _can_stream(self.model) else []
        calls = [self.fit] * 3 + streams + [self.wrong] + [self.change]
        for _ in range(int(self.rng.integers(1, 6))):
            self.guarded(calls[self.rng.integers(len(calls))])
        return self.outcomes

    def fit(self) -> None:
        """Fit the rows."""
        self.model.fit(self.X, self.y, self.weights)
        self.fitted = True
        # the last iterate may be any, and tangents' codes are lengths: both know a scale
        averaged = getattr(self.model, "average", 1) > 0
        lengths = isinstance(getattr(self.model, "coding", None), TangentCoding)
        known = self.far_apart and averaged and not lengths
        self.check(learned=known and largest(self.X) > 0)
        if self.weights is not None and not self.weights.all() and self.rng.random() < 0.5:
            self.check_left_out()

    def stream(self) -> None:
        """Learn some of the rows, twice."""
        order = self.rng.permutation(len(self.y))
        X = _some(self.X, order)
        for rows in np.array_split(np.arange(len(self.y)), self.rng.integers(1, 4)):
            weights = None if self.weights is None else self.weights[order][rows]
            self.model.partial_fit(_some(X, rows), self.y[order][rows], np.unique(self.y), weights)
        self.check()

    def reshape(self) -> None:
        """Change what shapes a model while its stream runs: the next call must say so."""
        model, changed = self.model, draw_shape(self.rng, self.model)
        runs = vars(model).get("_stream") or vars(model).get("members_")
        if self.far_apart or not runs or not changed:
            return
        (name,) = changed
        before = model.get_params(deep=False)[name]
        try:
            model.set_params(**changed).partial_fit(self.X, self.y)
            raise Broken(f"{name} was changed on a stream, and nothing said")
        finally:
            model.set_params(**{name: before})

    def check_left_out(self) -> None:
        """Check that rows of weight zero count as if they were not there."""
        if getattr(self.model, "warm_start", False):
            return
        kept = self.weights > 0
        X = _some(self.X, kept)
        left = clone(self.model).fit(X, self.y[kept], self.weights[kept])
        if not np.array_equal(left.classes_, self.model.classes_):
            raise Broken("a class of weight zero is a class")
        said, expected = self.model.decision_function(X), left.decision_function(X)
        if not np.array_equal(said, expected):
            raise Broken(f"rows of weight zero change scores by {abs(said - expected).max():.1e}")

    def wrong(self) -> None:
        """Make a call that must fail."""
        n, kind = len(self.y), self.rng.integers(6)
        if kind == 0:
            self.model.fit(self.X, self.y[:-1])
        elif kind == 1:
            self.model.fit(self.X, np.zeros(n, int))
        elif kind == 2:
            self.model.fit(self.X, self.y, -np.ones(n))
        elif kind == 3:
            self.model.fit(self.X, np.array(["a", 1, None] * n, dtype=object)[:n])
        elif kind == 4:
            known = self.model.get_params()
            count = next(one for one in ("max_iter", "n_neighbors", "n_folds") if one in known)
            clone(self.model).set_params(**{count: 10**30}).fit(self.X, self.y)
        else:
            clone(self.model).predict(self.X)
        raise Broken("a wrong call did not raise")

    def change(self) -> None:
        """Change a parameter."""
        flags = [False, True]
        changed = options(self.rng, max_iter=[1, 3], warm_start=flags, calibrate=flags)
        known = self.model.get_params()
        if not self.far_apart:
            self.model.set_params(**{name: changed[name] for name in changed if name in known})

    def guarded(self, call: Any) -> None:
        """Make a call; check what it has changed, raised and warned of."""
        self.fitted = False
        given = [_bytes(part) for part in (self.X, self.y, self.weights)]
        parameters, before = self.model.get_params(), dict(vars(self.model))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                call()
                self.outcomes.append(f"{call.__name__}: done")
            except (ValueError, TypeError, AttributeError) as error:
                _check_raised_on_purpose(error)
                self.outcomes.append(f"{type(error).__name__}: {_without_values(str(error))}")
                # calls before the one that failed have learned, or what failed was a check's
                if call.__name__ == "stream" or self.fitted:
                    before = None
            if before is not None and self.outcomes[-1].split(":")[0] != call.__name__:
                self.check_unchanged(before, parameters)
        _check_warnings(warned)
        if given != [_bytes(part) for part in (self.X, self.y, self.weights)]:
            raise Broken("rows, labels or weights were changed")

    def check_unchanged(self, before: dict[str, Any], parameters: dict[str, Any]) -> None:
        """Check that a failed call has left the estimator as it was."""
        after = vars(self.model)
        if after.keys() != before.keys() or self.model.get_params() != parameters:
            raise Broken("a failed call has changed the estimator")
        if not all(after[name] is before[name] for name in after):
            raise Broken("a failed call has replaced attributes")

    def check(self, *, learned: bool = False) -> None:
        """Check the model on rows that weigh: finite, arg max of scores, exact local models."""
        model, X, y, weights = self.model, self.X, self.y, self.weights
        if weights is not None:
            weighs = weights > weights.max() * np.finfo(np.float32).eps ** 2
            X, y, weights = _some(X, weighs), y[weighs], weights[weighs]
        scores = model.decision_function(X)
        if not np.isfinite(scores).all():
            raise Broken("scores are not finite")
        binary = scores.ndim == 1
        found = (scores > 0).astype(int) if binary else scores.argmax(axis=1)
        labels = model.predict(X)
        ties = binary and (scores == 0).any()
        if not ties and not np.array_equal(labels, model.classes_[found]):
            raise Broken("labels are not the arg max of the scores")
        if hasattr(model, "local_model"):
            self.check_local_models(X, scores)
        if getattr(model, "temperature_", None) is not None and model.calibrate:
            self.check_probabilities(X, found)
        right = np.mean(labels == y)
        if learned and right < 0.9 and not _outweighs_intercepts(model, X):
            near_one = X * (20.0 / largest(X))
            usual = clone(model).fit(near_one, y, weights).score(near_one, y)
            if right < usual - 0.1:
                raise Broken(f"classes far apart: accuracy {right:.2f}, at scale 1 {usual:.2f}")

    def check_probabilities(self, X: Any, found: Any) -> None:
        """Check that they are probabilities, and that no label has more than the one predicted."""
        P = self.model.predict_proba(X)
        if not ((P > 0).all() and np.allclose(P.sum(axis=1), 1.0, atol=1e-5)):
            raise Broken("probabilities are not above 0 with a sum of 1")
        if (P[np.arange(len(P)), found] < P.max(axis=1) * (1 - 1e-5)).any():
            raise Broken("a label has more probability than the one predicted")

    def check_local_models(self, X: Any, scores: Any) -> None:
        """Check that the scores are those of the local models, to the rounding of their parts."""
        model = self.model
        rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
        rows = rows.astype(scores.dtype)
        coef, intercept = model.local_model(X)
        found = np.einsum("n...d,nd->n...", coef, rows) + intercept
        centre = getattr(model, "_features", PLAIN).centre  # intercepts take it in, to rounding
        rows = np.abs(rows) + (0 if centre is None else np.abs(centre))
        if not hasattr(model, "local_weights"):
            parts = np.einsum("n...d,nd->n...", _sizes(coef), rows)
            _check_sums(found, scores, parts + np.abs(intercept))
            return
        codes = model.local_weights(X)
        codes = np.abs(codes.toarray()[:, None] if sparse.issparse(codes) else codes)
        parts = np.einsum("smd,nd->nsm", _sizes(model.local_coef_), rows)
        parts = (codes * (parts + np.abs(model.local_intercept_))).sum(axis=2)
        parts = parts.sum(axis=1) if scores.ndim == 1 else parts
        # two scorers of two classes may have intercepts that cancel out
        of_scorers = (
            np.abs(model.intercept_).sum() if scores.ndim == 1 else np.abs(model.intercept_)
        )
        _check_sums(found, scores, parts + np.abs(intercept) + of_scorers)


def _sizes(numbers: Any) -> Any:
    """Return sizes in which the rounding of numbers is an epsilon: subnormal ones have more."""
    return np.maximum(np.abs(numbers), np.finfo(numbers.dtype).tiny)


def _check_sums(found: Any, scores: Any, parts: Any) -> None:
    """Check sums of parts that have these sizes, to their rounding."""
    error = float((np.abs(found - scores) / (parts + np.abs(scores) + 1e-30)).max())
    if error > (1e-4 if scores.dtype == np.float32 else 1e-10):
        raise Broken(f"local models miss the scores by {error:.1e}")


def _outweighs_intercepts(model: Any, X: Any) -> bool:
    """Return whether the optimum needs intercepts that its penalty keeps small.

    Codes of planes change sign within a class; without an intercept so does the score. Descents
    reach such an optimum too, where features as they are, not standardized, are large.
    """
    if not isinstance(getattr(model, "coding", None), OrthogonalCoding):
        return False
    return model.solver == "dual_cd" or (not model.standardize and largest(X) > 1e3)


def largest(X: Any) -> float:
    """Return the largest absolute value."""
    return float(abs(np.asarray(X) if isinstance(X, pd.DataFrame) else X).max())


def _some(X: Any, rows: Any) -> Any:
    """Return some of the rows, in any layout."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows] if rows.dtype != bool else X[rows]
    return X.tocsr()[rows] if sparse.issparse(X) else X[rows]


def _can_stream(model: Any) -> bool:
    return hasattr(type(model), "partial_fit")


def _bytes(part: Any) -> Any:
    if part is None:
        return None
    if sparse.issparse(part):
        return part.data.tobytes(), part.indices.tobytes(), part.indptr.tobytes()
    return np.asarray(part).tobytes()


def _check_raised_on_purpose(error: BaseException) -> None:
    """Raise where it is not a `raise` of loclin's or of scikit-learn's validation."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    ours = any(Path(frame.filename).is_relative_to(folder) for folder in _RAISERS)
    if not ours or not (frame.line or "").startswith("raise"):
        raise Broken(f"raw {type(error).__name__}: {error}") from error


def _check_warnings(warned: list[warnings.WarningMessage]) -> None:
    for warning in warned:
        if issubclass(warning.category, ConvergenceWarning):
            continue
        if issubclass(warning.category, UserWarning) and "loclin" in warning.filename:
            continue
        if issubclass(warning.category, UserWarning) and str(warning.message).startswith("n_"):
            continue
        raise Broken(f"{warning.category.__name__}: {warning.message} ({warning.filename})")


def _without_values(message: str) -> str:
    """Return the message without numbers and values: errors of a kind have one."""
    first = message.split("\n")[0]
    return re.sub(r"[-+]?\d[\d.e+-]*|\[[^]]*\]|'[^']*'|=\S+", "*", first)[:70]
