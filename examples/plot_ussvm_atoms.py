"""
What the atoms of US-SVM have learned to see
============================================

A class of `USSVMClassifier` is a sparse code over atoms that all classes share. So an atom can be
looked at on its own: the classes that use it share an attribute, and a class that uses several has
several modalities. Handwritten digits show both; where the environment variable ``LOCLIN_DATA``
names a folder with ``flowers5_inceptionv3.npz``, so do five kinds of flowers, of which there are
features of a neural network, but no pictures.
"""

# %%
# Digits: eight atoms for ten classes, at most four of them in a code.
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from loclin import USSVMClassifier
from loclin.datasets import load

X, y = load_digits(return_X_y=True)
X = X / 16
model = USSVMClassifier(8, n_nonzero=4, random_state=0).fit(X, y)
print(f"digits: accuracy {model.score(X, y):.3f}, an atom in {model.atom_usage()} classes")


def show_codes(model, axes):
    """Draw the codes: a row a class, a column an atom."""
    codes = model.codes_.toarray()
    most = np.abs(codes).max()
    axes.imshow(codes, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    axes.set(xlabel="atom", ylabel="class", title="codes: which classes share which atoms")
    axes.set_yticks(range(len(model.classes_)), model.classes_)


fig, axes = plt.subplots(figsize=(6, 4), layout="constrained")
show_codes(model, axes)

# %%
# Attributes. Each row: an atom as a picture, and the digits that it alone scores highest: sevens
# and nines, say, by the same atom.
most_used = np.argsort(-model.atom_usage())[:4]
fig, axes = plt.subplots(4, 11, figsize=(9, 4), layout="constrained")
for row, atom in zip(axes, most_used, strict=True):
    row[0].imshow(model.dictionary_[:, atom].reshape(8, 8), cmap="RdBu_r")
    row[0].set_ylabel(f"atom {atom}")
    for place, sample in zip(row[1:], model.top_samples(X, atom, 10), strict=True):
        place.imshow(X[sample].reshape(8, 8), cmap="gray_r")
        place.set_title(str(y[sample]), fontsize=8)
for place in axes.ravel():
    place.set(xticks=[], yticks=[])
fig.suptitle("Attributes: what an atom scores highest")

# %%
# Modalities. The atoms that count most for one class, and the members of the class that each scores
# highest (or lowest, where it speaks against the class).
label = 1
members = X[y == label]
atoms, coefficients = model.top_atoms(label, 3)
fig, axes = plt.subplots(len(atoms), 8, figsize=(8, 3), layout="constrained", squeeze=False)
for row, atom, coefficient in zip(axes, atoms, coefficients, strict=True):
    found = model.top_samples(members, atom, len(members))
    found = found[:8] if coefficient > 0 else found[::-1][:8]
    row[0].set_ylabel(f"{coefficient:+.2g} x {atom}")
    for place, sample in zip(row, found, strict=True):
        place.imshow(members[sample].reshape(8, 8), cmap="gray_r")
        place.set(xticks=[], yticks=[])
fig.suptitle(f"Modalities of the digit {label}")

# %%
# Flowers. Without pictures, the classes of the hundred images that an atom scores highest tell what
# it has learned: one kind, or what several kinds share.
folder = os.environ.get("LOCLIN_DATA")
if folder and (Path(folder) / "flowers5_inceptionv3.npz").exists():
    flowers = load("flowers5_inceptionv3")
    X = StandardScaler().fit_transform(flowers.X_train)
    y = np.asarray(flowers.class_names)[np.unique(flowers.y_train, return_inverse=True)[1]]
    model = USSVMClassifier(8, n_nonzero=4, random_state=0).fit(X, y)
    print(f"flowers: accuracy {model.score(X, y):.3f}, an atom in {model.atom_usage()} classes")
    fig, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    show_codes(model, axes[0])
    counts = [
        [np.sum(y[model.top_samples(X, atom, 100)] == label) for label in model.classes_]
        for atom in range(8)
    ]
    below = np.zeros(8)
    for label, height in zip(model.classes_, np.transpose(counts), strict=True):
        axes[1].bar(range(8), height, bottom=below, label=label)
        below += height
    axes[1].set(xlabel="atom", title="classes of the 100 images that it scores highest")
    axes[1].legend()

plt.show()
