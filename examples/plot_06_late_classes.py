"""
Classes that come late
======================

A tenth digit appears after nine are known. Must all be learned again?
"""

# %%
# A stream whose last class comes late
# ------------------------------------
# The first ten batches have no nines. ``partial_fit`` must hear of all classes in its first call,
# and may see their rows later.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from loclin import ML3Classifier, USSVMClassifier

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
early = np.flatnonzero(y < 9)
first, rest = early[:800], np.setdiff1d(np.arange(len(y)), early[:800])

stream = ML3Classifier(random_state=0)
nine, others = y_test == 9, y_test < 9
accuracies = []
for rows in [*np.array_split(first, 10), *np.array_split(rest, 10)]:
    stream.partial_fit(X[rows], y[rows], classes=np.arange(10))
    accuracies.append([stream.score(X_test[part], y_test[part]) for part in (others, nine)])

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(range(1, 21), accuracies, marker=".", label=["digits 0 to 8", "digit 9"])
ax.axvline(10.5, color="gray", linestyle=":")
ax.set(xlabel="batches learned from", ylabel="accuracy on test rows", xticks=range(0, 21, 5))
ax.legend()
print(f"after all batches: accuracy {stream.score(X_test, y_test):.3f}")

# %%
# A class that nobody knew of
# ---------------------------
# ``USSVMClassifier`` takes a new class after the fit. It writes the class by the atoms that it has
# learned, and leaves all other classes as they are.
scaler = StandardScaler().fit(X[early])
known = USSVMClassifier(20, random_state=0).fit(scaler.transform(X[early]), y[early])
before = known.score(scaler.transform(X_test[others]), y_test[others])

known.add_class(scaler.transform(X), y == 9, label=9)
after = known.predict(scaler.transform(X_test))
print(f"digits 0 to 8: accuracy {before:.3f}, then {np.mean(after[others] == y_test[others]):.3f}")
print(f"digit 9: accuracy {np.mean(after[nine] == 9):.3f}")

# %%
# What to take away
# -----------------
# If you know the names of all classes, a stream learns each when it comes. If you do not,
# ``USSVMClassifier`` adds it in milliseconds, but its classes have straight borders.
