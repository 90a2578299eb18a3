"""What a fit of US-SVM needs, and how it begins."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loclin.engine.data import Rows
from loclin.engine.procedure import Procedure
from loclin.engine.targets import signs_of
from loclin.fitting.checks import check_flag, check_number
from loclin.fitting.recipe import Before, EndsWithRows, Recipe, Trial
from loclin.fitting.rows import LARGEST_BATCH
from loclin.fitting.strength import check_strength
from loclin.ussvm.checks import check_n_nonzero, dictionary_to_use
from loclin.ussvm.codes import Penalty, root_mean_square
from loclin.ussvm.descent import DictionaryDescent, first_atoms
from loclin.ussvm.procedures import (
    CodesFit,
    DescentFit,
    DescentStream,
    beta_of,
    with_solved_codes,
)
from loclin.ussvm.solver import CodeSolver

# Atoms by default: so many at least; no more than so many, or than features.
_FEWEST_ATOMS, _MOST_ATOMS = 10, 100


@dataclass(frozen=True, kw_only=True)
class USSVMRecipe(Recipe, EndsWithRows):
    """What a fit of US-SVM needs."""

    n_atoms: int | None
    alpha: float
    beta: float | str
    l1_ratio: float
    nonnegative: bool
    n_nonzero: int | None
    positive_weight: float
    dictionary: Any
    code_lr: float
    atom_lr: float
    block_iter: int

    strength_name = "beta"
    strength_falls = 0.5

    def check(self) -> None:
        """Raise where a parameter is not valid."""
        if self.n_atoms is not None:
            check_number(
                "n_atoms", self.n_atoms, Integral, low=1, open_high=True, hint="or None"
            )
        check_number("alpha", self.alpha, low=0, open_high=True)
        check_strength("beta", self.beta, open_low=False)
        check_number("l1_ratio", self.l1_ratio, low=0, high=1)
        check_flag("nonnegative", self.nonnegative)
        if self.n_nonzero is not None:
            check_number(
                "n_nonzero",
                self.n_nonzero,
                Integral,
                low=1,
                open_high=True,
                hint="or None",
            )
        for name in ("code_lr", "atom_lr", "positive_weight"):
            check_number(name, getattr(self, name), low=0, open_low=True, open_high=True)
        check_number("block_iter", self.block_iter, Integral, low=1, open_high=True)
        if self.alpha == 0 and self.beta == 0:
            raise ValueError("alpha=0 and beta=0 leave no penalty. Raise one of the two.")

    def stream_refusal(self) -> str | None:
        """Tell why the parameters leave no way to learn from
        a stream; None where they do.
        """
        return None

    def trial(self, rows: Rows, learned: Any = None) -> Trial:
        """Return short fits; over given atoms the problem is convex, and soon searched."""
        n_iterations = 0 if self.dictionary is not None else 8
        return Trial({"tol": max(float(self.tol), 1e-2)}, n_iterations)

    def start(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> Procedure:
        """Begin problem 3 over given atoms, or Algorithm 1."""
        given = dictionary_to_use(self.dictionary, rows.X)
        if given is not None:
            check_n_nonzero(self.n_nonzero, given.shape[1])
            P = rows.X @ given
            unit = root_mean_square(P)
            solver = self.code_solver(unit, len(P))
            return CodesFit(solver, P, given, self._signs(rows.y), rows.weights, unit)
        descent = self._descent(rows, rng, before, self.code_lr)
        solver = CodeSolver(
            descent.penalty, float(self.positive_weight), self.n_nonzero, self.tol
        )
        batch_size = self.rows_of_batch(len(rows.y))
        return DescentFit(
            descent, rows, batch_size, rng, solver, keep=bool(self.warm_start)
        )

    def start_stream(
        self, rows: Rows, rng: np.random.Generator, before: Before | None
    ) -> DescentStream:
        """Begin Algorithm 1 on a stream."""
        # Large steps find dictionaries, but leave the codes themselves too noisy.
        is_auto = isinstance(self.batch_size, str)
        return DescentStream(
            self._descent(rows, rng, before, self.code_lr / 30),
            rng,
            beta=self.beta,
            factor=self.factor,
            n_nonzero=self.n_nonzero,
            largest_batch=LARGEST_BATCH if is_auto else int(self.batch_size),
        )

    def ended(self, learned: Any, rows: Rows) -> Any:
        """Return the model with codes solved for: those of the descent lag behind."""
        solver = self.code_solver(learned.unit, len(rows.y))
        return with_solved_codes(learned, rows, solver)

    def code_solver(self, unit: float, n_samples: int) -> CodeSolver:
        """Return what solves problem 3,
        where precomputed features have that root mean square.
        """
        penalty = self._penalty(unit, n_samples)
        return CodeSolver(penalty, float(self.positive_weight), self.n_nonzero, self.tol)

    def _penalty(self, unit: float, n_samples: int) -> Penalty:
        return Penalty(
            alpha=float(self.alpha),
            beta=beta_of(self.beta, self.factor, unit, n_samples),
            l1_ratio=float(self.l1_ratio),
            nonnegative=bool(self.nonnegative),
        )

    def _descent(
        self, rows: Rows, rng: np.random.Generator, before: Before | None, code_lr: float
    ) -> DictionaryDescent:
        """Algorithm 1 at its start, or where the fit before ended."""
        if before is not None:
            learned = before.learned
            atoms = np.ascontiguousarray(learned.dictionary.T)
            codes, intercept = learned.codes.toarray(), learned.intercept
        else:
            atoms = self._first_atoms(rows, rng)
            codes = np.zeros((self.n_scorers, len(atoms)), atoms.dtype)
            intercept = np.zeros(self.n_scorers, atoms.dtype)
        check_n_nonzero(self.n_nonzero, len(atoms))
        unit = before.learned.unit if before is not None else 0.0
        unit = unit or root_mean_square(rows.X @ atoms.T)
        descent = DictionaryDescent(
            atoms,
            codes,
            intercept,
            unit,
            self._penalty(unit, len(rows.y)),
            code_lr=code_lr,
            atom_lr=self.atom_lr if self.dictionary is None else 0.0,
            block_iter=self.block_iter,
            positive_weight=float(self.positive_weight),
            squared_gradients=None if before is None else deepcopy(before.kept),
        )
        if before is not None and before.kept is None:
            descent.measure_gradients(rows, self.rows_of_batch(len(rows.y)), rng)
        return descent

    def _first_atoms(self, rows: Rows, rng: np.random.Generator) -> NDArray[np.floating]:
        """Return the atoms given, or those that the descent starts from."""
        given = dictionary_to_use(self.dictionary, rows.X)
        if given is not None:
            return np.ascontiguousarray(given.T)
        n_scorers, n_atoms = self.n_scorers, self.n_atoms
        most = max(_MOST_ATOMS, rows.X.shape[1])
        n_atoms = n_atoms or min(max(_FEWEST_ATOMS, 2 * n_scorers), most)
        return first_atoms(rows, n_scorers, n_atoms, rng)

    def _signs(self, y: NDArray[np.integer]) -> NDArray[np.int8]:
        """Targets of the scorers, (n, s)."""
        return signs_of(y, self.n_scorers)
