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
from scipy.optimize import root_scalar
from scipy.special import expit, logsumexp, softmax
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils.metaestimators import available_if

from loclin.engine.data import Floats, Labels, Matrix, Rows
from loclin.engine.procedure import Predictor
from loclin.engine.shapes import Shape
from loclin.engine.threads import side_by_side
from loclin.engine.warned import quiet
from loclin.fitting.atomic import snapshot
from loclin.fitting.recipe import Recipe
from loclin.fitting.rows import near_one, part_of
from loclin.fitting.trials import decisions_of, short_fit

_FOLDS, _FEW_ROWS = 5, 2500  # where rows are that few, each is held out once
_HELD_OUT, _MOST_ROWS = 0.1, 50_000  # else this part of so many rows is held out, once
_MOST_SCORED = 500  # a stream scores no more rows of a call
_ROWS_REMEMBERED = 5000  # the temperature remembers about so many rows of a stream
MOST_SCORES = 2**21  # of rows held out, one for each class
_TELLS_NOTHING = 100.0  # at so many spreads of the scores, a temperature tells nothing
_STEPS, _NEAR = 20, 1e-2  # Newton takes no more steps; one as short is the last
_TRUST_STEPS = 20  # of the mixture
_COLDEST = 1e-300  # the lowest temperature; its inverse is the highest


class LogLoss(NamedTuple):
    """Log loss of scores as a function of the inverse temperature.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
        Less the true class's, so that the true class has zeros.
    others : ndarray of shape (n,)
        Their mean over the classes: what a label that might be any would have.
    weights : ndarray of shape (n,)
    """

    scores: Floats
    others: Floats
    weights: Floats

    @classmethod
    def of(cls, decisions: Floats, y: Labels, weights: Floats) -> LogLoss:
        """Return that of decisions, (n,) or (n, c), for labels 0 .. c - 1."""
        by_class = decisions.astype(np.float64)
        if by_class.ndim == 1:
            by_class = np.stack([np.zeros_like(by_class), by_class], axis=1)
        leads = by_class - by_class[np.arange(len(y)), y][:, None]
        weights = near_one(weights)
        return cls(leads, leads.mean(axis=1), weights / weights.sum())

    def slope(self, inverse: float) -> float:
        """Return the derivative; one label of n + 2 might be any, so that it has a zero."""
        expected = np.einsum(
            "nc,nc->n", softmax(inverse * self.scores, axis=1), self.scores
        )
        return float(
            self.weights @ expected - self.weights @ self.others / (len(expected) + 2)
        )

    def by_row(self, inverse: float, smoothing: float = 0.0) -> Floats:
        """Return the rows' shares of the log loss."""
        losses = logsumexp(inverse * self.scores, axis=1)
        if smoothing:
            uniform = smoothing / self.scores.shape[1]
            losses = -np.log((1 - smoothing) * np.exp(-losses) + uniform)
        return self.weights * losses

    def best(self) -> float:
        """Return the logarithm of the inverse temperature of least loss."""
        low, high = math.log(1e-3), math.log(1e3)
        if self.slope(math.exp(low)) >= 0:  # scores that tell nothing, or lie
            return low
        if self.slope(math.exp(high)) <= 0:
            return high
        result = root_scalar(
            lambda log: self.slope(math.exp(log)), bracket=(low, high), xtol=1e-3
        )
        return float(result.root)

    def by_trust(self, inverse: float, smoothing: float) -> LogLoss:
        """Return the loss with rows weighed by how much they speak of the scores.

        A label is one of the softmax, or of any class: smoothing tells how often. This is
        the E step of that mixture.
        """
        right = (1 - smoothing) * np.exp(-logsumexp(inverse * self.scores, axis=1))
        trust = right / (right + smoothing / self.scores.shape[1])
        return self._replace(weights=self.weights * trust)

    def curvature(self, inverse: float) -> float:
        """Return the second derivative: the mean variance of the scores."""
        p = softmax(inverse * self.scores, axis=1)
        mean = np.einsum("nc,nc->n", p, self.scores)
        square = np.einsum("nc,nc->n", p, self.scores**2)
        return float(self.weights @ (square - mean**2))


def spread(decisions: Floats) -> float:
    """Mean size of the rows' decisions, about their mean over the classes.

    Not the root of the mean square: a held-out row far from all others has scores of any
    size.
    """
    of_rows = decisions.astype(np.float64)
    power = math.frexp(float(np.abs(of_rows).max(initial=0.0)))[1]  # squares may overflow
    of_rows = np.ldexp(of_rows, -power)
    mean = np.mean(np.abs(of_rows) if of_rows.ndim == 1 else np.std(of_rows, axis=1))
    return float(np.ldexp(mean, power))


def rescaled(temperature: Any, here: float, there: float) -> Any:
    """Return the temperature of scores of this spread, given that of others and theirs."""
    new_temperature = temperature * (here / (there or 1.0) or 1.0)
    return np.clip(new_temperature, _COLDEST, 1 / _COLDEST)


def temperature_of(
    decisions: Floats, y: Labels, weights: Floats, smoothing: float | None = None
) -> float:
    """Return the temperature of least log loss;
    between 1/1000 and 1000 of the scores' spread.

    The loss is that of probabilities with this smoothing; None: with that of so many
    rows. So a few rows far from all others, whose scores may be of any size, do not make
    the rest less certain.
    """
    smoothing = smoothing_of(len(y)) if smoothing is None else smoothing
    unit = spread(decisions)
    if not 0 < unit < math.inf:
        return 1.0
    loss = LogLoss.of(decisions / unit, y, weights)
    log_inverse = loss.best()
    for _ in range(_TRUST_STEPS if smoothing else 0):
        before = log_inverse
        log_inverse = loss.by_trust(math.exp(before), smoothing).best()
        if abs(log_inverse - before) < _NEAR:
            break
    return float(rescaled(math.exp(-log_inverse), unit, 1.0))


def log_losses(
    decisions: Floats, y: Labels, weights: Floats, smoothing: float = 0.0
) -> Floats:
    """Return the rows' shares of the log loss at the temperature
    that is best for all of them.

    Infinite where decisions overflow. With smoothing, it is the loss of the probabilities
    that are given: a row far from all others cannot outweigh the rest.
    """
    if not np.isfinite(decisions).all():
        return np.full(len(y), math.inf)
    loss = LogLoss.of(decisions, y, weights)
    temperature = temperature_of(decisions, y, weights, smoothing)
    return loss.by_row(1.0 / temperature, smoothing)


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


def smoothing_of(n_rows: float) -> float:
    """Return the share of probability that is spread over all classes: Laplace's rule."""
    return 1.0 / (n_rows + 2.0)


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
            max(math.log(_COLDEST), min(-math.log(_COLDEST), log_inverse)),
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
