"""
Digits and their anchors
========================

What does a model with anchors know about handwritten digits? Its anchors are pictures themselves,
so look at them.
"""

# %%
# Twenty anchors
# --------------
# ``SAPLClassifier`` has a linear model at each anchor. A row is scored by the models of the
# anchors near it. Training moves the anchors, too.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from loclin import SAPLClassifier
from loclin.inspection import ModelUsageDisplay

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
model = SAPLClassifier(20, pieces=None, random_state=0).fit(X, y)
print(f"accuracy {model.score(X_test, y_test):.3f}")

# %%
# Who decides over which digits?
# ------------------------------
# Each bar counts the rows where one anchor has the largest weight. Colours are the predicted
# digits.
usage = ModelUsageDisplay.from_estimator(model, X)
usage.plot(image_shape=(8, 8))

# %%
# The anchors behind one decision
# -------------------------------
# ``local_weights`` says how much each anchor counts at a row. The weights of a row sum to 1.
row = X_test[:1]
weights = model.local_weights(row).toarray()[0]
nearest = weights.argsort()[::-1][:4]

fig, axes = plt.subplots(1, 5, figsize=(9, 2.4), layout="constrained")
axes[0].imshow(row.reshape(8, 8), cmap="gray_r")
axes[0].set_title(f"a row, predicted {model.predict(row)[0]}")
for ax, anchor in zip(axes[1:], nearest, strict=True):
    ax.imshow(model.anchors_[anchor].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"anchor {anchor}: {weights[anchor]:.2f}")
for ax in axes:
    ax.set(xticks=[], yticks=[])

# %%
# What to take away
# -----------------
# Anchors are points in the space of the rows. Where rows are pictures, the anchors show which
# kinds of rows the model tells apart.
