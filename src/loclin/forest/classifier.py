"""A forest of scikit-learn as a locally linear classifier:
models in boxes that say constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loclin.fitting.base import LocallyLinearClassifier
from loclin.forest.recipe import ForestRecipe
from loclin.forest.trees import ForestModels


class ForestClassifier(LocallyLinearClassifier):
    """Take this as a member of an ensemble: a forest of scikit-learn, with a temperature.

    What matters most is `n_trees`, `min_samples_leaf` and `max_features`. A row's score
    is the sum, over trees, of the class shares among the training rows in its leaf: the
    code is 1 for each tree's leaf, and its model a constant. So the slopes of
    `local_model` are zeros. It is for `LocallyLinearEnsemble`, where it adds thresholds
    of features, which linear models lack. Alone it is scikit-learn's forest with a
    temperature.

    Parameters
    ----------
    n_trees : int, default=100
        Number of trees. Error falls with it, less and less; time and size rise.
    splits : {"random", "best"}, default="random"
        "random" draws thresholds and takes the best of them (``ExtraTreesClassifier``);
        "best" looks at all, each tree on rows drawn with replacement
        (``RandomForestClassifier``).
    max_features : int, float, "sqrt" or "log2", default="sqrt"
        Features that a node looks at: their number, or as a float the part of them.
    min_samples_leaf : int, default=1
        Minimum number of rows in a leaf. More rows make trees smaller.
    min_weight_fraction_leaf : float, default=0.0
        The same by weight: part of all rows, at most 0.5. Leaves of one class do not hear
        what it weighs.
    most_rows : int, default=20000
        Maximum number of rows that a tree learns from. If there are more, each tree
        draws its own, so that trees stay small.
    standardize : bool, default=True
        Centre the features, and divide them by their standard deviations, as
        `StandardScaler` does. Sparse rows are not centred. Models and explanations are of
        the features as given. Trees do not care, but `leaves_` are of standardized
        features. With it or without, trees grow about the median of each feature, in
        units of the median distance from it. Scikit-learn takes values as one that are
        near beside the largest.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; multiplied with the sample weights.
    n_jobs : int or None, default=None
        Number of tasks done at once, in threads; -1 takes as many as there are
        processors. Tasks are trees, and short fits for the temperature.
    calibrate : bool, default=True
        Find the temperature of the probabilities. False saves the short fits for it, as
        in a search by accuracy, and leaves no `predict_proba`.
    random_state : int, RandomState instance or None, default=None
        Seed of all that is drawn at random; a number makes fits repeatable.
    verbose : int, default=0
        If above 0, print how far a fit has come, a line at a time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    leaves_ : Leaves
        The trees, of features that are standardized.
    local_coef_ : ndarray of shape (n_scorers, n_leaves, n_features)
        Zeros. n_scorers is n_classes, but 1 for two classes.
    local_intercept_ : ndarray of shape (n_scorers, n_leaves)
        Shares of the classes in each leaf. For two classes, the share of the second
        minus that of the first.
    intercept_ : ndarray of shape (n_scorers,)
        Zeros.
    temperature_ : float or None
        Scores are divided by it; their softmax is `predict_proba`. It is chosen on
        held-out rows.
    smoothing_ : float
        Share of probability that is divided equally among the classes: 1 / (n + 2),
        where n rows were held out.
    objective_ : list of float
        Error on the training rows, as a share of them.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` was a data frame.

    Notes
    -----
    It cannot learn from a stream.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel. Extremely randomized trees. Machine
    Learning, 2006.

    L. Breiman. Random forests. Machine Learning, 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from loclin import ForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ForestClassifier(20, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.local_model(X[:1])[0].any())
    (True, False)
    """

    _fitted_models = (ForestModels,)
    _recipe_type = ForestRecipe

    def __init__(
        self,
        n_trees: int = 100,
        *,
        splits: str = "random",
        max_features: int | float | str = "sqrt",
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        most_rows: int = 20_000,
        standardize: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        calibrate: bool = True,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_trees = n_trees
        self.splits = splits
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.most_rows = most_rows
        self.standardize = standardize
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.calibrate = calibrate
        self.random_state = random_state
        self.verbose = verbose
