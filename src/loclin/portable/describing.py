"""From a fitted classifier, or a pipeline, to its description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from loclin.portable.description import Description
from loclin.portable.words import (
    Array,
    Coder,
    ConstantCode,
    TangentCodes,
    Term,
    Transformed,
)

SCALERS = StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler


class Predicts(Protocol):
    """A classifier whose scores have words."""

    classes_: Array
    n_features_in_: int
    _multilabel: bool

    def _terms(self) -> tuple[Term, ...]: ...


def describe(model: Predicts | Pipeline) -> Description:
    """Describe what a fitted classifier computes.

    Parameters
    ----------
    model : classifier or Pipeline
        One of loclin, fitted; or a pipeline that ends in one, behind steps that change
        each column by itself, linearly: `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`,
        `RobustScaler`. Where other steps are in front, transform the rows first, and
        describe the last step alone.

    Returns
    -------
    description : Description
        It holds the model's arrays, not copies of them.

    Raises
    ------
    ValueError
        If a part has no words: iterative codings (`LocalCoordinateCoding`), transformers
        of others, classifiers that keep training rows or kernels.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    A description computes in doubles. Of a pipeline that is given float32 rows,
    scikit-learn's scaler rounds to float32: where means are large beside the spread,
    digits are lost there.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from loclin import L3MClassifier
    >>> from loclin.portable import describe
    >>> X, y = load_iris(return_X_y=True)
    >>> found = describe(L3MClassifier(2, random_state=0).fit(X, y))
    >>> type(found.terms[0].coder).__name__, found.terms[0].coef.shape
    ('LinearGates', (3, 2, 4))
    """
    return described(model, _in_words)


def described(model: Any, in_words: Callable[[Term], Term]) -> Description:
    """Return the description of a model whose terms are said in such words."""
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        return _of_pipeline(model, in_words)
    if not hasattr(model, "_terms"):
        raise ValueError(_no_words(model))
    check_is_fitted(model, "classes_")
    names = getattr(model, "feature_names_in_", None)
    return Description(
        terms=tuple(map(in_words, model._terms())),
        classes=model.classes_,
        n_features=int(model.n_features_in_),
        multilabel=bool(model._multilabel),
        temperature=getattr(model, "temperature_", None),
        smoothing=float(getattr(model, "smoothing_", 0.0)),
        feature_names=None if names is None else tuple(map(str, names)),
    )


def coder_of(coding: Any) -> Coder:
    """Return the coder that a fitted coding is: its own words, or `Transformed`."""
    coding = coding.estimator if isinstance(coding, FrozenEstimator) else coding
    says_its_words = "_coder" in vars(type(coding))  # a subclass may transform otherwise
    return coding._coder() if says_its_words else Transformed(coding)


def _in_words(term: Term) -> Term:
    """Return the term with arrays that all readers know.

    Raises
    ------
    ValueError
        If its codes come from a transformer.
    """
    coder = term.coder
    inner = coder.weights if isinstance(coder, TangentCodes) else coder
    if isinstance(inner, Transformed):
        raise ValueError(_no_words(inner.transformer))
    return with_dense_codes(term)


def with_dense_codes(term: Term) -> Term:
    """Return the term with constant codes as an array."""
    coder = term.coder
    if isinstance(coder, ConstantCode) and not isinstance(coder.codes, np.ndarray):
        return replace(term, coder=ConstantCode(coder.codes.toarray()))
    return term


def _no_words(part: Any) -> str:
    return (
        f"{type(part).__name__} has no words: what it computes is not described by gates, anchors, "
        "trees or pooling of linear models."
    )


def _of_pipeline(pipeline: Pipeline, in_words: Callable[[Term], Term]) -> Description:
    steps = steps_of(pipeline)
    strange = next((one for one in steps[:-1] if scaling_of(one) is None), None)
    if strange is not None:
        raise ValueError(
            f"{_no_words(strange)} Transform the rows first, and describe the last step alone."
        )
    found, n_features = described(steps[-1], in_words), pipeline.n_features_in_
    centre, scale = np.zeros(n_features), np.ones(n_features)
    for step in steps[:-1]:
        of_step: Any = scaling_of(step)
        # (x - centre) / scale, then (z - mean) / std
        centre = centre + scale * of_step[0]
        scale = scale * of_step[1]
    names = getattr(pipeline, "feature_names_in_", None)
    first = centre if centre.any() else None, None if (scale == 1).all() else scale
    return replace(
        found,
        terms=tuple(term.behind(*first) for term in found.terms),
        feature_names=found.feature_names if names is None else tuple(map(str, names)),
    )


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a model, those of pipelines inside too; a classifier alone is one."""
    if not isinstance(model, Pipeline):
        return [model]
    taken = [step for _, step in model.steps if step not in (None, "passthrough")]
    return [one for step in taken for one in steps_of(step)]


def scaling_of(step: Any) -> tuple[Any, Any] | None:
    """Return the centre and the scale of a fitted scaler, which gives
    ``(x - centre) / scale``; None of what is none.
    """
    if not isinstance(step, SCALERS) or getattr(step, "clip", False):
        return None
    if isinstance(step, MinMaxScaler):
        return -step.min_ / step.scale_, 1.0 / step.scale_
    if isinstance(step, StandardScaler):
        centre = step.mean_ if step.with_mean else None
    else:
        centre = getattr(step, "center_", None)
    scale = step.scale_
    return 0.0 if centre is None else centre, 1.0 if scale is None else scale
