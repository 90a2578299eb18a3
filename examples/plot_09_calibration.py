"""
Can the probabilities be trusted?
=================================

Of the rows given 80 %, do four in five have the label? A reliability diagram tells, for any
classifier.
"""

# %%
# Noisy labels
# ------------
# One label in five is drawn at random. So no classifier can be sure, and one that is sure is wrong.
import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from loclin import ML3Classifier

X, y = make_classification(
    4000, n_informative=8, n_clusters_per_class=3, flip_y=0.2, random_state=0
)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

# %%
# Curves
# ------
# On the diagonal, probabilities are frequencies. A curve that is flatter belongs to a model that is
# too sure, and a steeper one to a model that is not sure enough.
models = [
    ML3Classifier(random_state=0),
    RandomForestClassifier(random_state=0),
    HistGradientBoostingClassifier(random_state=0),
]
fig, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for model in models:
    name = type(model).__name__
    P = model.fit(X, y).predict_proba(X_test)
    CalibrationDisplay.from_predictions(y_test, P[:, 1], n_bins=8, name=name, ax=ax)
    print(f"{name}: accuracy {model.score(X_test, y_test):.3f}, log loss {log_loss(y_test, P):.3f}")

# %%
# One number does it
# ------------------
# A fit of loclin divides all scores by one temperature. It is chosen by log loss on rows that the
# model was not trained on.
print(f"temperature {models[0].temperature_:.2f}")

# %%
# What to take away
# -----------------
# Draw this diagram for your own data before you act on probabilities. If a curve of loclin is bent,
# wrap the classifier in ``CalibratedClassifierCV(method="isotonic")``.
