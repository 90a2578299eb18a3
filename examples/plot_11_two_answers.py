"""
Two exact answers, and where they differ
========================================

Which linear model made this score? And what does a small change of a feature do to it? The answers
may differ, even in sign.
"""

# %%
# A score along one feature
# -------------------------
# ``SAPLClassifier`` weighs linear models by the distances of a row to its anchors. So a change of
# the row changes the weights, too.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, make_moons

from loclin import SAPLClassifier

X, y = make_moons(400, noise=0.15, random_state=0)
model = SAPLClassifier(8, metric=None, pieces=None, random_state=0).fit(X, y)
print(f"accuracy {model.score(X, y):.3f}")

# %%
# The black curve is the score along the first feature, while the second stays. Both lines go
# through the score of the row. ``local_model`` is the linear model that makes the score there.
# ``local_gradient`` is the tangent of the curve.
row = np.array([[1.25, 0.25]])
coef, intercept = model.local_model(row)
slope = model.local_gradient(row)

places = np.linspace(-1.2, 2.2, 200)
along = np.column_stack([places, np.full(200, row[0, 1])])
score = model.decision_function(row)[0]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(places, model.decision_function(along), color="black", label="decision_function")
ax.axline((row[0, 0], score), slope=coef[0, 0], color="C1", linestyle="--", label="local_model")
ax.axline((row[0, 0], score), slope=slope[0, 0], color="C0", label="local_gradient")
ax.plot(row[0, 0], score, "ko")
ax.set(xlabel="first feature", ylabel="score of the second class", xlim=(-1.2, 2.2))
ax.legend()

# %%
# Each is exact for its own question
# ----------------------------------
# Coefficients times values, and the intercept, sum to the score. A small step changes the score by
# the slope.
step = 1e-5
moved = row + np.array([step, 0])
change = model.decision_function(moved)[0] - score
print(f"score {score:.6f}, by local_model {(coef * row).sum() + intercept[0]:.6f}")
print(f"slope {change / step:.4f}, by local_gradient {slope[0, 0]:.4f}")

# %%
# Real rows
# ---------
# On a table of tumours, compare both for the ten means of one row. They are given for a change of
# one standard deviation.
tumours = load_breast_cancer(as_frame=True)
cells = tumours.data
benign = SAPLClassifier(random_state=0).fit(cells, tumours.target)
one = cells[260:261]
names = cells.columns[:10]
spread = cells.std().to_numpy()
parts = (benign.local_model(one)[0][0] * spread)[:10]
slopes = (benign.local_gradient(one)[0] * spread)[:10]

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
places = np.arange(10)
ax.barh(places - 0.2, parts, 0.4, color="C1", label="local_model")
ax.barh(places + 0.2, slopes, 0.4, color="C0", label="local_gradient")
ax.axvline(0, color="black", linewidth=0.8)
ax.set(xlabel="score for one standard deviation", yticks=places, yticklabels=names)
ax.invert_yaxis()
ax.legend()

# %%
# What to take away
# -----------------
# Use ``local_model`` to show how a score came about. Use ``local_gradient`` to say whether more of
# a feature raises the score. For ML3, L3M, CSVM and US-SVM both are the same.
