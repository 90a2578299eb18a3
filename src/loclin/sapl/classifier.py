"""LLC-SAPL: locally linear classifiers with supervised anchor
point learning (Mao et al., 2015).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from loclin.engine.data import Floats
from loclin.engine.losses import Loss
from loclin.fitting.base import LocallyLinearClassifier
from loclin.sapl.anchors import AnchoredModels
from loclin.sapl.recipe import SAPLRecipe


class SAPLClassifier(LocallyLinearClassifier):
    """Take this for the lowest error after tuning on larger sets: LLC-SAPL.

    Anchors, which lie in the data, are learned with the models. What matters most is
    `alpha`, `n_anchors` and `bandwidth`. A score is a sum of m linear models, weighted by
    localised soft assignment of the row to the anchors v_j (equations 2 and 11 of the
    paper):

        score_y(x) = sum_j code_j(x) (w_yj . x + b_yj)
        code_j(x) = exp(-bandwidth ||x - v_j||^2) / the sum of these over the k nearest anchors

    Models and anchors minimise one risk, by stochastic gradient descent (equation 12;
    with more than two classes equation 21, one class against the rest):

        alpha/2 ||W||^2 + sum_i w_i sum_y loss(+-score_y(x_i)) / sum_i w_i

    Parameters
    ----------
    n_anchors : int, "auto" or None, default=None
        Number of anchors. None takes the paper's 100, or n_samples / 10 if that is
        less. With more than 250,000 rows it takes n_samples / 2,500, up to 400. A
        stream goes by its first rows. Models of more than 2^27 numbers get fewer
        anchors, at least 8. "auto" begins with a few. It splits those whose regions
        carry most loss, and drops those with hardly any weight, until the risk of
        held-out rows (`validation_fraction`) stops falling. Then the fit starts afresh
        with the number found.
    n_neighbors : int, default=8
        Number of nearest anchors that count at a row (the paper's number).
    bandwidth : float, "auto" or "learned", default="auto"
        How fast an anchor's weight falls with its squared distance, above 0, in
        standardized features: the larger, the more the nearest anchor counts. "auto"
        takes 1 / (median squared distance of the rows to their k-th anchor, at the
        start). "learned" starts there, and learns it with the models, as one number; so
        does "auto" on more than 100,000 rows. It matters much: tune it.
    anchors : {"kmeans", "kmeans_per_class", "random"} or array-like of shape \
            (n_anchors, n_features), default="kmeans"
        Where the anchors start: centres of k-means over all rows or over those of each
        class, rows at random, or these.
    anchor_lr : float, default=1.0
        Step of the anchors, at least 0, in units of ``1 / sqrt(bandwidth)``. An anchor
        moves ``anchor_lr / sqrt(sum of its squared gradients)`` along its gradient
        (AdaGrad), because the step of the paper, that of the models, diverges. From 0.5
        to 2 does well on all sets tried, whatever the scale of X; 0 leaves the anchors
        where they start, which is LL-SVM. A fit to more than 100,000 rows of up to 100
        features also draws all anchors together along features that tell little, and
        apart along others.
    weights : {"linear", "constant"}, default="linear"
        "constant" leaves out W: the model is a linear SVM on the codes, with the weights
        `b_yj`. They are penalised (LLC-SAPL_lcc).
    share_anchors : bool, default=True
        False gives every class anchors of its own (section 3.4): s times the memory and
        the time.
    loss : {"hinge", "squared_hinge", "logistic"} or Loss, default="hinge"
        The loss, as a function of the margin.
    alpha : float, "auto" or "scale", default="auto"
        Strength of the L2 penalty, above 0: the larger, the simpler the model. On 50 to
        50,000 rows, "auto" multiplies "scale" by the factor, from 1/4 to 64, of lowest
        log loss on rows held out. "scale" is 0.05 times the mean squared norm of
        ``code (x) [x; 1]``, over n_samples.
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
    penalize_intercept : bool, default=False
        Penalise intercepts too, as weights of a constant feature 1. The default is False.
    max_iter : int, default=1000
        Maximum number of iterations; a fit that needs more warns. An iteration is a
        pass over the rows. Five with the anchors at rest come before (the LL-SVM of
        equation 20), and most fits need 20 to 60.
    round_rows : int or None, default=100_000
        Rows in an iteration, if there are more in all: each takes the next part of a
        shuffled pass. None takes all rows. Steps then begin at a tenth of `eta0`, and
        fall as if there were four rounds of rows; anchors start from as many rows. The
        paper takes all.
    tol : float, default=1e-3
        A fit ends when `n_iter_no_change` iterations in a row each lower the objective by
        less than this. Where rows come in rounds (`round_rows`), each is to lower it by
        2.5 `tol` of itself, or by `tol` / 10 if that is more. Over millions of rows it
        falls slowly, but for long.
    n_iter_no_change : int, default=5
        Iterations in a row without a gain of `tol`, after which a fit ends.
    batch_size : int or "auto", default="auto"
        Rows that are scored by one matrix product before any of them updates the models.
        "auto" is 64, or n_samples / 100 if that is less. 1 is Algorithm 1 of the paper.
    average : int, default=5
        Number of iterations, after `tol` is reached, whose models are averaged; 0 keeps
        the last model alone. In rounds it is eight times as many.
    eta0 : float, default=10.0
        First step of the models, in units of the inverse mean squared norm of their
        features. A tenth where rows come in rounds; at most ``0.5 / batch_size`` for the
        squared hinge.
    early_stopping : bool, default=False
        Hold out rows, and stop when they are predicted no better. Accuracy counts, by
        `tol`.
    validation_fraction : float, default=0.1
        Part of the rows that `early_stopping` holds out. ``n_anchors="auto"`` holds out
        as many.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; multiplied with the sample weights.
    n_jobs : int or None, default=None
        Number of tasks done at once, in threads; -1 takes as many as there are
        processors. Tasks are the short fits that choose parameters and the temperature,
        and classes that do not share anchors.
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
    anchors_ : ndarray of shape (n_anchors, n_features)
        (s, n_anchors, n_features) where the classes do not share them; s scorers:
        n_classes, but 1 for two classes with shared anchors.
    n_anchors_ : int
    bandwidth_ : float or ndarray of shape (s,)
    history_ : ndarray of shape (n_anchors + 1,) or (s, n_anchors + 1)
        Squared gradients of the anchors, and of the logarithm of the bandwidth, summed:
        what the steps of a fit that goes on follow from. Longer by `n_features` after a
        fit to more than 100,000 rows of up to 100 features: those of all anchors together
        along each.
    local_coef_ : ndarray of shape (s, n_anchors, n_features)
    local_intercept_ : ndarray of shape (s, n_anchors)
    intercept_ : ndarray of shape (s,)
        Zeros.
    alpha_ : float
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
    objective_, validation_scores_ : list of float
        One value a pass.
    n_iter_, n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    References
    ----------
    X. Mao, Z. Fu, O. Wu and W. Hu. Optimizing locally linear classifiers with supervised
    anchor point learning. IJCAI, 2015.

    Examples
    --------
    >>> from sklearn.model_selection import train_test_split
    >>> from loclin import SAPLClassifier
    >>> from loclin.datasets import make_sine
    >>> X, y = make_sine(1000, random_state=0)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = SAPLClassifier(n_anchors=4, n_neighbors=4, bandwidth=1.0, random_state=0)
    >>> bool(model.fit(X_train, y_train).score(X_test, y_test) > 0.97)
    True
    """

    _recipe_type = SAPLRecipe
    _fitted_models = (AnchoredModels,)
    _fits_may_change = frozenset({"anchor_lr"})

    def __init__(
        self,
        n_anchors: int | str | None = None,
        n_neighbors: int = 8,
        *,
        bandwidth: float | str = "auto",
        anchors: Any = "kmeans",
        anchor_lr: float = 1.0,
        weights: str = "linear",
        share_anchors: bool = True,
        loss: str | Loss = "hinge",
        alpha: float | str = "auto",
        metric: str | int | None = "auto",
        pieces: int | str | None = "auto",
        standardize: bool = True,
        penalize_intercept: bool = False,
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
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.anchors = anchors
        self.anchor_lr = anchor_lr
        self.weights = weights
        self.share_anchors = share_anchors
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
    history_: Floats

    @property
    def n_anchors_(self) -> int:
        """Anchors, of each scorer where they have their own."""
        check_is_fitted(self, "intercept_")
        return int(self._learned.anchors.shape[-2])
