"""LDKL: local deep kernel learning (Jose, Goyal, Aggrwal and Varma, 2013)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loclin.engine.data import Floats
from loclin.engine.losses import Loss
from loclin.fitting.base import LocallyLinearClassifier
from loclin.ldkl.recipe import LDKLRecipe
from loclin.ldkl.tree import TreeModels


class LDKLClassifier(LocallyLinearClassifier):
    """Take this for many linear models that predict at the cost of a few: LDKL.

    What matters most is `depth`, `alpha` and `pieces`. This is local deep kernel
    learning: a binary tree whose nodes say how much their models count. A score is a sum
    of linear models over the nodes k on the row's path through a complete tree:

        score_y(x) = sum_k code_k(x) (w_yk . x + b_yk),    code_k(x) = tanh(v_k . x + v_k0)

    The path turns to the first child of a node where its gate ``theta_k . x + theta_k0``
    is positive, else to the second. So a prediction costs the products of one path,
    however many nodes there are. Models, features v and gates theta minimise one risk, by
    stochastic gradient descent, one class against the rest on one tree:

        alpha/2 (||W||^2 + tree_penalty (||V||^2 + ||Theta||^2))
            + sum_i w_i sum_y loss(+-score_y(x_i)) / sum_i w_i

    Paths have no gradient, so they begin relaxed: a row goes both ways, with the shares
    ``(1 +- tanh(hardness (theta_k . x + theta_k0))) / 2``. The hardness grows, until
    paths are hard; from then on gates rest, and the descent is on the risk of the model
    that predicts.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Gates on a path, from 0 to 12: the tree has ``2 ** (depth + 1) - 1`` nodes. "auto"
        takes log2(n_samples / 100), rounded down, but 3 at least and 5 at most. Relaxed
        passes take as long as all nodes do, the others as long as a path.
    annealing : float, default=10.0
        Passes until paths are hard, above 0; half of `max_iter` at most. On a stream,
        1,000 rows are a pass.
    tree_lr : float, default=3.0
        First step of a gate or feature, at least 0, over the root of the rows' mean
        squared norm. Later ones are ``1 / sqrt(sum of its squared gradients)``
        (AdaGrad). With 0 the tree stays as it starts: its nodes halve the rows along
        the difference of two of them.
    tree_penalty : float, default=1.0
        L2 strength of gates and features, at least 0, over that of the models.
    loss : {"hinge", "squared_hinge", "logistic"} or Loss, default="hinge"
        The loss, as a function of the margin.
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
        pass over the rows. Most fits need 30 to 100.
    round_rows : int or None, default=100_000
        Rows in an iteration, if there are more in all: each takes the next part of a
        shuffled pass. None takes all rows.
    tol : float, default=1e-3
        A fit ends when `n_iter_no_change` iterations in a row each lower the objective by
        less than this.
    n_iter_no_change : int, default=10
        Iterations in a row without a gain of `tol`, after which a fit ends. The default
        is higher, 10: where paths become hard, the objective may rise for a few passes.
    batch_size : int or "auto", default="auto"
        Rows that are scored by one matrix product before any of them updates the models.
        "auto" is 64, or n_samples / 100 if that is less.
    average : int, default=5
        Number of iterations, after `tol` is reached, whose models are averaged; 0 keeps
        the last model alone.
    eta0 : float, default=10.0
        First step of the models, in units of the inverse mean squared norm of their
        features. At most ``0.5 / batch_size`` for the squared hinge.
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
    depth_ : int
    tree_coef_, tree_intercept_ : ndarray of shape (n_outputs, n_features) and (n_outputs,)
        Gates of the ``2 ** depth_ - 1`` inner nodes, level by level: the children of node
        k are 2 k + 1 and 2 k + 2. Then the features v_k of all nodes.
    hardness_ : float
        What training multiplies gates by: from 1 to 30, where paths are hard.
    history_ : ndarray of shape (n_outputs,)
        Sums of the squared gradients of gates and features.
    local_coef_ : ndarray of shape (s, n_nodes, n_features)
        s is the number of scores: n_classes, but 1 for two classes.
    local_intercept_ : ndarray of shape (s, n_nodes)
    intercept_ : ndarray of shape (s,)
        Zeros.
    alpha_ : float
    temperature_ : float or None
        Scores are divided by it; their softmax is `predict_proba`. It is chosen on
        held-out rows.
    smoothing_ : float
        Share of probability that is divided equally among the classes: 1 / (n + 2),
        where n rows were held out.
    objective_, validation_scores_ : list of float
        One value a pass, of relaxed paths while they are.
    n_iter_, n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)

    Notes
    -----
    The paper's are the score, the path's indicator with tanh in place of signs, and the
    problem: its lambda_W is `alpha`, those of features and gates are `tree_penalty` times
    that, and its slope sigma of the features is 1, as v is learned. Steps and start are
    loclin's, and so is one tree for several classes: the paper has two. Trees of their
    own, as some comparisons have, are ``OneVsRestClassifier(LDKLClassifier())``.

    References
    ----------
    C. Jose, P. Goyal, P. Aggrwal and M. Varma. Local deep kernel learning for efficient
    non-linear SVM prediction. ICML, 2013.

    Examples
    --------
    >>> from sklearn.model_selection import train_test_split
    >>> from loclin import LDKLClassifier
    >>> from loclin.datasets import make_sine
    >>> X, y = make_sine(1000, random_state=0)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = LDKLClassifier(depth=3, random_state=0).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.97)
    True
    >>> model.local_weights(X_test).nnz // len(X_test)  # nodes on a path
    4
    """

    _recipe_type = LDKLRecipe
    _fits_may_change = frozenset({"annealing", "tree_lr", "tree_penalty"})
    _fitted_models = (TreeModels,)

    def __init__(
        self,
        depth: int | str = "auto",
        *,
        annealing: float = 10.0,
        tree_lr: float = 3.0,
        tree_penalty: float = 1.0,
        loss: str | Loss = "hinge",
        alpha: float | str = "auto",
        pieces: int | str | None = "auto",
        standardize: bool = True,
        max_iter: int = 1000,
        round_rows: int | None = 100_000,
        tol: float = 1e-3,
        n_iter_no_change: int = 10,
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
        self.depth = depth
        self.annealing = annealing
        self.tree_lr = tree_lr
        self.tree_penalty = tree_penalty
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

    depth_: int
    tree_coef_: Floats
    tree_intercept_: Floats
    hardness_: float

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        if self._is_fitted() and sizes["m"] + 1 != 2 << min(
            max(self._learned.depth, 0), 64
        ):
            return f"depth_ is {self._learned.depth}, but there are {sizes['m']} nodes"
        return None
