"""
Eleven classifiers on two moons
===============================

How do the borders of the classifiers differ? One picture shows them on the same points, with
default settings.
"""

# %%
# Points
# ------
# Two half circles, with noise. No straight line parts them. ``KernelLMKLClassifier`` is left out:
# its scores are not those of linear models.
import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import loclin
from loclin.inspection import RegionsDisplay

X, y = make_moons(600, noise=0.2, random_state=0)
X = StandardScaler().fit_transform(X)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)

# %%
# Classes and borders
# -------------------
# A colour is the class that is predicted. Where it is pale, the scores of the classes are close.
models = [
    loclin.ML3Classifier(random_state=0),
    loclin.SAPLClassifier(random_state=0),
    loclin.LLSVMClassifier(random_state=0),
    loclin.L3MClassifier(random_state=0),
    loclin.CSVMClassifier(random_state=0),
    loclin.LDKLClassifier(random_state=0),
    loclin.LMKLClassifier(random_state=0),
    loclin.SVMKNNClassifier(),
    loclin.ForestClassifier(random_state=0),
    loclin.LocallyLinearEnsemble(random_state=0),
    loclin.USSVMClassifier(random_state=0),
]
fig, axes = plt.subplots(4, 3, figsize=(9, 11), layout="constrained", sharex=True, sharey=True)
for ax, model in zip(axes.flat, models, strict=False):
    model.fit(X, y)
    display = RegionsDisplay.from_estimator(model, X, y=y, response="score", grid_resolution=60)
    display.plot(ax, point_kw={"s": 6, "alpha": 0.7}, border_kw={"linewidths": 0})
    ax.set_title(f"{type(model).__name__}\naccuracy {model.score(X_test, y_test):.3f}", fontsize=9)
    ax.set(xlabel="", ylabel="")
    ax.get_legend().remove()
axes.flat[-1].set_axis_off()

# %%
# Which model decides where?
# --------------------------
# With ``response="regions"`` a colour is the local model that counts most. Few models make a
# picture that can be read.
few = [
    loclin.ML3Classifier(4, p=1, metric=None, pieces=None, random_state=0),
    loclin.SAPLClassifier(8, pieces=None, random_state=0),
    loclin.L3MClassifier(4, pieces=None, random_state=0),
]
fig, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained", sharey=True)
for ax, model in zip(axes, few, strict=True):
    display = RegionsDisplay.from_estimator(model.fit(X, y), X, y=y, response="regions")
    display.plot(ax, point_kw={"s": 4, "alpha": 0.5})
    ax.set_title(type(model).__name__)
    ax.get_legend().remove()

# %%
# What to take away
# -----------------
# All borders bend but that of ``USSVMClassifier``, which has one linear model a class. Several
# models have the same accuracy here. So choose by what else you need: probabilities, rules, speed
# or a certain kind of explanation.
