"""
Several labels a row
====================

A message may have several topics at once. Which classifiers predict several labels, and which
of them is better?
"""

# %%
# Rows with any number of labels
# ------------------------------
# The labels are a matrix with a column of 0 and 1 for each label.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from loclin import ML3Classifier, USSVMClassifier

X, Y = make_multilabel_classification(2000, n_features=30, n_classes=6, random_state=0)
X, X_test, Y, Y_test = train_test_split(X, Y, random_state=0)
print(f"{Y.sum(axis=1).mean():.1f} labels a row")

# %%
# One model, or one for each label
# --------------------------------
# ``USSVMClassifier`` takes the matrix as it is. Any other classifier does it behind scikit-learn's
# ``OneVsRestClassifier``, which fits one model for each label.
shared = make_pipeline(StandardScaler(), USSVMClassifier(8, random_state=0)).fit(X, Y)
separate = OneVsRestClassifier(ML3Classifier(random_state=0)).fit(X, Y)

for name, model in {"USSVMClassifier": shared, "one ML3Classifier a label": separate}.items():
    found = model.predict(X_test)
    print(
        f"{name}: labels with accuracy {np.mean(found == Y_test):.3f}, "
        f"rows without a fault {accuracy_score(Y_test, found):.3f}, "
        f"mean F1 {f1_score(Y_test, found, average='macro'):.3f}"
    )

# %%
# Both give a probability for each label.
print(shared.predict_proba(X_test[:2]).round(2))

# %%
# What do the labels share?
# -------------------------
# Each label is a sum of atoms, which all labels may use. A column with several strong cells would
# be an atom that labels share. Here each label has one of its own, so they have little in common.
codes = shared[-1].codes_.toarray()
most = abs(codes).max()
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
image = ax.imshow(codes, cmap="RdBu_r", vmin=-most, vmax=most)
ax.set(xlabel="atom", ylabel="label")
fig.colorbar(image, label="coefficient")

# %%
# What to take away
# -----------------
# For several labels take ``USSVMClassifier`` first: it is one model, and fast. If the labels have
# bent borders, compare it with one classifier for each label.
