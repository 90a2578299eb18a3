"""Probabilities: the softmax of the scores over one temperature
(one sigmoid a label for several).

``p_y(x) = (1 - e) exp(score_y(x) / T) / (sum of the same over the c classes) + e / c``,
so that the label of greatest probability is the one predicted. T minimises the log loss
of n rows that were not trained on, and e = 1 / (n + 2): they cannot tell that rows more
rare than that, such as outliers far away from all others, are predicted well.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils.metaestimators import available_if

from loclin.engine.data import Floats, Labels, Matrix, Rows
from loclin.engine.procedure import Predictor
from loclin.engine.shapes import Shape
from loclin.engine.threads import side_by_side
from loclin.engine.warned import quiet
from loclin.fitting.atomic import snapshot
from loclin.fitting.recipe import Recipe
from loclin.fitting.rows import part_of
from loclin.fitting.temperature import (
    COLDEST,
    LogLoss,
    rescaled,
    smoothing_of,
    spread,
    temperature_of,
)
from loclin.fitting.trials import decisions_of, short_fit

_FOLDS, _FEW_ROWS = 5, 2500  # where rows are that few, each is held out once
_HELD_OUT, _MOST_ROWS = 0.1, 50_000  # else this part of so many rows is held out, once
_MOST_SCORED = 500  # a stream scores no more rows of a call
_ROWS_REMEMBERED = 5000  # the temperature remembers about so many rows of a stream
MOST_SCORES = 2**21  # of rows held out, one for each class
_TELLS_NOTHING = 100.0  # at so many spreads of the scores, a temperature tells nothing
_STEPS, _NEAR = 20, 1e-2  # Newton takes no more steps; one as short is the last


def few_of(
    places: NDArray[np.intp], n_classes: int, n_parts: int = 1
) -> NDArray[np.intp]:
    """Return rows, or so many of them, at random,
    that the scores of all parts take little room.
    """
    most = max(1, MOST_SCORES // (n_classes * n_parts))
    if len(places) <= most:
        return places
    return np.sort(np.random.default_rng(0).permutation(places)[:most])


def labelwise(decisions: Floats, y: Labels, weights: Floats) -> Any:
    """Return the temperature; where rows have several labels one for each."""
    if y.ndim == 1:
        return temperature_of(decisions, y, weights)
    return np.array(
        [temperature_of(decisions[:, k], y[:, k], weights) for k in range(y.shape[1])]
    )  # fmt: skip


def held_out_temperature(
    recipe: Recipe, learned: Predictor, rows: Rows, watched: Rows | None
) -> tuple[Any, int]:
    """Return the temperature of a fit, and the number of rows that told it.

    From rows that were watched; else from those that short fits of the same kind hold
    out. The temperature is in proportion to the scores, and those of a short fit are
    smaller. Where a class or a fold has too few rows, the rows of the fit itself must do.

    Parameters
    ----------
    recipe : Recipe
        Of the fit.
    learned : Predictor
    rows : Rows
        Of the fit.
    watched : Rows or None
    """
    test: NDArray[np.intp] = np.empty(0, np.intp)
    decisions: Floats = np.empty(0)
    if watched is None:
        if len(rows.y) > _MOST_ROWS:
            rng = np.random.default_rng(recipe.seed)
            sample = rng.choice(len(rows.y), _MOST_ROWS, replace=False)
            sample.sort()
            rows = Rows(rows.X[sample], rows.y[sample], rows.weights[sample])
        with quiet(), suppress(ValueError):  # the fit itself has warned
            test, decisions = _held_out(recipe, learned, rows)
    if not len(test) or not np.isfinite(decisions).all():
        told = rows if watched is None else watched
        sample = few_of(np.arange(len(told.y)), len(recipe.classes))
        X, y, weights, _ = told if len(sample) == len(told.y) else part_of(told, sample)
        return labelwise(decisions_of(recipe, learned, X), y, weights), len(y)
    of_short = labelwise(decisions, rows.y[test], rows.weights[test])
    here = spread(decisions_of(recipe, learned, rows.X[test]))
    return rescaled(of_short, here, spread(decisions)), len(test)


def _held_out(
    recipe: Recipe, learned: Predictor, rows: Rows
) -> tuple[NDArray[np.intp], Floats]:
    """Return rows, and what short fits that did not see them say of them."""
    trial, n_classes = recipe.trial(rows, learned), len(recipe.classes)
    splits = list(splits_for(rows, recipe.seed))
    splits = [(train, few_of(test, n_classes, len(splits))) for train, test in splits]
    n_iterations = trial.n_calibrating * (trial.longer if len(splits) == 1 else 1)
    n_iterations, short = (
        min(n_iterations, recipe.max_iter),
        replace(recipe, **trial.changes),
    )
    if not splits:
        return np.empty(0, np.intp), np.empty(0)

    def decisions(train: NDArray[np.intp], test: NDArray[np.intp]) -> Floats:
        with np.errstate(all="ignore"):
            fitted = short_fit(short, part_of(rows, train), n_iterations)
            return decisions_of(short, fitted, rows.X[test])

    by_fold = side_by_side(decisions, splits, recipe.n_jobs)
    return np.concatenate([test for _, test in splits]), np.concatenate(by_fold)


def splits_for(
    rows: Rows, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield rows to train on and to hold out; none where a class of few rows has too few."""
    n, y = len(rows.y), rows.y
    if y.ndim == 2:
        order = np.random.default_rng(seed).permutation(n)
        for part in np.array_split(order, _FOLDS)[: 1 if n > _FEW_ROWS else None]:
            if 0 < len(part) < n:
                yield np.setdiff1d(order, part), part
        return
    counts = np.bincount(y)
    if n <= _FEW_ROWS:
        n_folds = min(_FOLDS, int(counts[counts > 0].min()))
        if n_folds > 1:
            folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
            yield from folds.split(y, y)
        return
    common = np.flatnonzero(counts[y] >= _FOLDS)
    n_test = max(int(_HELD_OUT * len(common)), np.count_nonzero(counts >= _FOLDS))
    split = StratifiedShuffleSplit(1, test_size=n_test, random_state=seed)
    _, test = next(split.split(common, y[common]))
    yield np.setdiff1d(np.arange(n), common[test]), common[test]


