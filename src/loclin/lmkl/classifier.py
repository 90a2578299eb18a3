"""L-MKL with linear kernels:
localized multiple kernel learning (Gönen and Alpaydin, 2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loclin.engine.data import Floats
from loclin.engine.losses import Loss
from loclin.fitting.base import LocallyLinearClassifier
from loclin.lmkl.gates import (
    AlternatedModels,
    GatedModels,
)
from loclin.lmkl.recipe import LMKLRecipe


class LMKLClassifier(LocallyLinearClassifier):
    """Take this for a few linear models that pass smoothly
    into one another: localized MKL.

    What matters most is `n_models`, `alpha` and `pieces`. This is localized multiple
    kernel learning with linear kernels. A score is a sum of m linear models, weighed by
    the softmax of as many learned linear gates:

        score_y(x) = sum_j code_j(x) (w_yj . x + b_yj) + b_y
        code_j(x) = exp(v_j . x + v_j0) / sum_k exp(v_k . x + v_k0)

    Models and gates minimise one risk, one class against the rest with the same gates,
    either in turn, as the paper does it, or together by stochastic gradient descent:

        alpha/2 ||W||^2 + sum_i w_i sum_y loss(+-score_y(x_i)) / sum_i w_i

    The paper's kernels of other kinds are those of `KernelLMKLClassifier`: their scores
    are not those of linear models that act at a row.

    Parameters
    ----------
    n_models : int or None, default=None
        Number of linear models for each class, and of gates. None takes 20, or a tenth
        of the rows if that is less.
    solver : {"sgd", "alternating"}, default="sgd"
        "alternating" keeps the gates and solves the SVMs to a duality gap, by dual
        coordinate descent on the locally combined kernel. Then it takes a step along
        the gradient by the gates. An iteration solves one SVM, so it is for some
        thousands of rows. Only "sgd" learns from streams.
    bias : {"local", "global"}, default="local"
        Whether there is an intercept for each model or, as the paper has it, one for each
        class. Either is penalised like a weight.
    gate_lr : float, default=1.0
        Length of the first step of the gates, at least 0, over the root of the rows'
        mean squared norm. With "sgd" it is that of each gate, and later ones are
        ``1 / sqrt(sum of its squared gradients)`` (AdaGrad). With "alternating" it is
        that of all gates; later ones are half as long where the risk does not fall,
        else longer. With 0 the gates stay as they start: soft assignment to centres of
        k-means.
    loss : {"hinge", "squared_hinge", "logistic"} or Loss, default="hinge"
        The loss, as a function of the margin. "alternating" takes no "logistic".
    alpha : float, "auto" or "scale", default="auto"
        Strength of the L2 penalty, above 0: the larger, the simpler the model. On 50 to
        50,000 rows, "auto" multiplies "scale" by the factor, from 1/4 to 64, of lowest
        log loss on rows held out. "scale" is 0.05 times the mean squared norm of
        ``code (x) [x; 1]``, over n_samples.
    pieces : int, "auto" or None, default="auto"
        Maximum number of further columns for each feature. They rise from 0 to 1
        between two of its quantiles, so that models can bend along single features.
        "auto" takes 8 if they lower the log loss of held-out rows; None takes none.
        `local_model` stays exact; docs/parameters.md has the rest.
    standardize : bool, default=True
        Centre the features, and divide them by their standard deviations, as
        `StandardScaler` does. Sparse rows are not centred. Models and explanations are of
        the features as given.
    max_iter : int, default=1000
        Maximum number of iterations; a fit that needs more warns. An iteration is a
        pass over the rows. With "alternating" it is a step of the gates.
    round_rows : int or None, default=100_000
        Rows in an iteration, if there are more in all: each takes the next part of a
        shuffled pass. None takes all rows. Only "sgd".
    tol : float, default=1e-3
        A fit ends when `n_iter_no_change` iterations in a row each lower the objective by
        less than this. With "alternating" it is also the duality gap of each SVM, as a
        part of its objective.
    n_iter_no_change : int, default=5
        Iterations in a row without a gain of `tol`, after which a fit ends.
    batch_size : int or "auto", default="auto"
        Rows that are scored by one matrix product before any of them updates the models.
        "auto" is 64, or n_samples / 100 if that is less. Only "sgd".
    average : int, default=5
        Number of iterations, after `tol` is reached, whose models are averaged; 0 keeps
        the last model alone. Only "sgd" averages.
    eta0 : float, default=10.0
        First step of the models, in units of the inverse mean squared norm of their
        features. At most ``0.5 / batch_size`` for the squared hinge. Only "sgd".
    early_stopping : bool, default=False
        Hold out rows, and stop when they are predicted no better. Accuracy counts, by
        `tol`.
    validation_fraction : float, default=0.1
        Part of the rows that `early_stopping` holds out.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; multiplied with the sample weights.
    n_jobs : int or None, default=None
        Number of tasks done at once, in threads; -1 takes as many as there are
        processors. Tasks are the short fits that choose parameters and the temperature.
    calibrate : bool, default=True
        Find the temperature of the probabilities. False saves the short fits for it, as
        in a search by accuracy, and leaves no `predict_proba`.
    warm_start : bool, default=False
        Let `fit` go on from the fit before.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is drawn at random; a number makes fits repeatable.
    verbose : int, default=0
        If above 0, print how far a fit has come, a line at a time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    gate_coef_, gate_intercept_ : ndarray of shape (n_models, n_features) and (n_models,)
    history_ : ndarray of shape (n_models,)
        Only "sgd": sums of the squared gradients of the gates.
    dual_gap_ : ndarray of shape (s,)
        Only "alternating": gaps of the last SVMs, as parts of their objectives.
    local_coef_ : ndarray of shape (s, n_models, n_features)
        s is the number of scores: n_classes, but 1 for two classes.
    local_intercept_ : ndarray of shape (s, n_models)
    intercept_ : ndarray of shape (s,)
    alpha_ : float
    temperature_ : float or None
        Scores are divided by it; their softmax is `predict_proba`. It is chosen on
        held-out rows.
    objective_, validation_scores_ : list of float
        One value an iteration.
    n_iter_, n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Notes
    -----
    The paper's are the gates, the score with linear kernels, and "alternating", with the
    gradient of the SVMs' value by the gates. Penalised intercepts, gates that several
    classes share, the start and "sgd" are loclin's.

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
        loss: str | Loss = "hinge",
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
