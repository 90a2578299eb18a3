"""Joint learning of a dictionary and the codes of classes over it: Algorithm 1 of US-SVM.

Minimises, over atoms in the unit ball (the columns of D), codes ``Z`` (s, A) and
intercepts,

    sum_y [ alpha/2 ||D z_y||^2 + beta (r ||z_y||_1 + (1 - r) ||z_y||^2) ]
        + sum_i w_i sum_y hinge(+-(z_y . D' x_i + b_y)) / sum_i w_i

(equations 4 and 5, times the number of classes) by stochastic descent, in turn on the
codes and on the dictionary. Written out, the gradient by u, z = u - v, is

    -yhat D'x + alpha D'D z + beta r + 2 beta (1 - r) z         (equation 7 lacks the last beta)

and the one by D is ``-x (yhat Z) + alpha D Z'Z`` (equation 10 has the wrong sign of
alpha).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from loclin.engine.data import Matrix, Rows, mean_squared_norm
from loclin.engine.shapes import Shape, Size
from loclin.engine.targets import signs_of
from loclin.ussvm.codes import Penalty
from loclin.ussvm.scaled_atoms import ScaledAtoms

# Rows of batches that are gathered at once stay near the processor.
_GATHERED_BYTES = 2**19
# Nonzeros of a batch over columns, below which its steps touch only its own columns.
_FEW_NONZEROS = 0.25


@dataclass
class SquaredGradients:
    """AdaGrad's sums of squared gradients."""

    codes: Annotated[
        NDArray[np.floating], Shape("s m", np.floating)
    ]  # of each coefficient of m atoms
    intercept: Annotated[NDArray[np.floating], Shape("s")]
    atoms: Annotated[NDArray[np.floating], Shape("m")]

    @classmethod
    def zeros(cls, n_scorers: int, n_atoms: int, dtype: np.dtype) -> Self:
        """Return sums of no gradients:
        not quite zero, so that zero can be divided by them.
        """
        tiny = np.finfo(dtype).tiny
        return cls(
            codes=np.full((n_scorers, n_atoms), tiny, dtype),
            intercept=np.full(n_scorers, tiny, dtype),
            atoms=np.full(n_atoms, tiny, dtype),
        )


class Batch(NamedTuple):
    """Rows of a step."""

    X: Any  # {ndarray, csr}, shape: (n, d)
    signs: NDArray[np.floating]  # +1 and -1, the scorers' targets, shape: (n, s)
    weights: NDArray[np.floating]  # shape: (n,)


