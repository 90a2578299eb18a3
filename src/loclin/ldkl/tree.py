"""The tree of LDKL on its way: gates and features that are learned with the local models.

Minimises, over the models ``W`` (s, m, d), ``b`` (s, m), the features ``V`` (m, d) and
the gates ``Theta`` (m // 2, d), all of ``[x; 1]``,

    alpha/2 ||W||^2 + decay/2 (||V||^2 + ||Theta||^2) + 1/(sum w) sum_i w_i sum_y loss(+-f_y),
    f_y(x) = sum_k code_k(x) (w_yk . x + b_yk),     code_k(x) = tanh(v_k . x) reach_k(x),

``reach_k`` being the product of ``(1 +- tanh(hardness theta_l . x)) / 2`` over the nodes
above k. The hardness grows until paths are hard.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from scipy import sparse

from loclin.engine.averaging import DescentModels
from loclin.engine.coders import empty_codes, room_for_codes
from loclin.engine.data import Floats, Matrix, is_sparse
from loclin.engine.jit import read_only
from loclin.engine.linear_outputs import LearnedOutputs
from loclin.engine.prediction import codes_by
from loclin.engine.procedure import Predictor
from loclin.engine.rows import compiled_form
from loclin.engine.scores import check_models
from loclin.engine.shapes import Shape
from loclin.ldkl.kernels import MovingTree, walk
from loclin.portable.words import TreePath

# Of gates whose answers have a deviation near 1: where training begins, and where paths
# are hard.
SOFTEST, HARDEST = 1.0, 30.0
_FASTEST = 700.0  # growth of its logarithm: of more there is no exponential
_START_ROWS = 5000  # that the start looks at


@dataclass(frozen=True, kw_only=True)
class TreeModels(DescentModels, Predictor):
    """Local models of the nodes, and the tree."""

    units: ClassVar[dict[str, int]] = {"local_coef": 1, "tree_coef": 1}
    constants: ClassVar[dict[str, str]] = DescentModels.constants | {
        "tree_intercept": "tree_coef",
    }

    depth: int
    tree_coef: Annotated[Floats, Shape("m//2+m d")]
    tree_intercept: Annotated[Floats, Shape("m//2+m")]
    hardness: float
    history: Annotated[Floats, Shape("m//2+m", np.float64)]

    def coder(self, root: Floats | None) -> TreePath:
        """Say how nodes count on a path."""
        return TreePath(self.tree_coef, self.tree_intercept)


def path_codes(X: Matrix, U: Floats, c: Floats) -> sparse.csr_matrix:
    """Codes of the rows by the nodes on their paths, CSR (n, m).

    Parameters
    ----------
    X : {ndarray, csr} of shape (n, d)
    U, c : ndarray of shape (m // 2 + m, d) and (m // 2 + m,)
        Gates of the inner nodes, then features of all, and their constants.
    """
    n, m = X.shape[0], nodes_of(c)
    check_models(X, U[None], c[None])
    # nodes of a tree are one less than a power of two
    if len(c) != m // 2 + m or m & (m + 1):
        raise ValueError(
            f"{len(c)} gates and features are no tree. Load or fit the model again."
        )
    codes = empty_codes(n, m.bit_length(), X.dtype)
    rows = np.arange(n, dtype=np.int32)
    walk(compiled_form(X), rows, read_only(U), read_only(c), codes, rows)
    return sparse.csr_matrix(codes, shape=(n, m))


@codes_by.register
def _(coder: TreePath, X: Matrix) -> sparse.csr_matrix:
    return path_codes(X, coder.coef, coder.intercept)


def nodes_of(c: Floats) -> int:
    """Nodes of a tree with these constants."""
    return len(c) - len(c) // 3


class LearnedTree(LearnedOutputs):
    """Gates and features on their way:
    the gates of the inner nodes, then the features of all.

    `n_soft` rows from its start, paths are hard.
    """

    hardness: float = SOFTEST
    n_soft: float | int = math.inf

    def _what_is_wrong(self, sizes: Mapping[str, int]) -> str | None:
        n_outputs, m = len(self.c), sizes.get("m", nodes_of(self.c))
        return (
            None
            if n_outputs == m // 2 + m
            else f"c has {n_outputs} numbers, for {m} nodes"
        )

    def codes(self, Z: Matrix) -> sparse.csr_matrix:
        """Codes of rows, by the tree as it stands, with hard paths."""
        return path_codes(Z, self.U, self.c)

    def begin_pass(
        self, Z: Matrix, batch_size: int, *, moves: bool, average: bool
    ) -> MovingTree:
        """Return the tree as a pass takes it: it goes all ways until paths are hard."""
        n, m, hardness = Z.shape[0], nodes_of(self.c), self.hardness
        growth = math.log(HARDEST / SOFTEST) / self.n_soft
        self.hardness = min(hardness * math.exp(min(growth * n, _FASTEST)), HARDEST)
        k, first = (m, 0) if hardness < HARDEST else (m.bit_length(), m // 2)
        outputs = self.outputs(Z, batch_size, average, first)
        return MovingTree(
            room_for_codes(Z, batch_size, k, self.U.dtype), outputs, hardness
        )

    def fitted(self, models: DescentModels, *iterate: Floats) -> TreeModels:
        """Add the tree to fitted models."""
        U, c = iterate
        return TreeModels(
            **vars(models),
            depth=nodes_of(c).bit_length() - 1,
            tree_coef=U,
            tree_intercept=c,
            hardness=self.hardness,
            history=self.history.copy(),
        )


def starting_tree(
    X: Matrix, depth: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return gates and features along differences of two rows,
    the gates halving their rows.

    The answers of a node have a deviation of 1 over the rows that reach it. Equal rows
    have no differences: directions are drawn.
    """
    n, n_gates = X.shape[0], 2**depth - 1
    m = n_gates + 2**depth
    U, c = np.zeros((n_gates + m, X.shape[1]), X.dtype), np.zeros(n_gates + m, X.dtype)
    reaching = {0: X[rng.choice(n, min(n, _START_ROWS), replace=False)]}
    for node in range(m):
        rows = reaching.pop(node)
        U[n_gates + node], c[n_gates + node] = along_two_rows(rows, rng)
        if node < n_gates:
            U[node], c[node] = along_two_rows(rows, rng)
            left = rows @ U[node] + c[node] > 0
            reaching[2 * node + 1], reaching[2 * node + 2] = rows[left], rows[~left]
    # the rows are equal, as one is that begins a stream: zeros learn nothing
    if not U.any():
        U = (rng.normal(size=U.shape) / np.sqrt(X.shape[1])).astype(X.dtype)
    return U, c


def along_two_rows(rows: Matrix, rng: np.random.Generator) -> tuple[Floats, float]:
    """Return a direction, with which rows have a deviation of 1,
    and what halves them; or zeros.

    No row is where they are halved, unless several are: rounding must not tell its side.
    """
    nothing = np.zeros(rows.shape[1], rows.dtype), 0.0
    if rows.shape[0] < 2:
        return nothing
    one, other = rng.choice(rows.shape[0], 2, replace=False)
    direction = rows[[one]] - rows[[other]]
    direction = (direction.toarray() if is_sparse(direction) else direction)[0]
    answers = np.sort(rows @ direction)
    spread, half = float(answers.std()), len(answers) // 2
    middle = float(answers[half - 1] + answers[half]) / 2
    return (direction / spread, -middle / spread) if spread > 0 else nothing
