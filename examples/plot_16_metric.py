"""
Which features count: a learned metric
======================================

A hundred columns of noise stand beside the columns that matter. How does a model find out, and how
do you see it?
"""

# %%
# Digits and noise
# ----------------
# After scaling, each feature counts as much as any other. With ``metric="auto"`` each counts as
# much as the model uses it, if that predicts held-out rows better.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from loclin import ML3Classifier

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X = np.hstack([X, rng.standard_normal((len(X), 100))])
train, test = slice(0, 1300), slice(1300, None)
for metric in (None, "auto"):
    model = ML3Classifier(metric=metric, alpha="scale", random_state=0).fit(X[train], y[train])
    print(f"metric={metric}: accuracy {model.score(X[test], y[test]):.3f}")

# %%
# The weights of the features
# ---------------------------
# Noise counts little, and so do pixels at the edge, which are always empty.
fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", width_ratios=[1, 2])
axes[0].imshow(model.feature_weights_[:64].reshape(8, 8), cmap="Greys")
axes[0].set(title="weights of the pixels", xticks=[], yticks=[])
axes[1].hist([model.feature_weights_[:64], model.feature_weights_[64:]], bins=20)
axes[1].legend(["pixels", "noise"])
axes[1].set(xlabel="weight", ylabel="columns")

# %%
# Directions
# ----------
# Here the labels depend on two directions in twenty features. ``metric=2`` looks for the two
# combinations of features that the model uses most.
directions = np.linalg.qr(rng.standard_normal((20, 2)))[0]
X = rng.standard_normal((3000, 20))
u, v = (X @ directions).T
y = np.sin(2 * u) > 0.8 * v
train, test = slice(0, 2000), slice(2000, None)
for metric in (None, 2):
    model = ML3Classifier(metric=metric, random_state=0).fit(X[train], y[train])
    print(f"metric={metric}: accuracy {model.score(X[test], y[test]):.3f}")

# %%
# Seen along these directions, the classes come apart.
seen = np.linalg.eigh(model.metric_)[1][:, -2:]
fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharex=True, sharey=True)
axes[0].scatter(X[test, 0], X[test, 1], s=4, c=y[test], cmap="coolwarm")
axes[0].set(title="two of the features", aspect="equal")
axes[1].scatter(*(X[test] @ seen).T, s=4, c=y[test], cmap="coolwarm")
axes[1].set(title="the two directions that were learned", aspect="equal")

# %%
# What to take away
# -----------------
# The default weighs features where this helps. Explanations stay in the features as you gave them.
# ``metric=2`` also finds directions, and is worth a try where few combinations matter.
