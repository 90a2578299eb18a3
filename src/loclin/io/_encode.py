"""From a model to a tree that JSON can hold, and arrays beside it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy
from scipy import sparse
from sklearn.base import BaseEstimator

from loclin.io._checks import reads_files, without_memory
from loclin.io._classes import FUNCTIONS, TYPES, Classes, is_named_tuple, name_of, path_of
from loclin.io._tree import MOST_CONSTANT

# What a running fit hangs on an estimator: callbacks are code, and no part of the model.
_OF_CALLBACKS = {
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
}
PLAIN = {type(None), bool, int, float, str}  # what JSON holds as it is
NUMBERS = "biuf"  # kinds of numbers that JSON holds exactly
ARRAYS = NUMBERS + "cSUmM"
BIT_GENERATORS = {"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}


class Encoder:
    """Writes arrays into an archive, and returns the rest as a tree.

    What several places share is written once. A node is None, a boolean, number, string
    or list, or a dict whose first key tells what it is.

    Parameters
    ----------
    archive : ZipFile
    classes : Classes
    """

    def __init__(self, archive: ZipFile, classes: Classes) -> None:
        self.archive, self.classes = archive, classes
        self.seen: dict[int, tuple[int, Any]] = {}  # numbers, and the objects kept alive
        self.n_arrays = 0
        self.n_constant = 0  # entries of constant arrays

    def node(self, value: Any, where: str = "the model") -> Any:
        """Return the node of a value; `where` it is, for errors."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind in _UNSHARED:
            return _UNSHARED[kind](self, value, where)
        if isinstance(value, type | np.dtype | np.generic | tuple | Enum):
            return self._immutable(value, where)
        if isinstance(value, FUNCTIONS):
            return self._function(value, where)
        if id(value) in self.seen:
            return {"same": self.seen[id(value)][0]}
        self.seen[id(value)] = len(self.seen), value
        if kind is list:
            return [self.node(one, f"{where}[{k}]") for k, one in enumerate(value)]
        if kind is dict:
            return {"dict": [
                [key if type(key) in PLAIN else self.node(key, where),
                 one if type(one) in PLAIN else self.node(one, f"{where}[{key!r}]")]
                for key, one in value.items()
            ]}  # fmt: skip
        if kind is set:
            return {"set": [self.node(one, where) for one in value]}
        if kind in (np.ndarray, np.memmap):
            return self._array(value, where)
        if isinstance(value, sparse.csr_matrix | sparse.csc_matrix | sparse.sparray):
            return self._sparse(value, where)
        if isinstance(value, np.random.Generator | np.random.RandomState):
            return self._random(value, where)
        return self._object(value, where)

    def _refuse(self, value: Any, where: str) -> ValueError:
        kind = value if isinstance(value, type) else type(value)
        named = getattr(value, "__name__", None)
        what = (
            f"{kind.__name__} {named}" if named and value is not kind else kind.__name__
        )
        return ValueError(
            f"{where} cannot be saved: a file holds no {what}. Replace it, or name a class of "
            "data of your own in trusted=[...]."
        )

    def _function(self, value: Any, where: str) -> Any:
        path = path_of(value)
        if path is None:
            raise ValueError(
                f"{where} cannot be saved: a file holds functions by their import path, and the "
                f"function {value.__name__} has none. Move it to the top of a module."
            )
        return {"function": path}

    def _immutable(self, value: Any, where: str) -> Any:
        kind = type(value)
        if isinstance(value, type):
            for name, known in TYPES.items():
                if value is known:
                    return {"type": name}
        elif isinstance(value, np.dtype):
            if value.kind in ARRAYS + "O" and value.names is None:
                return {"dtype": value.str}
        elif isinstance(value, Enum):
            if self.classes.find(name_of(kind)) is kind:
                return {"enum": name_of(kind), "value": value.value}
        elif isinstance(value, np.generic):
            if (
                value.dtype.kind in NUMBERS and value.itemsize <= 8
            ) or value.dtype.kind == "U":
                return {"number": value.item(), "dtype": value.dtype.str}
        elif is_named_tuple(kind) and self.classes.find(name_of(kind)) is kind:
            items = [self.node(one, f"{where}.{name}")
                     for name, one in zip(kind._fields, value, strict=True)]  # fmt: skip
            return {"tuple": items, "class": name_of(kind)}
        raise self._refuse(value, where)

    def _array(self, value: Any, where: str) -> Any:
        if value.dtype == object:
            items = [self.node(one, where) for one in value.ravel().tolist()]
            return {"objects": items, "shape": list(value.shape)}
        if value.dtype.kind not in ARRAYS or not value.itemsize:
            raise self._refuse(value, f"{where} (dtype {value.dtype})")
        name = f"{self.n_arrays}.npy"
        self.n_arrays += 1
        # Zeros in place of weights are one number seen many times over.
        constant = is_constant(value) and self._has_room(value)
        stored = value.flat[:1].reshape(()) if constant else np.asarray(value)
        with self.archive.open(name, "w", force_zip64=True) as file:
            npy.write_array(file, stored, allow_pickle=False)
        return {"array": name} | ({"shape": list(value.shape)} if constant else {})

    def _has_room(self, constant: np.ndarray) -> bool:
        found = self.n_constant + constant.size
        if constant.itemsize > 8 or 8 * found > MOST_CONSTANT:
            return False
        self.n_constant = found
        return True

    def _sparse(self, value: Any, where: str) -> Any:
        if value.format not in ("csr", "csc"):
            raise self._refuse(value, where)
        parts = [getattr(value, part) for part in ("data", "indices", "indptr")]
        parts = [
            self.node(part.copy() if is_constant(part) else part, where) for part in parts
        ]
        shape, is_array = [int(n) for n in value.shape], isinstance(value, sparse.sparray)
        return {value.format: parts, "shape": shape, "is_array": is_array}

    def _random(self, value: Any, where: str) -> Any:
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.node(value.get_state(legacy=False), where)}
        bits = value.bit_generator
        if bits.state["bit_generator"] not in BIT_GENERATORS:
            raise self._refuse(bits, where)
        seed = getattr(bits.seed_seq, "state", None)
        return {"generator": self.node(bits.state, where), "seed": self.node(seed, where)}

    def _object(self, value: Any, where: str) -> Any:
        kind = type(value)
        name = name_of(kind)
        if self.classes.find(name) is not kind:
            raise self._refuse(value, where)
        state = value.__getstate__()
        if isinstance(value, BaseEstimator):
            state = {key: one for key, one in state.items() if key not in _OF_CALLBACKS}
        if not isinstance(state, dict | None):
            raise self._refuse(value, where)
        state = without_memory(kind, state or {})
        if reads_files(kind, state):
            raise ValueError(
                f"{where} cannot be saved: with input={state['input']!r} it reads the files that "
                "the rows name. Give it input='content', and the texts as rows."
            )
        items = [[key, self.node(one, f"{where}.{key}")] for key, one in state.items()]
        return {"object": name, "state": items}


def is_constant(array: np.ndarray) -> bool:
    """Tell whether an array is one number, seen many times over."""
    return array.size > 1 and not any(array.strides)


_UNSHARED: dict[type, Callable[[Encoder, Any, str], Any]] = {
    tuple: lambda self, value, where: {"tuple": [self.node(one, where) for one in value]},
    frozenset: lambda self, value, where: {
        "frozenset": [self.node(one, where) for one in value]
    },
    slice: lambda self, value, where: {
        "slice": [self.node(end, where) for end in (value.start, value.stop, value.step)]
    },
}
