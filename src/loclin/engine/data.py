"""Training rows as procedures take them, and the types of what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Floats: TypeAlias = NDArray[np.floating]
Labels: TypeAlias = NDArray[np.integer]
Matrix: TypeAlias = Floats | sparse.csr_matrix


def is_sparse(X: Any) -> TypeIs[sparse.csr_matrix]:
    """Tell whether rows are sparse: CSR, once they are validated."""
    return bool(sparse.issparse(X))


def check_indices(X: Any, name: str) -> None:
    """Raise ValueError where a sparse matrix has indices outside of it;
    others are left alone.
    """
    if is_sparse(X) and X.format in ("csr", "csc", "bsr"):
        try:
            X.check_format(full_check=True)
            # With no values at all, that is not checked.
            if (np.diff(X.indptr) < 0).any():
                raise ValueError("indptr falls")
        except ValueError as error:
            raise ValueError(f"{name} is no valid sparse matrix: {error}.") from error


class Rows(NamedTuple):
    """Training rows: features, labels as 0 .. c - 1 (int32), weights (mean 1 in a fit).

    `origin` has their places among the user's rows; None where these are all of them, in
    order. Several labels a row are an indicator (n, n_labels).
    """

    X: Any
    y: Labels
    weights: Floats
    origin: NDArray[np.intp] | None = None

    def places(self, subset: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the places of some of these rows among the user's."""
        return subset if self.origin is None else self.origin[subset]


def mean_squared_norm(X: Matrix) -> float:
    """Return the mean squared Euclidean norm of the rows."""
    values = X.data if is_sparse(X) else X
    return float(
        np.einsum("...i,...i->...", values, values).sum(dtype=np.float64) / X.shape[0]
    )


def stacked(blocks: list[sparse.csr_matrix]) -> sparse.csr_matrix:
    """Return CSR matrices of as many columns, one below the other.

    SciPy's `vstack` asks NumPy what its blocks are. There an interrupt is lost: NumPy
    takes whatever a block's ``__len__`` raises for a block without a length.
    """
    ends = np.cumsum([block.nnz for block in blocks])
    starts = [
        block.indptr[:-1] + (end - block.nnz)
        for block, end in zip(blocks, ends, strict=True)
    ]
    parts = (
        np.concatenate([block.data for block in blocks]),
        np.concatenate([block.indices for block in blocks]),
        np.concatenate([*starts, ends[-1:]]),
    )
    shape = sum(block.shape[0] for block in blocks), blocks[0].shape[1]
    return sparse.csr_matrix(parts, shape=shape)


def distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the place of the first of each kind of rows,
    in their order, and every row's kind.

    NumPy's `unique` compares structured arrays, and there an interrupt becomes a
    TypeError.
    """
    order = np.lexsort(rows.T[::-1])
    in_order = rows[order]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = (in_order[1:] != in_order[:-1]).any(axis=1)
    kinds = np.empty(len(rows), np.intp)
    kinds[order] = np.cumsum(is_first) - 1
    return order[is_first], kinds
