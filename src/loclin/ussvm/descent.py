"""Joint learning of a dictionary and the codes of classes over it: Algorithm 1 of US-SVM.

Minimises, over atoms in the unit ball (the columns of D), codes ``Z`` (s, A) and intercepts,

    sum_y [ alpha/2 ||D z_y||^2 + beta (r ||z_y||_1 + (1 - r) ||z_y||^2) ]
        + sum_i w_i sum_y hinge(+-(z_y . D' x_i + b_y)) / sum_i w_i

(equations 4 and 5 of Lyu, Zepeda and Perez, 2015, times the number of classes) by stochastic
descent, in turn on the codes and on the dictionary. Written out, the gradient by u, z = u - v, is

    -yhat D'x + alpha D'D z + beta r + 2 beta (1 - r) z         (equation 7 lacks the last beta)

and the one by D is ``-x (yhat Z) + alpha D Z'Z`` (equation 10 has the wrong sign of alpha).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.data import Rows, mean_squared_norm
from loclin.engine.targets import signs_of
from loclin.ussvm.codes import Penalty
from loclin.ussvm.sparse_atoms import SparseRowsAtoms

# Rows of batches that are gathered at once stay near the processor.
_GATHERED_BYTES = 2**19
# Nonzeros of a batch over columns, below which its steps touch only its own columns.
_FEW = 0.25


class DictionaryDescent:
    """The state of the descent.

    Steps are AdaGrad's: one number for each coefficient and intercept, one for each atom. They have
    units: a code's first step changes scores by about `code_lr`, an atom's is `atom_lr` long.

    Parameters
    ----------
    atoms : ndarray of shape (A, d)
        The atoms to start from, in the unit ball.
    codes : ndarray of shape (s, A)
    intercept : ndarray of shape (s,)
    unit : float
        Root mean square of the precomputed features.
    penalty : Penalty
    code_lr, atom_lr : float
        With ``atom_lr=0`` the dictionary is given.
    block_iter : int
        Batches that move the codes before as many move the dictionary.
    positive_weight : float
        What the losses of a scorer's positive rows are multiplied by.
    """

    def __init__(self, atoms: NDArray[Any], codes: NDArray[Any], intercept: NDArray[Any],
                 unit: float, penalty: Penalty, *, code_lr: float, atom_lr: float,
                 block_iter: int, positive_weight: float = 1.0) -> None:  # fmt: skip
        self.atoms, self.intercept = atoms.copy(), intercept.copy()
        # z = u - v; at least one of the two is zero.
        self.u, self.v = np.maximum(codes, 0), np.maximum(-codes, 0)
        self.unit, self.penalty, self.block_iter = unit, penalty, block_iter
        self.code_lr, self.atom_lr, self.positive_weight = code_lr, atom_lr, positive_weight
        tiny = np.finfo(atoms.dtype).tiny
        # Sums of squared gradients, by coefficient, intercept and atom.
        atom_history = np.full(len(atoms), tiny, atoms.dtype)
        self.histories = np.full_like(codes, tiny), np.full_like(intercept, tiny), atom_history
        self.n_batches, self.at_rest = 0, False
        self.sums: NDArray[Any] | None = None  # of the atoms after each batch, where averaged
        self.n_averaged = 0

    @property
    def codes(self) -> NDArray[Any]:
        """Codes of the scorers, (s, A)."""
        return self.u - self.v

    def iterate(self, rows: Rows, batch_size: int, rng: np.random.Generator,
                *, average: bool = False) -> float:  # fmt: skip
        """Pass over the rows once. Return the objective, a running estimate."""
        total = np.zeros(len(self.u))
        if average and self.sums is None:
            self.sums = np.zeros_like(self.atoms)
        # with alpha, every step moves all columns
        light = None
        if self.atom_lr and not self.penalty.alpha and _few_nonzeros(rows.X, batch_size):
            light = SparseRowsAtoms(self.atoms, average)
        for X, signs, weights in self._batches(rows, batch_size, rng):
            total += self._move(X, signs, weights, light)
            self.n_averaged += average
            if light is not None:
                light.end_batch()
            elif average:
                self.sums += self.atoms
        if light is not None:
            self.atoms, total_atoms = light.finish()
            if average:
                self.sums += total_atoms
        self.at_rest = False
        loss = float(total.sum()) / float(rows.weights.sum(dtype=np.float64))
        return loss + self.penalty.value(self.atoms.T, self.codes)

    def _batches(self, rows: Rows, batch_size: int,
                 rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:  # fmt: skip
        """Yield rows, signs and weights of random batches; several are gathered at once."""
        X, y, weights, _ = rows
        order = rng.permutation(len(y))
        row_bytes = max(1, X.shape[1] * X.dtype.itemsize)
        size = batch_size * max(1, _GATHERED_BYTES // (batch_size * row_bytes))
        for first in range(0, len(y), size):
            some = order[first : first + size]
            gathered = X[some], signs_of(y[some], len(self.u)).astype(X.dtype), weights[some]
            if len(some) <= batch_size:
                yield gathered
                continue
            for at in range(0, len(some), batch_size):
                yield tuple(part[at : at + batch_size] for part in gathered)

    def rest(self) -> Self:
        """Let the next pass only measure gradients, so that the steps after it are not the longest.

        For a descent that starts where another ended.
        """
        self.at_rest = True
        return self

    def _move(self, X: Any, signs: NDArray[Any], weights: NDArray[Any],
              light: SparseRowsAtoms | None) -> NDArray[Any]:  # fmt: skip
        """Take the step of a batch; return the summed losses of every scorer."""
        codes = self.codes
        P = X @ self.atoms.T if light is None else light.answers(X)
        losses = P @ codes.T
        losses += self.intercept
        losses *= signs
        np.maximum(0, np.subtract(1, losses, out=losses), out=losses)
        # the negative of yhat, equation 8
        slopes = (losses > 0).astype(losses.dtype)
        slopes *= signs
        slopes *= (weights / -weights.size)[:, None]
        if self.positive_weight != 1:
            by_sign = np.where(signs > 0, X.dtype.type(self.positive_weight), X.dtype.type(1))
            slopes *= by_sign
            losses *= by_sign
        on_codes = self.n_batches // self.block_iter % 2 == 0 or not self.atom_lr
        self.n_batches += 1
        if on_codes:
            by_intercept = np.ones_like(weights) @ slopes  # as a sum, but faster
            self._move_codes(slopes.T @ P, by_intercept, codes)
        elif light is None:
            self._move_atoms(_product(slopes @ codes, X), codes)
        else:
            self._move_light(light, X, slopes @ codes)
        return weights @ losses

    def code_gradient(self, loss_gradient: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
        """Gradient of the smooth terms by the codes (equation 7 without the l1 term)."""
        gradient = loss_gradient
        if self.penalty.ridge:
            gradient = gradient + 2 * self.penalty.ridge * codes
        if self.penalty.alpha:
            gradient = gradient + self.penalty.alpha * (codes @ self.atoms) @ self.atoms.T
        return gradient

    def atom_gradient(self, loss_gradient: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
        """Gradient by the atoms (equation 10)."""
        if self.penalty.alpha:
            return loss_gradient + self.penalty.alpha * codes.T @ (codes @ self.atoms)
        return loss_gradient

    def _move_codes(self, loss_gradient: NDArray[Any], by_intercept: NDArray[Any],
                    codes: NDArray[Any]) -> None:  # fmt: skip
        gradient = self.code_gradient(loss_gradient, codes)
        code_history, intercept_history, _ = self.histories
        code_history += gradient * gradient
        intercept_history += by_intercept * by_intercept
        if self.at_rest:
            return
        step = np.sqrt(code_history)
        np.divide(self.code_lr / self.unit, step, out=step)
        shrink, move = step * self.penalty.l1, np.multiply(step, gradient, out=step)
        u = self.u - shrink
        u -= move
        np.maximum(u, 0, out=u)
        if not self.penalty.nonnegative:
            v = self.v - shrink
            v += move
            np.maximum(v, 0, out=v)
            both = np.minimum(u, v)
            u -= both
            v -= both
            self.v = v
        self.u = u
        self.intercept -= self.code_lr * by_intercept / np.sqrt(intercept_history)

    def _move_atoms(self, loss_gradient: NDArray[Any], codes: NDArray[Any]) -> None:
        gradient = self.atom_gradient(loss_gradient, codes)
        atom_history = self.histories[2]
        atom_history += _square_norms(gradient)
        if self.at_rest:
            return
        gradient *= (self.atom_lr / np.sqrt(atom_history))[:, None]
        self.atoms -= gradient
        self.atoms /= np.sqrt(np.maximum(_square_norms(self.atoms), 1))[:, None]

    def _move_light(self, light: SparseRowsAtoms, X: Any, left: NDArray[Any]) -> None:
        """Do the same with the gradient ``X' left`` by the columns that the rows have."""
        columns, gradient = light.gradient(X, left)
        atom_history = self.histories[2]
        atom_history += np.einsum("da,da->a", gradient, gradient)
        if not self.at_rest:
            gradient *= self.atom_lr / np.sqrt(atom_history)
            light.move(columns, gradient)

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes: the mean of the atoms since averaging began, the codes as they are."""
        atoms = self.atoms.copy() if self.sums is None else self.sums / self.n_averaged
        codes = sparse.csr_matrix(self.codes)
        return {"dictionary_": atoms.T, "codes_": codes, "intercept_": self.intercept.copy()}


class DescentFit:
    """The descent over rows held in memory."""

    gap: float | None = None  # the procedure knows none

    def __init__(self, descent: DictionaryDescent, rows: Rows, batch_size: int,
                 rng: np.random.Generator) -> None:  # fmt: skip
        self.descent, self.rows, self.batch_size, self.rng = descent, rows, batch_size, rng
        self.attributes = descent.attributes

    def iterate(self, *, average: bool) -> float:
        """Pass over the rows once."""
        return self.descent.iterate(self.rows, self.batch_size, self.rng, average=average)


def first_atoms(rows: Rows, n_scorers: int, n_atoms: int, rng: np.random.Generator) -> NDArray[Any]:
    """Atoms (A, d) of unit length to start from.

    The main directions of the differences between each class and the rest; and random rows less
    their mean, where there are more atoms than these directions.
    """
    X, y, weights, _ = rows
    w = (weights / weights.sum(dtype=np.float64)).astype(X.dtype)
    signs = signs_of(y, n_scorers).astype(X.dtype)
    differences = _product(w[:, None] * (signs - w @ signs), X)
    _, _, atoms = np.linalg.svd(differences, full_matrices=False)
    atoms = atoms[:n_atoms]
    n_rows = n_atoms - len(atoms)
    if n_rows:
        drawn = X[rng.choice(len(y), n_rows, replace=n_rows > len(y))]
        drawn = drawn.toarray() if sparse.issparse(drawn) else drawn
        # A little noise: no two are equal, and none is zero.
        noise = rng.standard_normal(drawn.shape, X.dtype)
        spread = np.sqrt(mean_squared_norm(X) / X.shape[1]) or 1.0
        atoms = np.vstack([atoms, drawn - w @ X + X.dtype.type(0.01 * spread) * noise])
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def _few_nonzeros(X: Any, batch_size: int) -> bool:
    """Tell whether batches have far fewer nonzeros than there are columns."""
    return sparse.issparse(X) and X.nnz / X.shape[0] * batch_size < _FEW * X.shape[1]


def _square_norms(M: NDArray[Any]) -> NDArray[Any]:
    """Squared lengths of rows: as einsum gives them, but twice as fast."""
    return np.square(M) @ np.ones(M.shape[1], M.dtype)


def _product(left: NDArray[Any], X: Any) -> NDArray[Any]:
    """Product ``left' X`` for dense and sparse rows, as a dense array."""
    return (X.T @ left).T if sparse.issparse(X) else left.T @ X
