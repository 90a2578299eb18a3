"""
What would change this decision?
================================

A loan is refused. Which small change of the application would turn the answer, if age and past
cannot change?
"""

# %%
# Loans
# -----
# Applications are made here. One is refused more often if its rate is large beside the income, if
# payments were late before, and if it runs long.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from loclin import ML3Classifier
from loclin.inspection import RegionsDisplay, flip
from loclin.tables import TableEncoder

rng = np.random.default_rng(0)
n = 1500
loans = pd.DataFrame(
    {
        "age": rng.integers(18, 75, n),
        "income": (1000 * rng.gamma(5, 0.7, n)).round(),
        "amount": (1000 * rng.gamma(2, 6, n)).round(),
        "months": rng.choice([12, 24, 36, 48, 60, 72], n),
        "late payments": rng.poisson(0.6, n),
        "purpose": rng.choice(["car", "house", "travel"], n),
    }
)
burden = loans["amount"] / loans["months"] / loans["income"]
risk = 8 * burden + 0.7 * loans["late payments"] + 0.02 * loans["months"] - 3
answers = np.where(risk + rng.logistic(0, 0.4, n) < 0, "granted", "refused")

model = make_pipeline(TableEncoder(), ML3Classifier(random_state=0)).fit(loans, answers)
print(f"accuracy {model.score(loans, answers):.3f}")

# %%
# One application
# ---------------
# Only amount and months may move, and only within bounds. All other columns stay as they are.
refused = loans[model.predict(loans) == "refused"]
applicant = refused[5:6]
movable = {"amount": (500, None), "months": (12, 72)}
found = flip(model, applicant, features=list(movable), bounds=movable)

for column, (before, after) in found.changed.items():
    print(f"{column}: {before:.0f} to {after:.0f}")
print(f"{found.label_before} before, {found.label_after} after, verified: {found.verified}")

# %%
# ``verified`` means that the model was asked again. Do so yourself:
print(model.predict(found.row))

# %%
# The way to the border
# ---------------------
# The picture is a cut: all other columns have the values of this application.
display = RegionsDisplay.from_estimator(
    model, loans, features=("amount", "months"), reference=applicant
)
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
display.plot(ax)
ends = [(row["amount"].item(), row["months"].item()) for row in (found.row, applicant)]
ax.annotate("", *ends, arrowprops={"arrowstyle": "->", "linewidth": 2})
ax.plot(*ends[1], "ko")
ax.set_title("blue: granted, orange: refused")

# %%
# Many applications
# -----------------
# Not every decision can turn within the bounds. ``verified`` says which ones can.
results = [
    flip(model, refused[k : k + 1], features=list(movable), bounds=movable) for k in range(20)
]
turned = [result for result in results if result.verified]
print(f"{len(turned)} of {len(results)} can turn")
print(f"median change: {np.median([result.distance for result in turned]):.2f} spreads")

# %%
# What to take away
# -----------------
# ``flip`` shows how far a decision is from the border, along columns that may move. It changes the
# model's inputs and is no advice: the world may not follow.
