"""The tree of a file, looked through before anything is made of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

# Levels of lists, dicts and objects within one another. A pipeline in a pipeline takes
# four.
DEEPEST = 100
# What making a model may take: so many steps of about ten microseconds, and one for so
# many bytes of the file.
_MOST_STEPS, _BYTES_OF_STEP = 50_000, 32
_STEPS = {"object": 3, "generator": 3, "csr": 10, "csc": 10, "random_state": 60}
# Python salts the hashes of strings alone: numbers can be chosen so that all collide, and
# n of them in one set then take n^2 comparisons.
_COMPARISONS_OF_STEP = 400
# Bytes of the constant arrays of a file, which holds one number for each. What goes
# through every entry of them takes no more. 20 classes of 40 models of 36,568 features
# fit; others are written in full, so that they take no more memory than the file has
# bytes.
MOST_CONSTANT = 2**28
# Bytes that a node counts for, so that what takes time to show counts too.
_NODE = 2048

_CHILDREN: dict[str, Callable[[Any], list[Any]]] = {
    "dict": lambda node: [*chain.from_iterable(node["dict"])],
    "object": lambda node: [value for _, value in node["state"]],
    "generator": lambda node: [node["generator"], node["seed"]],
    "random_state": lambda node: [node["random_state"]],
}
_OF_PARTS = {"set", "frozenset", "slice", "tuple", "objects", "csr", "csc"}
_LEAVES = {"same", "type", "dtype", "number", "enum", "array", "function"}
# What may be in several places; the decoder counts each before its parts, in the same
# order.
_SHARED = {"list", "dict", "set", "objects", "array", "csr", "csc", "generator", "random_state",
           "object"}  # fmt: skip
# Where the node of a kind has a name.
_NAMED = {"object": "object", "tuple": "class", "enum": "enum", "type": "type",
          "function": "function"}  # fmt: skip
# Which of the children of a kind are hashed: each, or every second.
_HASHED = {"dict": 2, "set": 1, "frozenset": 1}


class Survey:
    """What a tree names. Raises where `save` writes none such,
    or its model takes too long or much.

    A model is as large as those find it who do not notice what is shared: ``repr`` and
    scikit-learn's ``clone`` go through a list once for each time that it is mentioned.

    Parameters
    ----------
    tree : node
    n_letters : int
        Of the tree.
    arrays : mapping of str to int
        Bytes of each array in the file.
    """

    def __init__(self, tree: Any, n_letters: int, arrays: Mapping[str, int]) -> None:
        self.names: set[tuple[str, str]] = set()  # each with what it is a name of
        self._unread = dict(arrays)
        self._size = 0
        self._sizes: list[
            int | None
        ] = []  # of what may be shared; None while it is not whole
        # Members of an ensemble share codings and labels: so much more than the file has
        # is enough.
        self._room = 2 * MOST_CONSTANT + 64 * sum(arrays.values()) + 2 * _NODE * n_letters
        self._steps = _MOST_STEPS + (sum(arrays.values()) + n_letters) // _BYTES_OF_STEP
        if isinstance(tree, dict | list):
            self._look(tree, 1)

    def _look(self, node: Any, depth: int) -> int:
        """Look at a node and return what it counts for."""
        kind = "list" if isinstance(node, list) else next(iter(node), "")
        if depth > DEEPEST:
            raise ValueError(f"nested deeper than {DEEPEST} levels")
        before, number = self._size, len(self._sizes)
        if kind in _SHARED:
            self._sizes.append(None)
        children = _children(kind, node)
        self._size += _NODE * (1 + len(children)) + self._of_leaf(kind, node)
        if self._size > self._room:
            raise ValueError(
                "what is in several places of it, or constant, grows too large"
            )
        self._take(_STEPS.get(kind, 1))
        hashed = _HASHED.get(kind, 0)
        n_unsalted = (
            sum(type(one) is not str for one in children[::hashed]) if hashed else 0
        )
        kinds = set(map(type, children))
        for place, child in enumerate(children if dict in kinds or list in kinds else ()):
            if isinstance(child, dict | list):
                size = self._look(child, depth + 1)
                if hashed and place % hashed == 0:
                    n_unsalted += size // _NODE - 1
        self._take(n_unsalted**2 // _COMPARISONS_OF_STEP)
        if kind in _SHARED:
            self._sizes[number] = self._size - before
        return self._size - before

    def _take(self, n_steps: int) -> None:
        self._steps -= n_steps
        if self._steps < 0:
            raise ValueError("it has too many parts, or keys that are no strings")

    def _of_leaf(self, kind: str, node: Any) -> int:
        """Return what a node without children counts for beside
        itself, and note its name.
        """
        if kind in _NAMED and _NAMED[kind] in node:
            name = node[_NAMED[kind]]
            self.names.add((_NAMED[kind], name if isinstance(name, str) else str(name)))
        if kind == "same":
            number = node["same"]
            if type(number) is not int or not 0 <= number < len(self._sizes):
                raise ValueError(f"no place {number}")
            size = self._sizes[number]
            if size is None:
                raise ValueError("something in it holds itself")
            return size
        if kind == "array":
            if node["array"] not in self._unread:
                raise ValueError(
                    f"the array {node['array']} is not there, or is in two places"
                )
            return max(
                self._unread.pop(node["array"]), _of_constant(node.get("shape", [0]))
            )
        return 0


def _of_constant(shape: Any) -> int:
    """Return what an array counts for that is one number, of eight bytes at most."""
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError(f"no shape {shape}")
    return 8 * math.prod(shape)


def _children(kind: str, node: Any) -> list[Any]:
    if kind == "list":
        return node
    if kind in _OF_PARTS:
        return node[kind]
    if kind in _LEAVES:
        return []
    return _CHILDREN[kind](node)
