"""
What the atoms of US-SVM see
============================

In ``USSVMClassifier`` all classes share a few linear models, called atoms. What does each atom
see, and which classes use it?
"""

# %%
# Eight atoms for ten digits
# --------------------------
# A class is a sum of atoms, here of at most four. Its coefficients are the code of the class.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from loclin import USSVMClassifier

X, y = load_digits(return_X_y=True)
X = X / 16
model = USSVMClassifier(8, n_nonzero=4, random_state=0).fit(X, y)
print(f"accuracy {model.score(X, y):.3f}")
print("classes that use each atom:", model.atom_usage())

# %%
# A row of the picture is a class, and a column is an atom.
codes = model.codes_.toarray()
most = np.abs(codes).max()
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
image = ax.imshow(codes, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
ax.set(xlabel="atom", ylabel="digit", yticks=range(10))
fig.colorbar(image, label="coefficient")

# %%
# What an atom sees
# -----------------
# Each line shows an atom as a picture, and the ten rows that it scores highest. Where
# two digits stand in one line, the atom sees what they share.
most_used = np.argsort(-model.atom_usage())[:4]
fig, axes = plt.subplots(4, 11, figsize=(9, 4), layout="constrained")
for line, atom in zip(axes, most_used, strict=True):
    line[0].imshow(model.dictionary_[:, atom].reshape(8, 8), cmap="RdBu_r")
    line[0].set_ylabel(f"atom {atom}")
    for ax, row in zip(line[1:], model.top_samples(X, atom, 10), strict=True):
        ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
        ax.set_title(str(y[row]), fontsize=8)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])

# %%
# Several ways to write a one
# ---------------------------
# The atoms that count most for the ones, and the ones that each atom speaks for most. Atoms that
# see different shapes mean that the digit is written in several ways.
ones = X[y == 1]
atoms, coefficients = model.top_atoms(1, 3)
fig, axes = plt.subplots(len(atoms), 8, figsize=(8, 3), layout="constrained", squeeze=False)
for line, atom, coefficient in zip(axes, atoms, coefficients, strict=True):
    rows = model.top_samples(ones, atom, len(ones))
    rows = rows[:8] if coefficient > 0 else rows[::-1][:8]
    line[0].set_ylabel(f"{coefficient:+.1f} x {atom}")
    for ax, row in zip(line, rows, strict=True):
        ax.imshow(ones[row].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])

# %%
# What to take away
# -----------------
# Shared atoms can be looked at one by one. ``atom_usage``, ``top_samples`` and ``top_atoms`` answer
# who uses an atom, what it sees, and which atoms make a class.