class StreamedTemperature(NamedTuple):
    """The temperature of a stream:
    of scores before their rows are learned, the last ones most.

    The most likely one by the log loss of some rows of each call, where the calls before
    have left it, as a normal distribution whose precision is theirs.

    Parameters
    ----------
    log_inverse : float
    precision : float
    n_rows : int
        That have told it, and those of the first call.
    """

    log_inverse: float = 0.0
    precision: float = 0.0
    n_rows: int = 0

    @property
    def temperature(self) -> float:
        """Return the temperature."""
        return math.exp(-self.log_inverse)

    def after(self, decisions: Floats, y: Labels, weights: Floats) -> StreamedTemperature:
        """Return what some more rows make of it; of scores that tell nothing, nothing."""
        unit = spread(decisions)
        if not 0 < unit < math.inf:
            return self
        start = self
        if not self.precision:
            best = temperature_of(decisions, y, weights)
            # The scores tell nothing, as those of a model of one row or one class do.
            if best >= _TELLS_NOTHING * unit:
                return self._replace(n_rows=self.n_rows + len(y))
            start = self._replace(log_inverse=-math.log(best), precision=1e-9)
        with np.errstate(over="ignore", invalid="ignore"):
            return start._moved(decisions.astype(np.float64), y, weights)

    def _moved(
        self, decisions: Floats, y: Labels, weights: Floats
    ) -> StreamedTemperature:
        """Return the most likely temperature, by Newton's steps of one at most."""
        n, log_inverse, curvature = len(y), self.log_inverse, 0.0
        smoothing = smoothing_of(self.n_rows + n)
        for _ in range(_STEPS):
            loss = LogLoss.of(decisions * math.exp(log_inverse), y, weights)
            loss = loss.by_trust(1.0, smoothing)
            curvature = n * loss.curvature(1.0) + 1e-9
            if not math.isfinite(curvature):
                return self
            away = log_inverse - self.log_inverse
            slope = n * loss.slope(1.0) + self.precision * away
            step = max(-1.0, min(1.0, -slope / (self.precision + curvature)))
            log_inverse += step
            if abs(step) < _NEAR:
                break
        return StreamedTemperature(
            max(math.log(COLDEST), min(-math.log(COLDEST), log_inverse)),
            (self.precision + curvature)
            * min(1.0, _ROWS_REMEMBERED / (_ROWS_REMEMBERED + n)),
            self.n_rows + n,
        )


def _is_calibrated(classifier: Probabilities) -> bool:
    if not classifier.calibrate or getattr(classifier, "temperature_", 1.0) is None:
        raise AttributeError(
            f"{type(classifier).__name__} finds no probabilities with calibrate=False; set "
            "calibrate=True and fit again."
        )
    return True


