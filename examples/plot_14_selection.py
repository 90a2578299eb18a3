"""
Which features can be left out?
===============================

Few of many features carry the labels. scikit-learn's selectors find them, if you tell them how to
rank features.
"""

# %%
# Digits beside noise
# -------------------
# Sixty-four pixels stand beside sixty-four columns of noise.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from loclin import ML3Classifier
from loclin.inspection import feature_importances, feature_weights

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X = np.hstack([X, rng.normal(0, 4, X.shape)])
X, X_test, y, y_test = train_test_split(X, y, random_state=0)

# %%
# Rank features by the weights of a fit
# -------------------------------------
# ``feature_weights`` returns the share of the local models' weights that each feature has. It is
# the ``importance_getter`` of a selector.
ranker = ML3Classifier(pieces=None, alpha="scale", random_state=0)
select = SelectFromModel(
    ranker, importance_getter=feature_weights, max_features=40, threshold=-np.inf
)
model = make_pipeline(select, ML3Classifier(random_state=0)).fit(X, y)
kept = model[0].get_support()
print(f"{kept.sum()} kept, {kept[64:].sum()} of them noise")
print(f"accuracy {model.score(X_test, y_test):.3f}")

# %%
# Leave them out step by step
# ---------------------------
# ``RFE`` fits again after each step, so the rest is ranked without what has gone.
accuracies = []
sizes = [10, 20, 40, 80, 128]
for size in sizes:
    rfe = RFE(ranker, n_features_to_select=size, step=0.5, importance_getter=feature_weights)
    rfe.fit(X, y)
    accuracies.append(rfe.score(X_test, y_test))

fig, ax = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
ax.plot(sizes, accuracies, marker="o")
ax.set(xlabel="features kept", ylabel="accuracy on test rows")

# %%
# Rank by contributions instead
# -----------------------------
# ``feature_importances`` needs rows. It is the mean size of what a column adds to their scores.
plain = ML3Classifier(random_state=0).fit(X, y)
sizes = np.asarray(feature_importances(plain, X, reference=X))

fig, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
for ax, values, title in zip(
    axes,
    (feature_weights(plain), sizes),
    ("feature_weights", "feature_importances"),
    strict=True,
):
    ax.imshow(values[:64].reshape(8, 8), cmap="Greys", vmin=0)
    ax.set(title=title, xticks=[], yticks=[])

# %%
# What to take away
# -----------------
# Pass ``importance_getter=feature_weights`` to select inside a pipeline. Choose the number of
# features by cross-validation, not on the test rows as the curve above does.
