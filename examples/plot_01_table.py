"""
From a CSV file to an explained decision
========================================

Which customers will leave, and why? The file has numbers, categories, dates and gaps, and no cell
has to be prepared.
"""

# %%
# A file as it comes
# ------------------
# Eight hundred customers are made here and written to a CSV file. Customers with a monthly
# contract, many calls or a high charge leave more often, and old customers less often. One charge
# in twenty is missing.
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from loclin import ML3Classifier
from loclin.inspection import LocalModelDisplay, feature_importances, record
from loclin.tables import TableEncoder, read

rng = np.random.default_rng(0)
n = 800
customers = pd.DataFrame(
    {
        "customer_id": np.arange(1, n + 1),
        "contract": rng.choice(["monthly", "one year", "two years"], n, p=[0.5, 0.3, 0.2]),
        "charge": rng.gamma(6, 9, n).round(2),
        "calls": rng.poisson(1.5, n),
        "since": pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 1400, n), "D"),
        "payment": rng.choice(["card", "transfer", "cheque"], n),
    }
)
months = (pd.Timestamp("2025-01-01") - customers["since"]).dt.days / 30
risk = (
    1.4 * (customers["contract"] == "monthly")
    + 0.025 * (customers["charge"] - 50)
    + 0.7 * (customers["calls"] - 1.5)
    - 0.04 * (months - 24)
    - 0.7
)
customers["churn"] = np.where(risk + rng.logistic(0, 0.5, n) > 0, "leaves", "stays")
customers.loc[rng.random(n) < 0.05, "charge"] = np.nan

with TemporaryDirectory() as folder:
    path = Path(folder) / "customers.csv"
    customers.to_csv(path, index=False)
    table = read(path)
table.head()

# %%
# A pipeline for any table
# ------------------------
# ``TableEncoder`` finds out what each column is and turns it into features.
labels = table.pop("churn")
train, test, y_train, y_test = train_test_split(table, labels, random_state=0)
model = make_pipeline(TableEncoder(), ML3Classifier(random_state=0)).fit(train, y_train)

print(f"accuracy {model.score(test, y_test):.3f}")
print(f"log loss {log_loss(y_test, model.predict_proba(test)):.3f}")

# %%
# The encoder tells what it took each column for. Its notes name what it left out.
print(model[0].kinds_)
print(*model[0].notes_, sep="\n")

# %%
# Why does this customer leave?
# -----------------------------
# The score of a row is a sum over the columns. Each bar is what a column adds because its value
# differs from the mean training row.
leaving = test[model.predict(test) == "leaves"]
customer = leaving[:1]
LocalModelDisplay.from_estimator(model, customer).plot()

# %%
# Over many rows, the mean size of the bars says which columns count.
print(feature_importances(model, test).sort_values(ascending=False).round(2).to_string())

# %%
# Write the decision down
# -----------------------
# ``record`` keeps what an auditor asks for later: the inputs, the label and the reasons. The same
# row gives the same text each time.
kept = record(model, customer, n_reasons=1)
print(*kept)
print(json.dumps(kept["reasons"], indent=2))

# %%
# What to take away
# -----------------
# A file, an encoder and a classifier make a pipeline that explains itself in the table's own
# columns. The explanation is exact: its parts sum to the score.
