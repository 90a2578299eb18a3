"""LL-SVM: locally linear SVMs over any coding
(Ladicky and Torr, 2011; Zhang et al., 2011).
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from loclin.engine.losses import Loss
from loclin.engine.shapes import Shape
from loclin.fitting.base import LocallyLinearClassifier
from loclin.llsvm.coded import DescentCodedModels, SolvedCodedModels
from loclin.llsvm.recipe import LLSVMRecipe


class LLSVMClassifier(LocallyLinearClassifier):
    """Take this for a coding of your own, or a known duality gap: LL-SVM, OCC, LCC+SVM.

    What matters most is `coding`, `alpha` and, where codes are of planes, `bias`. A
    coding says how much each of m linear models counts at a row; a score is their
    weighted sum,

        score_y(x) = sum_j code_j(x) (w_yj . x + b_yj) + b_y        (equation 9 of the OCC paper)

    which is linear in ``code (x) [x; 1]``, features that are never formed. Training
    minimises

        alpha/2 ||W||^2 + sum_i w_i sum_y loss(+-score_y(x_i)) / sum_i w_i

    one class against the rest (equation 1 of the OCC paper, for each class), or, with
    ``multi_class="crammer_singer"``, with the loss of
    ``score_{y_i} - max_{y != y_i} score_y``.

    Parameters
    ----------
    coding : transformer, default=None
        What computes the codes, which are the gating weights: a transformer of
        `loclin.codings`, or any other. It is cloned and fitted (to use a fitted one as
        it is, wrap it in ``sklearn.frozen.FrozenEstimator``). None takes
        ``SoftAssignmentCoding`` with 100 anchors by k-means, 8 of them at a row. There
        are n_samples / 10 anchors if that is less; in very wide models as many as 2^27
        numbers allow, at least 8. With ``OrthogonalCoding(per_class=True)`` every class
        has its own codes.
    solver : {"sgd", "dual_cd"}, default="sgd"
        Stochastic gradient descent (PEG-LLSVM), which can learn from streams; or dual
        coordinate descent (LIB-LLSVM), which stops at a duality gap. Both minimise the
        same problem.
    weights : {"linear", "constant"}, default="linear"
        "constant" leaves out W: the model is a linear SVM on the codes, with the weights
        `b_yj`. This is LCC+SVM, and linear SVM + OCC.
    bias : {"local", "global", "both"}, default="local"
        One intercept for each model (LL-SVM), one for each score (equation 9), or both.
        Codes of planes are signed and sum to no constant; so without an intercept for
        each score, no border is a sphere. With constant weights it says whether there
        is an intercept for each score as well.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One class against the rest, or competing classes. With "dual_cd", classes compete
        by the hinge, in a coding that they share.
    loss : {"hinge", "squared_hinge", "logistic"} or Loss, default="hinge"
        The loss, as a function of the margin. "dual_cd" takes no "logistic".
    alpha : float, "auto" or "scale", default="auto"
        Strength of the L2 penalty, above 0: the larger, the simpler the model. On 50 to
        50,000 rows, "auto" multiplies "scale" by the factor, from 1/4 to 64, of lowest
        log loss on rows held out. "scale" is 0.05 times the mean squared norm of
        ``code (x) [x; 1]`` (without the 1 if ``bias="global"``), over n_samples. ``C`` of
        scikit-learn's ``LinearSVC`` is ``1 / (n_samples * alpha)``.
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
        Penalise intercepts too, as weights of a constant feature 1. LIBLINEAR does; False
        is for "sgd" only.
    max_iter : int, default=1000
        Maximum number of iterations; a fit that needs more warns. An iteration is a
        pass over the rows.
    round_rows : int or None, default=100_000
        Rows in an iteration, if there are more in all: each takes the next part of a
        shuffled pass. None takes all rows. Steps then fall as if there were two rounds
        of rows; the coding is learned from as many rows, and codes are written block by
        block. Only "sgd".
    tol : float, default=1e-3
        A fit ends when `n_iter_no_change` iterations in a row each lower the objective by
        less than this. "dual_cd" ends when the duality gap of every score's problem is at
        most this part of its objective.
    n_iter_no_change : int, default=5
        Iterations in a row without a gain of `tol`, after which a fit ends. With
        "dual_cd", only if `early_stopping`.
    batch_size : int or "auto", default="auto"
        Rows that are scored by one matrix product before any of them updates the models.
        "auto" is 64, or n_samples / 100 if that is less. 1 is the paper's algorithm to
        the letter. Only "sgd".
    average : int, default=5
        Number of iterations, after `tol` is reached, whose models are averaged; 0 keeps
        the last model alone. Only "sgd".
    eta0 : float, default=10.0
        First step of the models, in units of the inverse mean squared norm of their
        features. At most ``0.5 / batch_size`` for the squared hinge. Only "sgd".
    early_stopping : bool, default=False
        Hold out rows, and stop when they are predicted no better. Accuracy counts, by
        `tol`. "dual_cd" also ends by its duality gap.
    validation_fraction : float, default=0.1
        Part of the rows that `early_stopping` holds out.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; multiplied with the sample weights.
    n_jobs : int or None, default=None
        Number of tasks done at once, in threads; -1 takes as many as there are
        processors. Tasks are the short fits that choose parameters and the temperature,
        and classes with "dual_cd".
    calibrate : bool, default=True
        Find the temperature of the probabilities. False saves the short fits for it, as
        in a search by accuracy, and leaves no `predict_proba`.
    warm_start : bool, default=False
        Let `fit` go on from the fit before. The coding is kept. "dual_cd" scales the dual
        variables to the new `alpha`, for a path of alphas over the same rows.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is drawn at random; a number makes fits repeatable. A coding
        without one gets one from it.
    verbose : int, default=0
        If above 0, print how far a fit has come, a line at a time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coding_ : transformer
        The fitted coding. It codes rows x that are standardized, and with a metric M
        ``M^(1/2) x``; `local_weights` codes rows as they are given.
    local_coef_ : ndarray of shape (n_scorers, n_models, n_features)
        The linear models. n_scorers is n_classes; 1 for two classes one against the rest
        with a shared code, where the score is that of the second class. Zeros with
        constant weights.
    local_intercept_ : ndarray of shape (n_scorers, n_models)
        Their intercepts.
    intercept_ : ndarray of shape (n_scorers,)
        Global intercepts; zeros if ``bias="local"``.
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
        Objective, one for each pass: the running estimate gathered during the pass; the
        last one of a "dual_cd" fit that reached `tol` is exact.
    dual_gap_ : ndarray of shape (n_scorers,)
        Only "dual_cd": duality gap of each score's problem (of the one problem of
        competing classes), in units of the objective.
    validation_scores_ : list of float
        Accuracy on the rows held out, one for each pass; empty without `early_stopping`.
    n_iter_ : int
        Passes done.
    t_ : int
        Only "sgd": rows passed over.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` was a data frame.

    Notes
    -----
    On a stream (`partial_fit`, for "sgd"), the coding is learned from the rows of the
    first call: give it a few thousand, or a frozen coding. ``alpha="auto"`` follows its
    rule with the rows seen so far; steps then do not fall, and the fitted models are a
    running average of the iterates that forgets the early ones. Memory does not grow with
    the number of calls.

    References
    ----------
    L. Ladicky and P. Torr. Locally linear support vector machines. ICML, 2011.

    Z. Zhang, L. Ladicky, P. Torr and A. Saffari. Learning anchor planes for
    classification. NIPS, 2011.

    K. Yu, T. Zhang and Y. Gong. Nonlinear learning using local coordinate coding.
    NIPS, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from loclin import LLSVMClassifier
    >>> from loclin.codings import OrthogonalCoding
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
    >>> model = LLSVMClassifier(OrthogonalCoding(20), solver="dual_cd", random_state=0)
    >>> bool(model.fit(X_train, y_train).score(X_test, y_test) > 0.97)
    True
    """

    coding_: Any
    _recipe_type = LLSVMRecipe
    _fitted_models = (DescentCodedModels, SolvedCodedModels)
    _kept: list[Annotated[NDArray[np.float64], Shape("n | n s", np.float64)]] | None = (
        None
    )

    def __init__(
        self,
        coding: Any = None,
        *,
        solver: str = "sgd",
        weights: str = "linear",
        bias: str = "local",
        multi_class: str = "ovr",
        loss: str | Loss = "hinge",
        alpha: float | str = "auto",
        metric: str | int | None = "auto",
        pieces: int | str | None = "auto",
        standardize: bool = True,
        penalize_intercept: bool = True,
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
        self.coding = coding
        self.solver = solver
        self.weights = weights
        self.bias = bias
        self.multi_class = multi_class
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