class Probabilities:
    """What a classifier with scores says of their probabilities."""

    calibrate: bool = True  # is a temperature found
    # None where the fit has found no temperature.
    temperature_: float | Annotated[NDArray[np.float64], Shape("c", np.float64)] | None
    smoothing_: float

    @abstractmethod
    def decision_function(self, X: ArrayLike) -> Floats:
        """Scores of the rows."""

    @abstractmethod
    def _class_scores(self, X: Matrix, *, ranks: bool = False) -> Floats:
        """Scores of the scorers, (n, s), of rows as the model sees them."""

    @abstractmethod
    def _decisions(self, by_scorer: Floats) -> Floats:
        """Scorers to decisions, on axis 1."""

    @available_if(_is_calibrated)
    @snapshot
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities of the classes:
        the softmax of the scores over `temperature_`, smoothed.

        A share `smoothing_` is spread evenly over the classes, so that no label is
        impossible.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; rows sum to one. Where a row has several labels,
            that of each label, (n_samples, n_labels).
        """
        scores, spread_evenly = (
            self._over_temperature(X),
            getattr(self, "smoothing_", 0.0),
        )
        if self._multilabel:
            sharp = expit(scores)
        elif scores.ndim == 1:
            sharp = np.stack([expit(-scores), expit(scores)], axis=1)
        else:
            sharp = softmax(scores, axis=1)
        return sharp * (1 - spread_evenly) + spread_evenly / self._n_outcomes(sharp)

    @available_if(_is_calibrated)
    @snapshot
    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithms of the probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        return np.log(self.predict_proba(X))

    # How the temperature is found.

    _multilabel: bool
    # The temperature of a stream; several labels have several.
    _temperatures: tuple[StreamedTemperature, ...] = ()

    def _calibrate(
        self, recipe: Recipe, learned: Predictor, rows: Rows, watched: Rows | None
    ) -> None:
        """Set the temperature of a fit."""
        if not self.calibrate:
            self.temperature_, self.smoothing_, self._temperatures = None, 0.0, ()
            return
        self.temperature_, n_rows = held_out_temperature(recipe, learned, rows, watched)
        self.smoothing_, self._temperatures = smoothing_of(n_rows), ()

    def _calibrated_by(self, rows: Rows) -> tuple[StreamedTemperature, ...]:
        """Return the temperatures of a stream with some more rows,
        which it is about to learn.
        """
        if not self.calibrate:
            return ()
        n_labels = rows.y.shape[1] if rows.y.ndim == 2 else 1
        temperature = getattr(self, "temperature_", None)
        if temperature is None:
            return (StreamedTemperature(n_rows=len(rows.y)),) * n_labels
        known = self._temperatures
        if not known:  # a fit came before
            of_fit = np.broadcast_to(temperature, n_labels)
            n_rows = round(1 / getattr(self, "smoothing_", 1.0)) - 2
            known = tuple(
                StreamedTemperature(-math.log(t), _ROWS_REMEMBERED / 10, max(0, n_rows))
                for t in of_fit
            )
        sample = slice(None, None, -(-len(rows.y) // _MOST_SCORED))
        with np.errstate(all="ignore"):
            decisions = self._decisions(self._class_scores(rows.X[sample]))
        y, weights = rows.y[sample], rows.weights[sample]
        if y.ndim == 1:
            return (known[0].after(decisions, y, weights),)
        return tuple(
            one.after(decisions[:, k], y[:, k], weights) for k, one in enumerate(known)
        )

    def _take_temperatures(self, streamed: tuple[StreamedTemperature, ...]) -> None:
        """Set the temperature of a stream."""
        if not streamed:
            self.temperature_, self.smoothing_, self._temperatures = None, 0.0, ()
            return
        now = np.array([one.temperature for one in streamed])
        self._temperatures, self.temperature_ = (
            streamed,
            now if self._multilabel else float(now[0]),
        )
        self.smoothing_ = smoothing_of(streamed[0].n_rows)

    def _n_outcomes(self, probabilities: NDArray[Any]) -> int:
        return 2 if self._multilabel else probabilities.shape[1]

    def _over_temperature(self, X: ArrayLike) -> Floats:
        # Files of earlier versions know no temperature.
        scores = self.decision_function(X)
        scores = (scores / getattr(self, "temperature_", 1.0)).astype(
            scores.dtype, copy=False
        )
        if not np.isfinite(scores.sum()):  # of rows far away from all others
            most = float(np.finfo(scores.dtype).max) / 4
            scores = np.clip(np.nan_to_num(scores, nan=-most), -most, most)
        return scores
