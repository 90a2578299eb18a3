"""From a tree and arrays back to a model. Only what `Classes` finds is made."""

from __future__ import annotations

import io
import math
from functools import lru_cache
from inspect import signature
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy
from scipy import sparse
from sklearn.base import BaseEstimator

from loclin.io._checks import check, is_of_class, without_memory
from loclin.io._classes import TYPES, Classes, is_enum, is_named_tuple
from loclin.io._encode import ARRAYS, BIT_GENERATORS, is_constant

_SPARSE = {
    ("csr", False): sparse.csr_matrix,
    ("csr", True): sparse.csr_array,
    ("csc", False): sparse.csc_matrix,
    ("csc", True): sparse.csc_array,
}
# What the numbers of JSON are for each kind of dtype.
_PYTHON = {"b": bool, "i": int, "u": int, "f": float, "U": str}
# Where the C code of generators reads at a place that their state names: its highest
# value. NumPy does not look.
_PLACES = {"MT19937": 624, "Philox": 4}
_MOST_SEEDS = 1000


class Decoder:
    """Makes what the nodes of a tree tell, which `Survey` has looked through.

    Parameters
    ----------
    archive : ZipFile
        With the arrays.
    classes : Classes
    """

    def __init__(self, archive: ZipFile, classes: Classes) -> None:
        self.archive, self.classes = archive, classes
        self.made: list[Any] = []  # what may be shared, in the order of the encoder

    def value(self, node: Any) -> Any:
        """Return what a node tells."""
        if isinstance(node, list):
            return self._filled([], node)
        if not isinstance(node, dict):
            return node
        return getattr(self, f"_{_KINDS[next(iter(node), '')]}")(node)

    def _filled(self, found: list[Any], nodes: list[Any]) -> list[Any]:
        self.made.append(found)
        found += map(self.value, nodes)
        return found

    def _reserved(self, make: Any) -> Any:
        """Make what is counted before its parts."""
        place = len(self.made)
        self.made.append(None)
        self.made[place] = make()
        return self.made[place]

    def _same(self, node: Any) -> Any:
        return self.made[node["same"]]

    def _dict(self, node: Any) -> Any:
        found: dict[Any, Any] = {}
        self.made.append(found)
        for key, one in node["dict"]:
            key = self.value(key)
            found[key] = self.value(one)
        return found

    def _set(self, node: Any) -> Any:
        return self._reserved(lambda: set(map(self.value, node["set"])))

    def _frozenset(self, node: Any) -> Any:
        return frozenset(map(self.value, node["frozenset"]))

    def _slice(self, node: Any) -> Any:
        return slice(*map(self.value, node["slice"]))

    def _tuple(self, node: Any) -> Any:
        items = tuple(map(self.value, node["tuple"]))
        if "class" not in node:
            return items
        kind: Any = self.classes.find(node["class"])
        if not is_named_tuple(kind):
            raise TypeError(f"{node['class']} is no named tuple")
        return kind._make(items)

    def _type(self, node: Any) -> Any:
        return TYPES[node["type"]]

    def _function(self, node: Any) -> Any:
        return self.classes.function(node["function"])

    def _dtype(self, node: Any) -> Any:
        found = np.dtype(str(node["dtype"]))
        if found.kind not in ARRAYS + "O" or found.str != node["dtype"]:
            raise ValueError(f"no dtype {found}")
        return found

    def _number(self, node: Any) -> Any:
        dtype, number = self._dtype(node), node["number"]
        if type(number) is not _PYTHON.get(dtype.kind):
            raise ValueError(f"no number of dtype {dtype}")
        return dtype.type(number)

    def _enum(self, node: Any) -> Any:
        kind: Any = self.classes.find(node["enum"])
        if not is_enum(kind):
            raise TypeError(f"{node['enum']} is no enumeration")
        return kind(node["value"])

    def _objects(self, node: Any) -> Any:
        found = np.empty(len(node["objects"]), object)
        shaped = found.reshape(node["shape"])
        self.made.append(shaped)
        for place, one in enumerate(node["objects"]):
            found[place] = self.value(one)
        return shaped

    def _array(self, node: Any) -> Any:
        found = read_array(self.archive.read(node["array"]))
        if "shape" in node:
            if found.shape or found.itemsize > 8:
                raise ValueError("a constant array of more than one number")
            found = np.broadcast_to(found, node["shape"])
        self.made.append(found)
        return found

    def _sparse(self, node: Any) -> Any:
        kind = next(iter(node))

        def make() -> Any:
            parts = tuple(map(self.value, node[kind]))
            if any(map(is_constant, parts)):  # SciPy writes constant parts in full
                raise ValueError("constant parts of a sparse matrix")
            found = _SPARSE[kind, node["is_array"]](parts, shape=tuple(node["shape"]))
            found.check_format(full_check=True)
            return found

        return self._reserved(make)

    def _generator(self, node: Any) -> Any:
        def make() -> Any:
            state, seed = self._state_of_bits(node["generator"]), self.value(node["seed"])
            bits = getattr(np.random, state["bit_generator"])(seed and _seeds(seed))
            bits.state = state
            return np.random.Generator(bits)

        return self._reserved(make)

    def _random_state(self, node: Any) -> Any:
        def make() -> Any:
            found = np.random.RandomState(0)
            found.set_state(self._state_of_bits(node["random_state"]))
            return found

        return self._reserved(make)

    def _state_of_bits(self, node: Any) -> dict[str, Any]:
        state: dict[str, Any] = dict(self.value(node))
        name = state["bit_generator"]
        if name not in BIT_GENERATORS:
            raise ValueError(f"{name} is no generator of random bits")
        place = state["state"]["pos"] if name == "MT19937" else state.get("buffer_pos", 0)
        if not 0 <= int(place) <= _PLACES.get(name, 0):
            raise ValueError(f"no place {place} in the state of {name}")
        return state

    def _object(self, node: Any) -> Any:
        kind: Any = self.classes.find(node["object"])
        found = kind.__new__(kind)
        self.made.append(found)
        state = {str(key): self.value(one) for key, one in node["state"]}
        methods = [name for name in state if is_of_class(kind, name)]
        if methods:
            raise ValueError(
                f"{methods[0]} is a method of {kind.__name__}, not an attribute"
            )
        # An earlier version may have had fewer parameters.
        state = without_memory(kind, _defaults(kind) | state)
        if hasattr(found, "__setstate__"):
            found.__setstate__(state)
        else:
            vars(found).update(state)
        check(found, self.classes)
        return found


