"""
An additive model and its curves
================================

Can a model bend, and still be read as one curve for each feature? Yes: one linear model with
pieces does both.
"""

# %%
# Straight lines, broken at quantiles
# -----------------------------------
# The label says whether a known function of five features is high. The third feature counts by its
# square, the next two count in proportion, and the first two act together.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from loclin import CSVMClassifier, ML3Classifier
from loclin.inspection import EffectDisplay, feature_importances

values, target = make_friedman1(3000, noise=1, random_state=0)
table = pd.DataFrame(values).add_prefix("feature ")
labels = np.where(target > np.median(target), "high", "low")
X, X_test, y, y_test = train_test_split(table, labels, random_state=0)

# %%
# ``CSVMClassifier(1)`` is one linear SVM. With ``pieces=16`` it bends at up to sixteen quantiles of
# each feature. Its score is then a sum of curves of single features.
linear = CSVMClassifier(1, pieces=None, random_state=0).fit(X, y)
additive = CSVMClassifier(1, pieces=16, random_state=0).fit(X, y)
free = ML3Classifier(random_state=0).fit(X, y)
for name, model in {"linear": linear, "additive": additive, "ML3": free}.items():
    print(f"{name}: accuracy {model.score(X_test, y_test):.3f}")

# %%
# The features that count most
# ----------------------------
# The last five features are noise, and count little.
importances = feature_importances(additive, X, reference=X)
print(importances.sort_values(ascending=False).round(3).to_string())

# %%
# Their curves
# ------------
# ``EffectDisplay`` moves rows along one column. In an additive model the curves of all rows have
# the same shape, and differ by a constant.
fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for ax, place in zip(axes.flat, (0, 2, 3, 7), strict=True):
    column = f"feature {place}"
    EffectDisplay.from_estimator(
        additive, X[:20], column, values=X[column], classes=("high", "low")
    ).plot(ax)
    ax.set_title(column)

# %%
# Where does a model not add up?
# ------------------------------
# The first two features act together, which no sum of single curves can say. In ``ML3Classifier``
# the curves of the first feature have different shapes.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, model in zip(axes, (additive, free), strict=True):
    EffectDisplay.from_estimator(
        model, X[:20], "feature 0", values=X["feature 0"], classes=("high", "low")
    ).plot(ax)
    ax.set_title(type(model).__name__)

# %%
# What to take away
# -----------------
# One linear model with pieces is an additive model, and its curves are the whole model. Compare its
# accuracy with that of ``ML3Classifier``: the difference is what a sum of curves cannot say.
