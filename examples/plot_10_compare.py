"""
loclin beside the usual classifiers
===================================

How accurate, how fast and how large are the models on one data set? A few lines of Python compare
them.
"""

# %%
# Handwritten digits
# ------------------
# All classifiers have their default settings. ``SVC`` and the linear model get a scaler.
import pickle
import time

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from loclin import ML3Classifier, SAPLClassifier

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
ours = {
    "ML3Classifier": ML3Classifier(random_state=0),
    "SAPLClassifier": SAPLClassifier(random_state=0),
}
others = {
    "SVC": make_pipeline(StandardScaler(), SVC()),
    "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
}

# %%
# Compile before you measure
# --------------------------
# The first fit of a class compiles its loops. A fit to a few rows keeps that out of the times.
for model in ours.values():
    model.fit(X[:200], y[:200]).predict_proba(X[:200])

# %%
# Errors, log losses, seconds and sizes
# -------------------------------------
# ``SVC`` gives no probabilities, and so has no log loss.
lines = {}
for name, model in {**ours, **others}.items():
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    lines[name] = {
        "error in %": 100 * (1 - accuracy_score(y_test, model.predict(X_test))),
        "log loss": None if name == "SVC" else log_loss(y_test, model.predict_proba(X_test)),
        "seconds to fit": seconds,
        "size in kB": len(pickle.dumps(model)) / 1000,
    }
table = pd.DataFrame.from_dict(lines, orient="index", dtype=float)
table.round(2)

# %%
# Size and error in one picture
# -----------------------------
# Lower is better, and further left is smaller.
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.scatter(table["size in kB"], table["error in %"])
for name, line in table.iterrows():
    ax.annotate(name, (line["size in kB"], line["error in %"]), (5, 4), textcoords="offset points")
ax.set(xscale="log", xlabel="size in kB", ylabel="error in %", xlim=(4, 60000))
ax.margins(y=0.1)

# %%
# What to take away
# -----------------
# One split of one data set is a hint, no proof. Repeat this on your own rows, or let
# ``loclin compare`` tune all of them for you. :doc:`/results` has many data sets.