def _seeds(seed: dict[str, Any]) -> np.random.SeedSequence:
    """Return the seeds of a generator; NumPy mixes each with each of the pool."""
    for part in (seed["entropy"], seed["spawn_key"]):
        words = () if part is None or isinstance(part, int) else part
        if len(words) > _MOST_SEEDS or any(
            not isinstance(n, int | np.integer) for n in words
        ):
            raise ValueError("no seed of a generator")
    if not 0 < seed["pool_size"] <= 64:
        raise ValueError("no pool of a generator")
    return np.random.SeedSequence(**seed)


@lru_cache
def _defaults(kind: type) -> dict[str, Any]:
    """Return the defaults of an estimator's parameters, but those that its class tells."""
    if not issubclass(kind, BaseEstimator):
        return {}
    parameters = signature(kind).parameters.values()
    return {
        one.name: one.default
        for one in parameters
        if one.default is not one.empty and not hasattr(kind, one.name)
    }


_KINDS = {name: name for name in (
    "same", "dict", "set", "frozenset", "slice", "tuple", "type", "dtype", "number", "enum",
    "objects", "array", "generator", "random_state", "object", "function",
)} | {"csr": "sparse", "csc": "sparse"}  # fmt: skip


def read_array(content: bytes) -> np.ndarray:
    """Return the array of a .npy file; it must be of numbers or strings, and of its size."""
    start = io.BytesIO(content)
    major, _ = npy.read_magic(start)
    read_header = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, by_column, dtype = read_header(start)
    n_bytes = math.prod(shape) * dtype.itemsize
    if (
        dtype.kind not in ARRAYS
        or not dtype.itemsize
        or n_bytes != len(content) - start.tell()
    ):
        raise ValueError(f"an array of shape {shape} and type {dtype} has other bytes")
    order: Any = "F" if by_column else "C"
    return np.ndarray(shape, dtype, content, start.tell(), order=order).copy(order="K")
