"""
The pictures of the README
==========================

``python examples/readme_pictures.py`` writes ``regions.png`` and ``explanation.png`` into
``docs/_static``, or into the folder that it is given.
"""

# %%
# Two moons, and the straight lines that keep them apart. With ``p=1`` one linear model of each
# class counts at a point. So the border between the classes is made of pieces of lines, and
# each line is that of two local models.
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline

from loclin import ML3Classifier
from loclin.inspection import LocalModelDisplay, RegionsDisplay
from loclin.tables import TableEncoder

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs/_static")
SMALL = {"dpi": 115, "pil_kwargs": {"optimize": True}}
plt.style.use("default")


def lines_of(model, display):
    """Return the different lines that the border is made of: points with two local models."""
    middles = display.boundary.mean(axis=1)
    coef, intercept = model.local_model(middles)
    lines = np.column_stack([coef, intercept]).round(9)
    return np.unique(lines[abs(model.decision_function(middles)) < 1e-2], axis=0)


X, y = make_moons(400, noise=0.15, random_state=0)
moons = np.array(["upper moon", "lower moon"])[y]
model = ML3Classifier(3, p=1, metric=None, pieces=None, random_state=0).fit(X, moons)
print(f"accuracy {model.score(X, moons):.3f}")

fig, axes = plt.subplots(1, 2, figsize=(8.2, 3.5), layout="constrained", sharey=True)
classes = RegionsDisplay.from_estimator(model, X, y=moons).plot(
    axes[0], border_kw={"linewidths": 0}
)
models = RegionsDisplay.from_estimator(model, X, y=moons, response="regions")
models.plot(axes[1], point_kw={"s": 4, "alpha": 0.5})
lines = lines_of(model, classes)
for a, b, c in lines:
    axes[0].axline((0, -c / b), slope=-a / b, color="#333333", linewidth=0.8, linestyle=(0, (4, 4)))
axes[0].set_title(f"{len(lines)} straight lines make the border", fontsize=11)
axes[1].set_title("the linear model that decides", fontsize=11)
for ax in axes:
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
axes[1].get_legend().remove()
axes[0].legend(loc="lower left", fontsize=9, handletextpad=0.1, framealpha=0.9, edgecolor="white")
fig.savefig(FOLDER / "regions.png", **SMALL)

# %%
# Customers who leave, and why: a table of numbers, categories, dates and gaps, as it is.
rng = np.random.default_rng(0)
n = 600
table = pd.DataFrame(
    {
        "contract": rng.choice(["monthly", "one year", "two years"], n, p=[0.5, 0.3, 0.2]),
        "monthly charge": np.round(rng.gamma(6, 9, n), 2),
        "support calls": rng.poisson(1.5, n),
        "customer since": np.datetime64("2021-03-01")
        + rng.integers(0, 1400, n).astype("timedelta64[D]"),
        "payment": rng.choice(["card", "transfer", "cheque"], n),
        "paperless": rng.random(n) < 0.6,
    }
)
months = (np.datetime64("2025-01-01") - table["customer since"]).dt.days / 30
risk = (
    1.4 * (table["contract"] == "monthly")
    + 0.025 * (table["monthly charge"] - 50)
    + 0.7 * (table["support calls"] - 1.5)
    - 0.04 * (months - 24)
    + 0.4 * (table["payment"] == "cheque")
    - 0.7
)
left = np.where(risk + rng.logistic(0, 0.5, n) > 0, "leaves", "stays")
table.loc[rng.random(n) < 0.05, "monthly charge"] = np.nan
pipeline = make_pipeline(TableEncoder(), ML3Classifier(random_state=0)).fit(table, left)
print(f"accuracy {pipeline.score(table, left):.3f}")

asked = (table["contract"] == "monthly") & (table["support calls"] > 2) & table["paperless"]
row = table[asked & (months > 24) & (table["monthly charge"] < 50)][:1]
display = LocalModelDisplay.from_estimator(pipeline, row, classes=("leaves", "stays")).plot()
display.figure_.savefig(FOLDER / "explanation.png", **SMALL)
