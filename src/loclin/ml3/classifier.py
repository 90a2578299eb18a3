"""ML3: multiclass latent locally linear support vector machine
(Fornoni, Caputo, Orabona 2013).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loclin.engine.losses import Loss
from loclin.fitting.base import LocallyLinearClassifier
from loclin.ml3.cccp import PooledModels
from loclin.ml3.recipe import ML3Recipe


class ML3Classifier(LocallyLinearClassifier):
    """Take this first: of loclin's single models it ranks best with default settings.

    What matters most is `alpha`, `n_models` and `pieces`. This is ML3, the multiclass
    latent locally linear SVM (Fornoni, Caputo and Orabona, 2013). Every class has
    `n_models` linear models. A sample's score for a class combines that class's models
    with the weights that favour it most,

        score_y(x) = max of code . (W_y x + b_y)  over  code >= 0, ||code||_p <= 1
                   = || max(W_y x + b_y, 0) ||_q,   1/p + 1/q = 1      (equations 7, 14 and 16)

    so that no anchors, regions or neighbours are needed. The classes compete: training
    minimises

        alpha/2 ||W||^2 + sum_i w_i loss(score_{y_i}(x_i) - max_{y != y_i} score_y(x_i)) / sum_i w_i

    (equation 9, with a mean instead of a sum) by the concave-convex procedure: each
    iteration freezes the codes of the true classes and takes one pass of stochastic
    gradient descent over the convex problem that is left (equation 13, Algorithm 2).

    Parameters
    ----------
    n_models : int or None, default=None
        Number of linear models for each class. Accuracy rises with it, as far as the
        data allow; prediction costs n_classes * n_models * n_features multiply-adds.
        None means 16, or fewer where classes have few rows: one for every two rows that
        a class has on average, at least one. On a stream, whose rows are not known,
        None means 16.
    p : float, default=1.5
        Exponent in [1, inf] of the ball that the codes live in. With 1 the best model
        acts alone; with inf all positive ones are added up. The paper has 1.5 for all
        its data. At 4/3, 1.5, 2 and inf no power has to be computed.
    init : {"random", "kmeans"} or coding, default="random"
        Codes (gating weights) of the starting pass. "random" draws them on the unit
        sphere of the p-norm, one for a sample and all classes. "kmeans" is one-hot by
        the clusters of k-means. A transformer of `loclin.codings` with `n_models`
        anchors gives the positive part of its codes, scaled onto the sphere.
    s0 : float, default=1.0
        What each iteration adds to the step counter, in passes: iteration k begins at
        ``s0 * k * n_samples``. With 1 it goes on counting; the paper's 2 lets steps
        fall twice as fast.
    revive : bool, default=True
        Give a sample whose true class has no positive response to that class's strongest
        model. Its maximising code is zero and could never pull the class back: without
        this (the paper) whole classes can stay dead.
    loss : {"hinge", "logistic"} or Loss, default="hinge"
        The loss, as a function of the margin. The paper has the hinge.
    alpha : float, "auto" or "scale", default="auto"
        Strength of the L2 penalty, above 0: the larger, the simpler the model. On 50 to
        50,000 rows, "auto" multiplies "scale" by the factor, from 1/4 to 64, of lowest
        log loss on rows held out. "scale" is ``0.05 (mean ||x||^2 + 1) / n_samples``. The
        paper's lambda, for a sum of losses, is ``n_samples * alpha``.
    metric : {"auto", "diagonal", "full"}, int or None, default="auto"
        How the penalty and distances weigh the features. "diagonal" weighs each feature
        by how much the model uses it. "full" also weighs combinations of features; a
        number keeps that many of them, the most used. "auto" takes the diagonal if it
        lowers the log loss of held-out rows, else None. None counts all alike;
        docs/parameters.md has the rest.
    pieces : int, "auto" or None, default="auto"
        Maximum number of further columns for each feature. They rise from 0 to 1
        between two of its quantiles, so that models can bend along single features.
        "auto" takes 8 if they lower the log loss of held-out rows; None takes none.
        `local_model` stays exact; docs/parameters.md has the rest.
    standardize : bool, default=True
        Centre the features, and divide them by their standard deviations, as
        `StandardScaler` does. Sparse rows are not centred. Models and explanations are of
        the features as given.
    penalize_intercept : bool, default=True
        Penalise intercepts too, as weights of a constant feature 1. The paper does.
    max_iter : int, default=1000
        Maximum number of iterations; a fit that needs more warns. An iteration is a
        pass over the rows. They come after the starting pass; most fits need 30 to 100,
        the paper takes 30.
    round_rows : int or None, default=50_000
        Rows in an iteration, if there are more in all: each takes the next part of a
        shuffled pass. None takes all rows. Each batch then freezes its own codes. Steps
        begin at a fifteenth of `eta0`, and fall as if a round were all rows (two rounds
        where there are no more). The default is lower, 50,000: SAPL's anchors need
        more. On 10^6 rows this has half the error of the paper's whole passes, in less
        than a twentieth of the time.
    tol : float, default=1e-3
        A fit ends when `n_iter_no_change` iterations in a row each lower the objective by
        less than this.
    n_iter_no_change : int, default=5
        Iterations in a row without a gain of `tol`, after which a fit ends. In rounds it
        is twice as many, as the objective of rounds is a mean over some, and late.
    batch_size : int or "auto", default="auto"
        Rows that are scored by one matrix product before any of them updates the
        models. "auto" is 64, or n_samples / 100 if that is less. With 1 it is the
        paper's algorithm to the letter. More rows reach the same errors, several times
        faster, as long as a pass has a hundred batches or so.
    average : int, default=5
        Number of iterations, after `tol` is reached, whose models are averaged; 0 keeps
        the last model alone. The paper averages one.
    eta0 : float, default=10.0
        First step of the models, in units of the inverse mean squared norm of their
        features. With the default `alpha` this is the paper's ``s0 = 2 n_samples``,
        present from the start; inf lets the starting pass begin with steps of
        ``1 / alpha``.
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
        The labels.
    local_coef_ : ndarray of shape (n_classes, n_models, n_features)
        The linear models.
    local_intercept_ : ndarray of shape (n_classes, n_models)
        Their intercepts.
    intercept_ : ndarray of shape (n_classes,)
        Zeros: ML3 has no global intercept.
    alpha_ : float
        The L2 strength used.
    feature_weights_ : ndarray of shape (n_features,)
        How much each standardized feature counts: roots of the metric's diagonal.
        Absent with ``metric=None``.
    metric_ : ndarray of shape (n_features, n_features)
        Only with a full metric: squared distances are ``(x - a)' metric_ (x - a)``, of
        features that are standardized.
    temperature_ : float or None
        Scores are divided by it; their softmax is `predict_proba`. It is chosen on
        held-out rows.
    smoothing_ : float
        Share of probability that is divided equally among the classes: 1 / (n + 2),
        where n rows were held out.
    objective_ : list of float
        Running estimate of the objective, one for each iteration.
    validation_scores_ : list of float
        Accuracy on the rows held out, one for each iteration; empty without
        `early_stopping`.
    n_iter_ : int
        Iterations done.
    t_ : int
        Rows passed over, the starting pass included.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` was a data frame.

    Notes
    -----
    On a stream (`partial_fit`) each batch freezes its own codes, so that the size of the
    calls hardly matters. The first ``20 * n_models * n_classes`` rows get random codes.
    ``alpha="auto"`` follows its rule with the rows seen so far; steps start at
    ``1 / (mean ||x||^2 + 1)`` and fall as alpha tells, which for "auto" is not at all.
    The fitted models are a running average of the iterates that forgets the early ones.
    Memory does not grow with the number of calls. After `fit`, `partial_fit` goes on with
    the fit's alpha and step.

    References
    ----------
    M. Fornoni, B. Caputo and F. Orabona. Multiclass latent locally linear support vector
    machines. Asian Conference on Machine Learning, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from loclin import ML3Classifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = ML3Classifier(random_state=0).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.97)
    True
    """

    _recipe_type = ML3Recipe
    _fitted_models = (PooledModels,)

    def __init__(
        self,
        n_models: int | None = None,
        *,
        p: float = 1.5,
        init: Any = "random",
        s0: float = 1.0,
        revive: bool = True,
        loss: str | Loss = "hinge",
        alpha: float | str = "auto",
        metric: str | int | None = "auto",
        pieces: int | str | None = "auto",
        standardize: bool = True,
        penalize_intercept: bool = True,
        max_iter: int = 1000,
        round_rows: int | None = 50_000,
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
        self.p = p
        self.init = init
        self.s0 = s0
        self.revive = revive
        self.loss = loss
        self.alpha = alpha
        self.metric = metric
        self.pieces = pieces
        self.standardize = standardize
        self.penalize_intercept = penalize_intercept
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

    alpha_: float
    t_: int

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if not self._is_fitted():
            return None
        if sizes["s"] != sizes["c"]:
            return f"there are models of {sizes['s']} classes, but {sizes['c']} classes"
        return None
