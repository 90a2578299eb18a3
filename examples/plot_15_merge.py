"""
Fewer models to read
====================

A classifier has eighty linear models, eight for each digit. How few say nearly the same?
"""

# %%
# A full model
# ------------
# Half of the rows are for the fit, a quarter for merging, and a quarter for an honest test.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from loclin import ML3Classifier
from loclin.inspection import merge_models

X, rest, y, y_rest = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
X_merge, X_test, y_merge, y_test = train_test_split(rest, y_rest, test_size=0.5, random_state=0)
model = ML3Classifier(8, pieces=None, random_state=0).fit(X, y)
print(f"80 models: accuracy {model.score(X_test, y_test):.3f}")

# %%
# Merge, and see what it costs
# ----------------------------
# ``merge_models`` merges two models of a class at a time. ``max_increase`` is how much the share of
# errors may rise. Errors are counted on rows that the fit has not seen.
found = {rise: merge_models(model, X_merge, y_merge, max_increase=rise) for rise in (0, 0.02, 0.04)}
for rise, merged in found.items():
    print(
        f"max_increase={rise}: {merged.n_models} models, "
        f"accuracy {merged.model.score(X_test, y_test):.3f}"
    )

# %%
# The models that are left
# ------------------------
# ``groups`` says which models became one. Most digits need one model, and some need more: they are
# written in several ways.
merged = found[0]
fig, axes = plt.subplots(2, 5, figsize=(9, 3.6), layout="constrained")
for ax, digit in zip(axes.flat, model.classes_, strict=True):
    ax.imshow(X[y == digit].mean(axis=0).reshape(8, 8), cmap="gray_r")
    ax.set_title(f"digit {digit}: {len(merged.groups[digit])} of 8")
    ax.set(xticks=[], yticks=[])

# %%
# The merged model is a classifier
# --------------------------------
# It predicts, and ``local_model`` is still exact.
coef, intercept = merged.model.local_model(X_test)
scores = (coef * X_test[:, None]).sum(axis=2) + intercept
print(f"largest difference {abs(scores - merged.model.decision_function(X_test)).max():.0e}")

# %%
# What to take away
# -----------------
# Many models help the fit, and few are enough to read. Always count the errors of the merged model
# on rows that neither the fit nor the merging has seen.
