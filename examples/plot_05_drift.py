"""
A stream that drifts
====================

Rows come in batches, and what they mean changes slowly. Does ``partial_fit`` follow, and when is a
new fit better?
"""

# %%
# A border that turns
# -------------------
# Each batch has 200 rows. From batch to batch, the border between the classes turns by three
# degrees.
import matplotlib.pyplot as plt
import numpy as np

from loclin import ML3Classifier

rng = np.random.default_rng(0)


def draw(degrees):
    """Draw a batch, labelled by a bent border that is turned by some degrees."""
    X = rng.uniform(-1, 1, (200, 2))
    turn = np.radians(degrees)
    u = X @ [np.cos(turn), np.sin(turn)]
    v = X @ [-np.sin(turn), np.cos(turn)]
    return X, np.where(v > 0.3 * np.sin(3 * u), "above", "below")


batches = [draw(3 * k) for k in range(40)]

# %%
# Test each batch, then learn from it
# -----------------------------------
# Three models predict a batch before its labels are known. The first was fitted once. The second
# learns from each batch with ``partial_fit``. The third is fitted anew, on the last five batches.
once = ML3Classifier(random_state=0).fit(*batches[0])
stream = ML3Classifier(random_state=0).partial_fit(*batches[0], classes=["above", "below"])
accuracies = []
for k in range(1, len(batches)):
    X, y = batches[k]
    recent_X, recent_y = map(np.concatenate, zip(*batches[max(0, k - 5) : k], strict=True))
    recent = ML3Classifier(random_state=0).fit(recent_X, recent_y)
    accuracies.append([model.score(X, y) for model in (once, stream, recent)])
    stream.partial_fit(X, y)

# %%
# The curves are means over five batches.
smooth = np.apply_along_axis(np.convolve, 0, accuracies, np.ones(5) / 5, mode="valid")
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(smooth, label=["fitted once", "partial_fit", "fitted to the last five batches"])
ax.set(xlabel="batch", ylabel="accuracy on the next batch")
ax.legend()

for name, accuracy in zip(["once", "stream", "recent"], np.mean(accuracies, axis=0), strict=True):
    print(f"{name}: accuracy {accuracy:.3f}")

# %%
# What to take away
# -----------------
# A stream follows a slow drift, and needs no row twice. Its steps shrink with the rows seen, so it
# follows more slowly later. If the drift does not end, a new fit to recent rows is better.
