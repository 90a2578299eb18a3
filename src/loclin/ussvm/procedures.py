"""What US-SVM hands to the loops of `fit` and `partial_fit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from loclin.engine.data import Floats, Rows
from loclin.engine.procedure import Part, Predictor, Procedure, StreamProcedure
from loclin.engine.shapes import Shape
from loclin.engine.targets import signs_of
from loclin.portable.words import ConstantCode
from loclin.ussvm.codes import MOST_STEPS
from loclin.ussvm.descent import DictionaryDescent
from loclin.ussvm.solver import CodeSolver, as_codes, largest, products_of

_AUTO_BETA = 0.02


@dataclass(frozen=True, kw_only=True)
class SharedAtoms(Predictor):
    """Codes of the scorers over a dictionary, and the strength of the penalty on them."""

    dictionary: Annotated[NDArray[np.floating], Shape("d m")]  # atoms as columns
    codes: Annotated[sparse.csr_matrix, Shape("s m", np.floating)]
    beta: float
    unit: float  # root mean square of the precomputed features, where the descent began

    def coder(self, root: Floats | None) -> ConstantCode:
        """Say that a code is the same at every row."""
        return ConstantCode(self.codes)

    @property
    def local_coef(self) -> NDArray[np.floating]:
        """The atoms as local models of every scorer, (s, m, d)."""
        return np.broadcast_to(
            self.dictionary.T, (len(self.intercept), *self.dictionary.T.shape)
        )

    @property
    def local_intercept(self) -> NDArray[np.floating]:
        """Zeros: atoms have no intercepts, (s, m)."""
        return np.broadcast_to(self.intercept.dtype.type(0), self.codes.shape)


@dataclass(frozen=True, kw_only=True)
class SolvedSharedAtoms(SharedAtoms):
    """The same, with the codes of problem 3."""

    # before `n_nonzero` prunes the codes
    dual_gap: Annotated[NDArray[np.float64], Shape("s", np.float64, finite=False)]


@dataclass(frozen=True, kw_only=True)
class StreamedSharedAtoms(SharedAtoms):
    """The same, from a stream."""

    t: int  # rows seen


MODELS = SharedAtoms, SolvedSharedAtoms, StreamedSharedAtoms


def beta_of(beta: float | str, factor: float, unit: float, n_samples: int) -> float:
    """Return beta, or for a name the factor times what its rule says.

    Parameters
    ----------
    beta : float, "auto" or "scale"
    factor : float
    unit : float
        Root mean square of the precomputed features.
    n_samples : int
    """
    if isinstance(beta, str):
        # A NumPy float64: with it, codes of float32 rows are learned in float64.
        return factor * _AUTO_BETA * unit / np.sqrt(n_samples)
    return float(beta)


class CodesFit(Procedure):
    """Problem 3 of all scorers side by side:
    an iteration is one step of every unsolved one.

    Parameters
    ----------
    solver : CodeSolver
    P : ndarray of shape (n, A)
        Precomputed features ``X @ D``.
    D : ndarray of shape (d, A)
    signs : ndarray of shape (n, s)
        +1 and -1: the scorers' targets.
    weights : ndarray of shape (n,)
    unit : float
        Root mean square of P.
    """

    def __init__(
        self,
        solver: CodeSolver,
        P: NDArray[np.floating],
        D: NDArray[np.floating],
        signs: NDArray[np.int8],
        weights: NDArray[np.floating],
        unit: float,
    ) -> None:
        self.solver, self.unit = solver, unit
        self.D = D
        self.problems = list(solver.problems(P, D, signs, weights))

    @property
    def products(self) -> float:
        """Multiply-adds of the largest product of a step."""
        return products_of(self.problems[0])

    @property
    def gap(self) -> float:
        """The largest gap as a part of its objective; infinite while one is not known."""
        return max(problem.relative_gap for problem in self.problems)

    def iterate(self, *, average: bool) -> float:
        """Take a step of every problem that is not solved;
        return the sum of the objectives.
        """
        tol = self.solver.tol
        for problem in self.problems:
            if not problem.solved(tol) and problem.n_steps < MOST_STEPS:
                problem.step(tol)
        return float(sum(problem.running_objective for problem in self.problems))

    def result(self, *, final: bool = False) -> SolvedSharedAtoms:
        """Return the codes as they stand;
        if final, few nonzeros where these are asked for.
        """
        if final and self.solver.n_nonzero is not None:
            codes = self.solver.solve(self.problems, self.D)
        else:
            codes = as_codes(
                [problem.code for problem in self.problems],
                [problem.intercept for problem in self.problems],
                [problem.gap for problem in self.problems],
                self.D.dtype,
            )
        return SolvedSharedAtoms(
            dictionary=self.D,
            beta=self.solver.penalty.beta,
            unit=self.unit,
            **codes._asdict(),
        )


class DescentFit(Procedure):
    """The descent over rows held in memory, then problem 3 over the dictionary learned.

    Parameters
    ----------
    descent : DictionaryDescent
    rows : Rows
    batch_size : int
    rng : Generator
    solver : CodeSolver
    keep : bool
        Will the descent go on in a later fit?
    """

    def __init__(
        self,
        descent: DictionaryDescent,
        rows: Rows,
        batch_size: int,
        rng: np.random.Generator,
        solver: CodeSolver,
        keep: bool,
    ) -> None:
        self.descent = descent
        self.rows = rows
        self.batch_size = batch_size
        self.rng = rng
        self.solver = solver
        self.keep = keep
        self.kept = descent.squared_gradients  # until the end, for checkpoints

    @property
    def products(self) -> float:
        """Multiply-adds of the features of a batch."""
        return float(self.batch_size) * self.descent.atoms.size

    @property
    def gap(self) -> None:
        """None: the descent knows no bound."""

    def iterate(self, *, average: bool) -> float:
        """Pass over the rows once."""
        return self.descent.iterate(self.rows, self.batch_size, self.rng, average=average)

    def result(self, *, final: bool = False) -> SharedAtoms:
        """Return the model as it stands; if final, with codes solved for and pruned."""
        if final and not self.keep:
            self.kept = None
        model = model_of(self.descent)
        if not final or not np.isfinite(model.dictionary).all():
            return model
        return with_solved_codes(model, self.rows, self.solver)


class DescentStream(StreamProcedure):
    """The descent over rows that come once.

    Parameters
    ----------
    descent : DictionaryDescent
    rng : Generator
    beta : float, "auto" or "scale"
        A name follows the rows seen so far.
    factor : float
        On the rule of a name.
    n_nonzero : int or None
        Maximum number of nonzeros in a code.
    largest_batch : int
        Maximum number of rows in a batch.
    """

    descent: DictionaryDescent
    rng: np.random.Generator
    beta: float | str
    factor: float
    n_nonzero: int | None
    largest_batch: int

    def __init__(
        self,
        descent: DictionaryDescent,
        rng: np.random.Generator,
        *,
        beta: float | str,
        factor: float,
        n_nonzero: int | None,
        largest_batch: int,
    ) -> None:
        self.descent = descent
        self.rng = rng
        self.beta = beta
        self.factor = factor
        self.n_nonzero = n_nonzero
        self.largest_batch = largest_batch

    @property
    def products(self) -> float:
        """Multiply-adds of the features of a batch."""
        return float(self.largest_batch) * self.descent.atoms.size

    def state(self) -> tuple[Part, ...]:
        """Return atoms, codes and intercepts, and the sums of their squared gradients."""
        descent = self.descent
        squares = descent.squared_gradients
        return (
            Part("atoms", descent.atoms),
            Part("u", descent.u),
            Part("v", descent.v),
            Part("intercept", descent.intercept),
            Part("squares of codes", squares.codes, adds_up=True),
            Part("squares of intercepts", squares.intercept, adds_up=True),
            Part("squares of atoms", squares.atoms, adds_up=True),
        )

    def count_in(
        self, others: Sequence[Self], since: Self | None, shares: Floats
    ) -> None:
        """Be the stream of the others together: of u and v one is zero again."""
        super().count_in(others, since, shares)
        codes = self.descent.codes
        self.descent.u, self.descent.v = np.maximum(codes, 0), np.maximum(-codes, 0)

    def learn(self, rows: Rows, alpha: float | None, batch_size: int) -> float:
        """Learn from some more rows; return the objective over them."""
        self.n_seen += len(rows.y)
        beta = beta_of(self.beta, self.factor, self.descent.unit, self.n_seen)
        self.descent.penalty = self.descent.penalty._replace(
            alpha=alpha or 0.0, beta=beta
        )
        return self.descent.iterate(rows, batch_size, self.rng)

    def result(self, *, final: bool = False) -> StreamedSharedAtoms:
        """Return the model as it stands, its codes pruned but not fitted again."""
        model = model_of(self.descent, self.n_nonzero)
        return StreamedSharedAtoms(t=self.n_seen, **vars(model))


def with_solved_codes(
    model: SharedAtoms, rows: Rows, solver: CodeSolver
) -> SolvedSharedAtoms:
    """Return a model with the codes that problem 3 has over its dictionary."""
    D = model.dictionary
    signs = signs_of(rows.y, len(model.intercept))
    codes = solver.solve(solver.problems(rows.X @ D, D, signs, rows.weights), D)
    return SolvedSharedAtoms(
        dictionary=D, beta=model.beta, unit=model.unit, **codes._asdict()
    )


def model_of(descent: DictionaryDescent, n_nonzero: int | None = None) -> SharedAtoms:
    """Return the model of a descent as it stands,
    with the largest coefficients of its codes.
    """
    dictionary = descent.mean_atoms.T
    codes = descent.codes
    if n_nonzero is not None:
        codes = largest(codes, dictionary, n_nonzero)
    return SharedAtoms(
        dictionary=dictionary,
        codes=sparse.csr_matrix(codes),
        intercept=descent.intercept.copy(),
        beta=descent.penalty.beta,
        unit=descent.unit,
    )
