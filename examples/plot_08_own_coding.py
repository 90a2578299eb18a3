"""
A coding of your own
====================

Who says how much each linear model counts at a row? In ``LLSVMClassifier`` it is any transformer of
scikit-learn, so write the one that fits your data.
"""

# %%
# A mixture of Gaussians as a coding
# ----------------------------------
# A row belongs to each part of a mixture with some probability. These probabilities are the
# weights of the linear models. The class below is all that is needed.
import matplotlib.pyplot as plt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import make_moons
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

from loclin import LLSVMClassifier
from loclin.inspection import RegionsDisplay


class MixtureCoding(TransformerMixin, BaseEstimator):
    """Weights that are the probabilities of the parts of a Gaussian mixture.

    Parameters
    ----------
    n_parts : int, default=8
        Number of parts, and so of linear models.
    random_state : int, RandomState or None, default=None
        Seed of the mixture.
    """

    def __init__(self, n_parts=8, random_state=None):
        self.n_parts = n_parts
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit the mixture to the rows."""
        self.mixture_ = GaussianMixture(self.n_parts, random_state=self.random_state).fit(X)
        return self

    def transform(self, X):
        """Return an array of shape (n_rows, n_parts)."""
        return self.mixture_.predict_proba(X)


# %%
# It is a classifier like any other
# ---------------------------------
# It works in searches and pipelines: ``coding__n_parts`` names the parameter of the coding.
X, y = make_moons(1000, noise=0.2, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
for n_parts in (1, 2, 4, 8):
    model = LLSVMClassifier(MixtureCoding(n_parts), metric=None, pieces=None, random_state=0)
    print(f"{n_parts} parts: accuracy {model.fit(X, y).score(X_test, y_test):.3f}")

# %%
# The regions are those of the mixture
# ------------------------------------
# At each point the colour is the part that counts most. The black line parts the classes.
fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
RegionsDisplay.from_estimator(model, X, y=y, response="regions").plot(ax, point_kw={"s": 5})

# %%
# Explanations come with it
# -------------------------
# Each score is still that of one linear model, so ``local_model`` is exact.
coef, intercept = model.local_model(X_test)
scores = (coef * X_test).sum(axis=1) + intercept
print(f"largest difference {abs(scores - model.decision_function(X_test)).max():.0e}")

# %%
# What to take away
# -----------------
# A class with ``fit`` and ``transform`` is a coding. For sparse rows, speed and many parts,
# :doc:`/extending` says what else a coding may do.
