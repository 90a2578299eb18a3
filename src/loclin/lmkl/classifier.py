"""L-MKL with linear kernels: localized multiple kernel learning (Gönen and Alpaydin, 2008)."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from loclin.engine.data import Floats
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.checks import check_loss_for, check_number, check_option
from loclin.fitting.strength import check_strength
from loclin.lmkl.gates import (
    AlternatedModels,
    GatedModels,
)
from loclin.lmkl.recipe import LMKLRecipe


class LMKLClassifier(LocallyLinearClassifier):
    """Localized multiple kernel learning with linear kernels: linear models under softmax gates.

    A score is a sum of m linear models, weighed by the softmax of as many learned linear gates:

        score_y(x) = sum_j code_j(x) (w_yj . x + b_yj) + b_y
        code_j(x) = exp(v_j . x + v_j0) / sum_k exp(v_k . x + v_k0)

    Models and gates minimise one risk, one class against the rest with the same gates, either in
    turn, as the paper does it, or together by stochastic gradient descent:

        alpha/2 ||W||^2 + sum_i w_i sum_y loss(+-score_y(x_i)) / sum_i w_i

    The paper's kernels of other kinds are those of `KernelLMKLClassifier`: their scores are not
    those of linear models that act at a row.

    Parameters
    ----------
    n_models : int or None, default=None
        Linear models of a class, and gates. None takes 20, or a tenth of the rows if that is less.
    solver : {"sgd", "alternating"}, default="sgd"
        "alternating" solves the SVMs with the gates at rest to a duality gap, by dual coordinate
        descent on the locally combined kernel, and then steps along the gradient by the gates: an
        iteration is one SVM, so it is for some thousands of rows. Only "sgd" learns from streams.
    bias : {"local", "global"}, default="local"
        Whether there is an intercept for each model or, as the paper has it, one for each class.
        Either is penalised like a weight.
    gate_lr : float, default=1.0
        First step of the gates, at least 0, over the root of the rows' mean squared norm: with
        "sgd" of each gate, later ones being ``1 / sqrt(sum of its squared gradients)`` (AdaGrad);
        else of all of them, later ones half as long where the risk does not fall, else longer. 0
        leaves the gates as they start: soft assignment to centres of k-means.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        Of the margin; "alternating" takes no "logistic".
    alpha : float, "auto" or "scale", default="auto"
        L2 strength, above 0. "scale" takes 0.05 times the mean squared norm of ``code (x) [x; 1]``,
        over n_samples; "auto" multiplies it, on 50 to 50,000 rows, by 1/4, 1, 4, 16 or 64,
        whichever has the least log loss on rows held out of short fits.
    pieces : int, "auto" or None, default="auto"
        Columns beside each feature that rise from 0 to 1 between two of its quantiles, so that
        models can bend along single features. A number is the most pieces of a feature. "auto"
        takes 8 where they lower the log loss of held-out rows: of at most 128 features, where
        `standardize` is on, and neither a frozen coding nor a whole metric is asked for. Features
        of two values, and sparse rows, have none. `local_model` stays exact and of the features as
        given. In `local_coef_` and anchors, the pieces' columns follow those of the features
        (`pieces_`). Fits take half as long again, predictions several times as long. A stream takes
        quantiles of its first rows ("auto": none).
    standardize : bool, default=True
        Centre the features, and divide them by their standard deviations, as `StandardScaler` does.
        Sparse rows are divided only, and not even that where all have unit length, as those of
        texts. Attributes and explanations are of the features as given: units do not matter.
    max_iter : int, default=1000
        Most passes over the rows, or steps of the gates.
    round_rows : int or None, default=100_000
        Rows of an iteration of "sgd" where there are more: it takes the next so many of one
        shuffled pass after another. None takes all rows in every iteration.
    tol : float, default=1e-3
        Iterations end when the objective (with early stopping: minus the held-out accuracy) has not
        fallen by `tol` for `n_iter_no_change` in a row; then come `average` more. Also the duality
        gap of each SVM, as a part of its objective.
    n_iter_no_change : int, default=5
        See `tol`.
    batch_size : int or "auto", default="auto"
        Rows scored together by "sgd". "auto" takes 64, and n_samples / 100 below 6,400 rows.
    average : int, default=5
        Average the iterates of so many last passes of "sgd"; 0 takes the last iterate.
    eta0 : float, default=10.0
        First step of the models by "sgd", over the mean squared norm of their features; at most
        ``0.5 / batch_size`` for the squared hinge.
    early_stopping : bool, default=False
        Hold out rows, and stop when accuracy there no longer rises.
    validation_fraction : float, default=0.1
        Part held out.
    class_weight : dict, "balanced" or None, default=None
    n_jobs : int or None, default=None
        Short fits, which choose alpha and the temperature, at once in threads; -1 for all
        processors. The result does not depend on it.
    calibrate : bool, default=True
        Find the temperature of the probabilities. False saves its short fits, for searches by
        accuracy, and leaves no `predict_proba`.
    warm_start : bool, default=False
        Go on from the fit before.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    gate_coef_, gate_intercept_ : ndarray of shape (n_models, n_features) and (n_models,)
    history_ : ndarray of shape (n_models,)
        Squared gradients of the gates, summed; of "sgd".
    dual_gap_ : ndarray of shape (s,)
        Of the last SVMs, as parts of their objectives; of "alternating".
    local_coef_ : ndarray of shape (s, n_models, n_features)
        Of s scorers: n_classes, but 1 for two classes.
    local_intercept_ : ndarray of shape (s, n_models)
    intercept_ : ndarray of shape (s,)
    alpha_ : float
    temperature_ : float or None
        What scores are divided by before their softmax is `predict_proba`: that of least log loss
        on rows held out; on a stream, before they are learned.
    objective_, validation_scores_ : list of float
        One value an iteration.
    n_iter_, n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Notes
    -----
    The paper's are the gates, the score with linear kernels, and "alternating", with the gradient
    of the SVMs' value by the gates. Penalised intercepts, gates that several classes share, the
    start and "sgd" are loclin's.

    References
    ----------
    M. Gönen and E. Alpaydin. Localized multiple kernel learning. ICML, 2008.

    Examples
    --------
    >>> from loclin import LMKLClassifier
    >>> from loclin.datasets import make_xor
    >>> X, y = make_xor(600, random_state=0)
    >>> model = LMKLClassifier(n_models=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _recipe_type = LMKLRecipe
    _fits_may_change = frozenset({"gate_lr"})
    _fitted_models = (GatedModels, AlternatedModels)

    def __init__(
        self,
        n_models: int | None = None,
        *,
        solver: str = "sgd",
        bias: str = "local",
        gate_lr: float = 1.0,
        loss: str = "hinge",
        alpha: float | str = "auto",
        pieces: int | str | None = "auto",
        standardize: bool = True,
        max_iter: int = 1000,
        round_rows: int | None = 100_000,
        tol: float = 1e-3,
        n_iter_no_change: int = 5,
        batch_size: int | str = "auto",
        average: int = 5,
        eta0: float = 10.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        calibrate: bool = True,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_models = n_models
        self.solver = solver
        self.bias = bias
        self.gate_lr = gate_lr
        self.loss = loss
        self.alpha = alpha
        self.pieces = pieces
        self.standardize = standardize
        self.max_iter = max_iter
        self.round_rows = round_rows
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.batch_size = batch_size
        self.average = average
        self.eta0 = eta0
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.calibrate = calibrate
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    gate_coef_: Floats
    gate_intercept_: Floats

    def _check_parameters(self) -> None:
        if self.n_models is not None:
            check_number("n_models", self.n_models, Integral, low=1, open_high=True, hint="or None")
        check_option("solver", self.solver, {"sgd", "alternating"})
        check_option("bias", self.bias, {"local", "global"})
        check_number("gate_lr", self.gate_lr, low=0, open_high=True)
        procedure = "descent" if self.solver == "sgd" else "dual"
        check_loss_for(procedure, self.loss, hint=f" with solver={self.solver!r}")
        check_strength("alpha", self.alpha)
        check_number("eta0", self.eta0, low=0, open_low=True)

    def _stream_refusal(self) -> str | None:
        if self.solver == "sgd":
            return None
        return "partial_fit needs solver='sgd'; solver='alternating' must see all rows."
