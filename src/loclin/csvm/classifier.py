"""CSVM: clustered support vector machines (Gu and Han, 2013)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loclin.csvm.pulled import (
    SolvedClusterModels,
    StreamedClusterModels,
)
from loclin.csvm.recipe import CSVMRecipe
from loclin.engine.data import Floats
from loclin.engine.losses import Loss
from loclin.engine.shapes import Shape
from loclin.fitting.base import LocallyLinearClassifier


class CSVMClassifier(LocallyLinearClassifier):
    """Take this for one linear model in each cluster,
    by k-means or your own, in seconds: CSVM.

    What matters most is `n_clusters`, `alpha` and `global_penalty`. Rows are clustered by
    k-means, and the model of a row's cluster alone scores it,

        score_y(x) = w_yl . x + b_yl,    l the cluster whose centre is nearest to x,

    so a prediction costs one model and the distances to the centres. For every score, the
    models w_l and the global one w minimise, with intercepts as weights of a feature that
    is always 1,

        alpha/2 (global_penalty ||w||^2 + sum_l ||w_l - w||^2)
            + sum_i w_i loss(y_i score(x_i)) / sum_i w_i

    which is the paper's problem with ``lambda = global_penalty`` and
    ``C = 1 / (alpha n)``. It is one linear SVM on long vectors, x over the square root of
    lambda beside x in the block of its cluster; they are never formed. Dual coordinate
    descent solves it to a duality gap.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; fewer, with a warning, where there are fewer distinct rows.
        None takes 64, or n_samples / 30 if that is less. Not used where `centers` are
        given.
    global_penalty : float, default=0.5
        The paper's lambda, above 0. The larger, the more each cluster stands for itself,
        and the smaller, the more all have one model.
    centers : "kmeans" or array-like of shape (n_clusters, n_features), default="kmeans"
        Centres of the clusters: by k-means, or these.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One class against the rest, or competing classes. Classes compete by the hinge.
    loss : {"hinge", "squared_hinge"} or Loss, default="hinge"
        The loss, as a function of the margin.
    alpha : float, "auto" or "scale", default="auto"
        Strength of the L2 penalty, above 0: the larger, the simpler the model. On 50 to
        50,000 rows, "auto" multiplies "scale" by the factor, from 1/4 to 64, of lowest
        log loss on rows held out. "scale" is 0.05 times the mean squared norm of the long
        vectors, over n_samples.
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
        pass over the rows.
    tol : float, default=1e-2
        A fit ends when the duality gap of every score's problem is at most this part of
        its objective. The default is higher, 1e-2: 1e-3 takes three times the passes,
        with similar errors.
    n_iter_no_change : int, default=5
        Iterations in a row without a gain of `tol`, after which a fit ends. Only with
        `early_stopping`.
    early_stopping : bool, default=False
        Hold out rows, and stop when they are predicted no better. Accuracy counts, by
        `tol`. A fit also ends by its duality gap.
    validation_fraction : float, default=0.1
        Part of the rows that `early_stopping` holds out.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; multiplied with the sample weights.
    n_jobs : int or None, default=None
        Number of tasks done at once, in threads; -1 takes as many as there are
        processors. Tasks are the short fits that choose parameters and the temperature,
        and the classes' problems.
    calibrate : bool, default=True
        Find the temperature of the probabilities. False saves the short fits for it, as
        in a search by accuracy, and leaves no `predict_proba`.
    warm_start : bool, default=False
        Let `fit` go on from the fit before. The clusters are kept, and the dual variables
        scaled to the new `alpha`.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is drawn at random; a number makes fits repeatable.
    verbose : int, default=0
        If above 0, print how far a fit has come, a line at a time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    local_coef_ : ndarray of shape (s, n_clusters, n_features)
        The w_l. s is the number of scores: n_classes, but 1 for two classes one against
        the rest. The model of a cluster without rows is the global one.
    local_intercept_ : ndarray of shape (s, n_clusters)
    global_coef_, global_intercept_ : ndarray of shape (s, n_features) and (s,)
        The model that the others are pulled to. It scores no row.
    intercept_ : ndarray of shape (s,)
        Zeros.
    alpha_ : float
    temperature_ : float or None
        Scores are divided by it; their softmax is `predict_proba`. It is chosen on
        held-out rows.
    smoothing_ : float
        Share of probability that is divided equally among the classes: 1 / (n + 2),
        where n rows were held out.
    dual_gap_ : ndarray of shape (n_scorers,)
        After `fit`: duality gap of each score's problem (of the one problem of competing
        classes), in units of the objective.
    t_ : int
        After `partial_fit`: rows passed over.
    objective_, validation_scores_ : list of float
        One value a pass; the last objective of a fit that reached `tol` is exact.
    n_iter_, n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Notes
    -----
    The paper's are the problem, its form as one linear SVM, and that SVM's dual. Squared
    hinge, competing classes and streams are loclin's.

    On a stream (`partial_fit`) stochastic gradient descent takes the same problem on, and
    the clusters are those of the first call: give it a few thousand rows, or `centers`.

    References
    ----------
    Q. Gu and J. Han. Clustered support vector machines. AISTATS, 2013.

    Examples
    --------
    >>> from sklearn.model_selection import train_test_split
    >>> from loclin import CSVMClassifier
    >>> from loclin.datasets import make_sine
    >>> X, y = make_sine(1000, random_state=0)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = CSVMClassifier(n_clusters=16, random_state=0).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    _recipe_type = CSVMRecipe
    _fits_may_change = frozenset({"global_penalty"})
    _kept: list[Annotated[NDArray[np.float64], Shape("n | n s", np.float64)]] | None = (
        None
    )
    _fitted_models = (SolvedClusterModels, StreamedClusterModels)

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        global_penalty: float = 0.5,
        centers: str | ArrayLike = "kmeans",
        multi_class: str = "ovr",
        loss: str | Loss = "hinge",
        alpha: float | str = "auto",
        pieces: int | str | None = "auto",
        standardize: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-2,
        n_iter_no_change: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        calibrate: bool = True,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.global_penalty = global_penalty
        self.centers = centers
        self.multi_class = multi_class
        self.loss = loss
        self.alpha = alpha
        self.pieces = pieces
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.calibrate = calibrate
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    alpha_: float
    cluster_centers_: Floats
    global_coef_: Floats
    global_intercept_: Floats

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if self._is_fitted() and sizes["k"] != sizes["m"]:
            return f"there are {sizes['k']} cluster_centers_, but models of {sizes['m']}"
        return None
