"""L3M: locally linear learning machines (Wang and Saligrama, 2013)."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from loclin.engine.losses import Loss
from loclin.engine.scores import regions_of
from loclin.fitting.atomic import snapshot
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.checks import check_number
from loclin.fitting.pieces import names_of
from loclin.l3m.models import (
    ConvexModels,
    OnlineModels,
    PartitionedModels,
    RegionalModels,
)
from loclin.l3m.recipe import L3MRecipe
from loclin.l3m.rules import region_rules


class L3MClassifier(LocallyLinearClassifier):
    """Take this for a model in words: learned regions, and a linear rule in each (L3M).

    What matters most is `n_regions`, `alpha` and `solver`. A row is in the region whose
    partition function is largest, and that region's classifier alone scores it (section 3
    of the paper):

        region(x) = argmax_k g_k(x)        score_y(x) = w_yk . x + b_yk,   k = region(x)

    so a prediction costs n_regions + n_classes products. `region_rules` puts both into
    words.

    ``solver="convex"`` is the paper's program (Equations 5, 7 and 8), whose optimum
    depends on rows drawn at random to hold the regions apart:

        minimise    sum_i w_i max_k [hinge_i(f_k) + phi(G, k, x_i) - 1] / sum_i w_i
                        + alpha/2 sum_k ||f_k||^2
        subject to  g_k(x) >= margin at the row drawn for region k,  k = 1 .. n_regions - 1

    with ``hinge_i(f) = (1 - y_i f(x_i))+``, or for more than two classes the largest of
    ``(1 - f_{y_i})+`` and all other ``(1 + f_y)+``; and phi(G, k, x) the largest of
    ``(1 + g_k)+`` and all other ``(1 - g_j)+``. ``loss="logistic"`` puts
    ``log(1 + exp(-z))`` for every ``(1 - z)+``. For two regions this is Equation 4.
    ``solver="online"`` descends on it row by row.

    ``solver="refined"``, the default, minimises the risk of the model itself,

        sum_i w_i loss_i(f_region(x_i)) / sum_i w_i + alpha/2 sum_k ||f_k||^2

    with a partition that is soft at first and hard at last; it is far more accurate.

    Parameters
    ----------
    n_regions : int, "auto" or None, default=None
        Number of regions, at least 2; fewer, with a warning, where there are fewer
        rows. None takes the paper's 6, or n_samples / 10 if that is less. "auto"
        doubles them from 2 for as long as the refined model's risk on held-out rows
        (`validation_fraction`) falls by 2 %.
    solver : {"refined", "convex", "online"}, default="refined"
        What is minimised, and how; see above. Only "online" can learn from a stream.
    margin : float, default=10.0
        Above 0: the paper's beta. Not used by "refined".
    n_restarts : int or None, default=None
        Number of starts, of which the best is kept. With "convex" a start is a draw of
        constraint rows, and the lowest training error wins (None: the paper's 30). With
        "refined" it is a partition by k-means, and the lowest held-out risk wins (None:
        3). With "online" it is a run, and the lowest running error wins (None: 5).
    loss : {"hinge", "logistic"} or Loss, default="logistic"
        The loss, as a function of the margin. It is that of a region's classifier, and
        with "convex" and "online" of the partition too. "refined" takes that of the
        softmax, or Crammer and Singer's hinge, slightly smoothed. The default is
        "logistic", whose errors are no higher on most sets.
    alpha : float, "auto" or "scale", default="auto"
        Strength of the L2 penalty, above 0: the larger, the simpler the model. On 50 to
        50,000 rows, "auto" multiplies "scale" by the factor, from 1/4 to 64, of lowest
        log loss on rows held out. "scale" is ``0.02 (mean ||x||^2 + 1) / n_samples``. The
        penalty is that of the classifiers; with "refined", the partition has ten times as
        strong a one. "convex" takes "auto" as "scale".
    pieces : int, "auto" or None, default="auto"
        Maximum number of further columns for each feature. They rise from 0 to 1
        between two of its quantiles, so that models can bend along single features.
        "auto" takes 8 if they lower the log loss of held-out rows; None takes none.
        `local_model` stays exact; docs/parameters.md has the rest.
    standardize : bool, default=True
        Centre the features, and divide them by their standard deviations, as
        `StandardScaler` does. Sparse rows are not centred. Models and explanations are of
        the features as given.
    max_iter : int, default=100
        Maximum number of iterations; a fit that needs more warns. An iteration is a
        pass over the rows. With "refined" it is a round of at most 30 passes, and from
        the seventh on the partition is hard. With "convex" it is a round of at most
        600, with ever less smoothing. The default is lower, 100.
    tol : float, default=1e-3
        A fit ends when `n_iter_no_change` iterations in a row each lower the objective by
        less than this. "convex" ends when the duality gap is at most this part of the
        objective, for every draw.
    n_iter_no_change : int, default=5
        Iterations in a row without a gain of `tol`, after which a fit ends. At least 5
        with "refined", or the partition may not become hard. With "convex", only if
        `early_stopping`.
    eta0 : float, default=3.0
        First step of the models, in units of the inverse mean squared norm of their
        features. The step at row t is ``1 / sqrt(t)`` of it. The default is lower, 3.
        Only "online".
    early_stopping : bool, default=False
        Hold out rows, and stop when they are predicted no better. Accuracy counts, by
        `tol`. "convex" also ends by its duality gap.
    validation_fraction : float, default=0.2
        Part of the rows that `early_stopping` holds out. As many are held out to choose
        among the starts of "refined", which then learn from all rows, and to choose the
        number of regions. The default is higher, 0.2.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; multiplied with the sample weights.
    n_jobs : int or None, default=None
        Number of tasks done at once, in threads; -1 takes as many as there are
        processors. Tasks are the short fits that choose parameters and the temperature,
        and restarts.
    calibrate : bool, default=True
        Find the temperature of the probabilities. False saves the short fits for it, as
        in a search by accuracy, and leaves no `predict_proba`.
    warm_start : bool, default=False
        Let `fit` go on from the fit before. "refined" goes on with the partition hard,
        "online" with all its runs. "convex" starts afresh: its optimum does not depend on
        the start.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is drawn at random; a number makes fits repeatable.
    verbose : int, default=0
        If above 0, print how far a fit has come, a line at a time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_regions_ : int
    partition_coef_ : ndarray of shape (n_regions, n_features)
    partition_intercept_ : ndarray of shape (n_regions,)
    local_coef_ : ndarray of shape (s, n_regions, n_features)
        s is the number of scores: n_classes, but 1 for two classes.
    local_intercept_ : ndarray of shape (s, n_regions)
    intercept_ : ndarray of shape (s,)
        Zeros.
    constraint_rows_ : ndarray of shape (n_regions - 1,)
        "convex" and "online": rows of X (of the first call, on a stream) of the
        constraints.
    dual_gap_ : float
        "convex": certificate. The objective is at most this part of itself above the
        optimum; NaN with more than 1,500 features, where it is not computed.
    alpha_ : float
    t_ : int
        "online": rows passed over.
    temperature_ : float or None
        Scores are divided by it; their softmax is `predict_proba`. It is chosen on
        held-out rows.
    smoothing_ : float
        Share of probability that is divided equally among the classes: 1 / (n + 2),
        where n rows were held out.
    objective_, validation_scores_ : list of float
        One value an iteration; "convex": the program's objective, exact.
    n_iter_, n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    References
    ----------
    J. Wang and V. Saligrama. Locally-linear learning machines (L3M). ACML, 2013.

    Examples
    --------
    >>> from loclin import L3MClassifier
    >>> from loclin.datasets import make_xor
    >>> X, y = make_xor(400, random_state=0)
    >>> model = L3MClassifier(n_regions=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    >>> sorted(set(model.regions(X).tolist()))
    [0, 1]
    """

    _recipe_type = L3MRecipe
    _scores_tell_finite = True
    _fits_may_change = frozenset({"eta0"})
    _fitted_models = (PartitionedModels, OnlineModels, ConvexModels)

    def __init__(
        self,
        n_regions: int | str | None = None,
        *,
        solver: str = "refined",
        margin: float = 10.0,
        n_restarts: int | None = None,
        loss: str | Loss = "logistic",
        alpha: float | str = "auto",
        pieces: int | str | None = "auto",
        standardize: bool = True,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_iter_no_change: int = 5,
        eta0: float = 3.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        calibrate: bool = True,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_regions = n_regions
        self.solver = solver
        self.margin = margin
        self.n_restarts = n_restarts
        self.loss = loss
        self.alpha = alpha
        self.pieces = pieces
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.eta0 = eta0
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.calibrate = calibrate
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    n_regions_: int
    partition_coef_: NDArray[np.floating]
    partition_intercept_: NDArray[np.floating]

    @snapshot
    def regions(self, X: ArrayLike) -> NDArray[np.intp]:
        """Return the region of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        regions : ndarray of shape (n_samples,)
            Numbers from 0 to n_regions - 1. A region may be empty.
        """
        return regions_of(
            self._validate_new(X),
            self._learned.partition_coef,
            self._learned.partition_intercept,
        )

    @snapshot
    def region_rules(self, X: ArrayLike | None = None, n_top: int = 3) -> list[str]:
        """Describe each region: where it is,
        and its classifier, by their largest coefficients.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Rows to count in the regions.
        n_top : int, default=3
            Features to name of each linear function.

        Returns
        -------
        rules : list of str
            One text of some lines for each region. Regions where no row of X is, or
            hardly any was learned, say so, and nothing else.

        Examples
        --------
        >>> from loclin import L3MClassifier
        >>> from loclin.datasets import make_xor
        >>> X, y = make_xor(400, random_state=0)
        >>> rules = L3MClassifier(n_regions=2, random_state=0).fit(X, y).region_rules(X)
        >>> rules[0].splitlines()[0].endswith("of the rows")
        True
        """
        check_is_fitted(self, "partition_coef_")
        check_number("n_top", n_top, Integral, low=1, open_high=True)
        names = getattr(
            self, "feature_names_in_", [f"x{f}" for f in range(self.n_features_in_)]
        )
        regions = None if X is None else self.regions(X)
        models = RegionalModels(
            self.partition_coef_,
            self.partition_intercept_,
            self.local_coef_,
            self.local_intercept_,
        )
        names = [*names, *names_of(self._features.pieces, names)]
        scale, columns = self._features.scale, self._features.columns
        if scale is not None and columns is not None:
            scale = columns.to_all(scale, fill=1.0)
        spreads = 1.0 if scale is None else scale
        return region_rules(models, self.classes_, names, n_top, regions, spreads)
