"""
Which features count: a learned metric
======================================

After scaling, every feature counts as much as every other, in the penalty and in the distances to
anchors. With ``metric`` they count as much as the model uses them: its gradients, which a locally
linear classifier has for nothing, tell. What is learned stays a classifier of the features as
given, and so do its explanations.
"""

# %%
# Digits, as they are scanned, with a hundred columns of noise beside their 64 pixels.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from loclin import ML3Classifier

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X = StandardScaler().fit_transform(np.hstack([X, 20 * rng.standard_normal((len(X), 100))]))
train, test = slice(0, 1300), slice(1300, None)
for metric in (None, "auto"):
    model = ML3Classifier(metric=metric, alpha="scale", random_state=0).fit(X[train], y[train])
    print(f"metric={metric}: accuracy {model.score(X[test], y[test]):.3f}")

# %%
# The weights say which columns were used: pixels at the edge, which are always empty, and noise,
# count little.
fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", width_ratios=[1, 2])
axes[0].imshow(model.feature_weights_[:64].reshape(8, 8), cmap="Greys")
axes[0].set(title="weights of the pixels", xticks=[], yticks=[])
axes[1].hist([model.feature_weights_[:64], model.feature_weights_[64:]], bins=20)
axes[1].legend(["pixels", "noise"])
axes[1].set(xlabel="weight", ylabel="columns")

# %%
# Directions. Here labels depend on two directions of twenty, none of them a feature. ``metric=2``
# looks for two combinations of features; seen in these, the classes come apart.
directions = np.linalg.qr(rng.standard_normal((20, 2)))[0]
X = rng.standard_normal((3000, 20))
u, v = (X @ directions).T
y = np.sin(2 * u) > 0.8 * v
train, test = slice(0, 2000), slice(2000, None)
for metric in (None, 2):
    model = ML3Classifier(metric=metric, random_state=0).fit(X[train], y[train])
    print(f"metric={metric}: accuracy {model.score(X[test], y[test]):.3f}")
seen = np.linalg.eigh(model.metric_)[1][:, -2:]
fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharex=True, sharey=True)
axes[0].scatter(X[test, 0], X[test, 1], s=4, c=y[test], cmap="coolwarm")
axes[0].set(title="two of the features", aspect="equal")
axes[1].scatter(*(X[test] @ seen).T, s=4, c=y[test], cmap="coolwarm")
axes[1].set(title="the two directions that were learned", aspect="equal")
plt.show()