class DictionaryDescent:
    """The state of the descent.

    Steps are AdaGrad's: one number for each coefficient and intercept, one for each atom.
    They have units: a code's first step changes scores by about `code_lr`, an atom's is
    `atom_lr` long.

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
    squared_gradients : SquaredGradients, default=None
        Those of a descent that this one continues; they change with it.
    """

    atoms: Annotated[NDArray[np.floating], Shape("m d")]
    intercept: Annotated[NDArray[np.floating], Shape("s")]
    u: Annotated[NDArray[np.floating], Shape("s m", np.floating)]
    v: Annotated[NDArray[np.floating], Shape("s m", np.floating)]
    unit: float
    penalty: Penalty
    code_lr: float
    atom_lr: float
    block_iter: Annotated[int, Size("block_iter")]
    positive_weight: float
    squared_gradients: SquaredGradients
    n_batches: int
    atom_sum: Annotated[NDArray[np.floating], Shape("m d")]
    n_averaged: int

    def __init__(
        self,
        atoms: NDArray[np.floating],
        codes: NDArray[np.floating],
        intercept: NDArray[np.floating],
        unit: float,
        penalty: Penalty,
        *,
        code_lr: float,
        atom_lr: float,
        block_iter: int,
        positive_weight: float = 1.0,
        squared_gradients: SquaredGradients | None = None,
    ) -> None:
        self.atoms = atoms.copy()
        self.intercept = intercept.copy()
        # z = u - v; at least one of the two is zero.
        self.u = np.maximum(codes, 0)
        self.v = np.maximum(-codes, 0)
        self.unit = unit
        self.penalty = penalty
        self.code_lr = code_lr
        self.atom_lr = atom_lr
        self.block_iter = block_iter
        self.positive_weight = positive_weight
        if squared_gradients is None:
            squared_gradients = SquaredGradients.zeros(
                len(codes), len(atoms), atoms.dtype
            )
        self.squared_gradients = squared_gradients
        self.n_batches = 0
        self.atom_sum = np.zeros_like(self.atoms)  # after every batch that is averaged
        self.n_averaged = 0

    @property
    def codes(self) -> NDArray[np.floating]:
        """Codes of the scorers, (s, A)."""
        return self.u - self.v

    @property
    def mean_atoms(self) -> NDArray[np.floating]:
        """Mean of the atoms since averaging began, or else the atoms, (A, d)."""
        return self.atom_sum / self.n_averaged if self.n_averaged else self.atoms.copy()

    def iterate(
        self,
        rows: Rows,
        batch_size: int,
        rng: np.random.Generator,
        *,
        average: bool = False,
    ) -> float:
        """Pass over the rows once. Return the objective, a running estimate."""
        return self._pass(rows, batch_size, rng, average=average)

    def measure_gradients(
        self, rows: Rows, batch_size: int, rng: np.random.Generator
    ) -> None:
        """Pass over the rows and take no step: only sum squared gradients.

        For a descent that starts where another ended: its first steps would else be the
        longest.
        """
        self._pass(rows, batch_size, rng, frozen=True)

    def _pass(
        self,
        rows: Rows,
        batch_size: int,
        rng: np.random.Generator,
        *,
        average: bool = False,
        frozen: bool = False,
    ) -> float:
        scaled = None
        # With alpha, every step moves all columns.
        if self.atom_lr and not self.penalty.alpha and _few_nonzeros(rows.X, batch_size):
            scaled = ScaledAtoms(self.atoms, average)
        losses = np.zeros(len(self.u))
        for batch in self._batches(rows, batch_size, rng):
            losses += self._step(batch, scaled, frozen)
            if scaled is not None:
                scaled.end_batch()
            elif average:
                self.atom_sum += self.atoms
            self.n_averaged += average
        if scaled is not None:
            self.atoms, sum_of_pass = scaled.finish()
            if average:
                self.atom_sum += sum_of_pass
        loss = float(losses.sum()) / float(rows.weights.sum(dtype=np.float64))
        return loss + self.penalty.value(self.atoms.T, self.codes)

    def _batches(
        self, rows: Rows, batch_size: int, rng: np.random.Generator
    ) -> Iterator[Batch]:
        """Yield random batches; several are gathered at once."""
        order = rng.permutation(len(rows.y))
        row_bytes = max(1, rows.X.shape[1] * rows.X.dtype.itemsize)
        size = batch_size * max(1, _GATHERED_BYTES // (batch_size * row_bytes))
        for first in range(0, len(order), size):
            some = order[first : first + size]
            signs = signs_of(rows.y[some], len(self.u)).astype(rows.X.dtype)
            gathered = Batch(rows.X[some], signs, rows.weights[some])
            if len(some) <= batch_size:
                yield gathered
                continue
            for at in range(0, len(some), batch_size):
                yield Batch(*(part[at : at + batch_size] for part in gathered))

    def _step(
        self, batch: Batch, scaled: ScaledAtoms | None, frozen: bool
    ) -> NDArray[np.floating]:
        """Take the step of a batch, unless frozen;
        return the summed losses of every scorer.
        """
        codes = self.codes
        squares = self.squared_gradients
        P = batch.X @ self.atoms.T if scaled is None else scaled.precompute(batch.X)
        losses, slopes = self._losses(P, codes, batch)
        on_codes = self.n_batches // self.block_iter % 2 == 0 or not self.atom_lr
        self.n_batches += 1
        if on_codes:
            gradient = self.code_gradient(slopes.T @ P, codes)
            # as a sum, but faster
            intercept_gradient = np.ones_like(batch.weights) @ slopes
            squares.codes += gradient * gradient
            squares.intercept += intercept_gradient * intercept_gradient
            if not frozen:
                self._step_codes(gradient, intercept_gradient)
        elif scaled is None:
            gradient = self.atom_gradient(_product(slopes @ codes, batch.X), codes)
            squares.atoms += _squared_norms(gradient)
            if not frozen:
                self._step_atoms(gradient)
        else:
            columns, gradient = scaled.gradient(batch.X, slopes @ codes)
            squares.atoms += np.einsum("da,da->a", gradient, gradient)
            if not frozen:
                gradient *= self.atom_lr / np.sqrt(squares.atoms)
                scaled.step(columns, gradient)
        return batch.weights @ losses

    def _losses(
        self, P: NDArray[np.floating], codes: NDArray[np.floating], batch: Batch
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Losses, (n, s), and their mean's slopes by the scores:
        the negative of equation 8.
        """
        margins = P @ codes.T
        margins += self.intercept
        margins *= batch.signs
        losses = np.subtract(1, margins, out=margins)
        np.maximum(losses, 0, out=losses)
        slopes = (losses > 0).astype(losses.dtype)
        slopes *= batch.signs
        slopes *= (batch.weights / -batch.weights.size)[:, None]
        if self.positive_weight != 1:
            dtype = batch.signs.dtype.type
            by_sign = np.where(batch.signs > 0, dtype(self.positive_weight), dtype(1))
            slopes *= by_sign
            losses *= by_sign
        return losses, slopes

    def code_gradient(
        self, loss_gradient: NDArray[np.floating], codes: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Gradient of the smooth terms by the codes (equation 7 without the l1 term)."""
        gradient = loss_gradient
        if self.penalty.ridge:
            gradient = gradient + 2 * self.penalty.ridge * codes
        if self.penalty.alpha:
            gradient = gradient + self.penalty.alpha * (codes @ self.atoms) @ self.atoms.T
        return gradient

    def atom_gradient(
        self, loss_gradient: NDArray[np.floating], codes: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Gradient by the atoms (equation 10)."""
        if self.penalty.alpha:
            return loss_gradient + self.penalty.alpha * codes.T @ (codes @ self.atoms)
        return loss_gradient

    def _step_codes(
        self, gradient: NDArray[np.floating], intercept_gradient: NDArray[np.floating]
    ) -> None:
        """Step down the gradient and shrink both parts of the codes;
        keep these nonnegative.
        """
        step = np.sqrt(self.squared_gradients.codes)
        np.divide(self.code_lr / self.unit, step, out=step)
        shrinkage = step * self.penalty.l1
        step *= gradient
        u = self.u - shrinkage
        u -= step
        np.maximum(u, 0, out=u)
        if not self.penalty.nonnegative:
            v = self.v - shrinkage
            v += step
            np.maximum(v, 0, out=v)
            both = np.minimum(u, v)
            u -= both
            v -= both
            self.v = v
        self.u = u
        self.intercept -= (
            self.code_lr * intercept_gradient / np.sqrt(self.squared_gradients.intercept)
        )

    def _step_atoms(self, gradient: NDArray[np.floating]) -> None:
        """Step down the gradient, which is overwritten, and back to the unit ball."""
        gradient *= (self.atom_lr / np.sqrt(self.squared_gradients.atoms))[:, None]
        self.atoms -= gradient
        self.atoms /= np.sqrt(np.maximum(_squared_norms(self.atoms), 1))[:, None]


def first_atoms(
    rows: Rows, n_scorers: int, n_atoms: int, rng: np.random.Generator
) -> NDArray[np.floating]:
    """Atoms (A, d) of unit length to start from.

    The main directions of the differences between each class and the rest, which add up
    to zero where a row has one class: directions that only rounding gives are left out.
    And random rows less their mean, where there are more atoms than these directions.
    """
    X = rows.X
    w = (rows.weights / rows.weights.sum(dtype=np.float64)).astype(X.dtype)
    signs = signs_of(rows.y, n_scorers).astype(X.dtype)
    differences = _product(w[:, None] * (signs - w @ signs), X)
    _, sizes, directions = np.linalg.svd(differences, full_matrices=False)
    atoms = directions[sizes > np.sqrt(np.finfo(X.dtype).eps) * sizes[0]][:n_atoms]
    n_rows = n_atoms - len(atoms)
    if n_rows:
        n = X.shape[0]
        drawn = X[rng.choice(n, n_rows, replace=n_rows > n)]
        drawn = drawn if isinstance(drawn, np.ndarray) else drawn.toarray()
        # A little noise: no two are equal, and none is zero.
        noise = rng.standard_normal(drawn.shape, X.dtype)
        spread = np.sqrt(mean_squared_norm(X) / X.shape[1]) or 1.0
        atoms = np.vstack([atoms, drawn - w @ X + X.dtype.type(0.01 * spread) * noise])
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def _few_nonzeros(X: Matrix, batch_size: int) -> bool:
    """Tell whether batches have far fewer nonzeros than there are columns."""
    if isinstance(X, np.ndarray):
        return False
    return X.nnz / X.shape[0] * batch_size < _FEW_NONZEROS * X.shape[1]


def _squared_norms(M: NDArray[np.floating]) -> NDArray[np.floating]:
    """Squared lengths of rows: as einsum gives them, but twice as fast."""
    return np.square(M) @ np.ones(M.shape[1], M.dtype)


def _product(left: NDArray[np.floating], X: Matrix) -> NDArray[np.floating]:
    """Product ``left' X`` for dense and sparse rows, as a dense array."""
    return left.T @ X if isinstance(X, np.ndarray) else (X.T @ left).T
