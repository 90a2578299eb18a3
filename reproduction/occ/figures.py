"""Figure 2 of Learning anchor planes: test error by planes, with the choices of Table 2.

And what Table 2 would be with as many planes as have the least test error, which its caption says
of the paper's.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from reproduction.data import Problem, problem_named
from reproduction.occ.tables import (
    COUNTED,
    ROWS,
    VARIANTS,
    choice_of,
    final_fit,
    n_seeds,
    runs_of,
    settings_of,
)
from reproduction.quick import sized
from reproduction.shapes import lines
from reproduction.store import Cache

SYSTEMS = [name for name in ROWS if "LLSVM" in name and name not in VARIANTS]
PLANES = {
    "usps": sized((5, *range(10, 91, 10), 95), quick=(2, 5)),
    "letter": sized((2, 4, 6, 8, 10, 12, 14, 16), quick=(2, 5)),
    "mnist": sized((10, 30, 50, 70, 90), quick=(2, 5)),
}


def by_planes(system: str, problem: Problem, cache: Cache) -> list[float]:
    """Errors of seed 0; the strength is in units of norm^2/n, and so fits any number of planes."""
    choice, planes = choice_of(system, problem, cache), PLANES[problem.name]
    return cache(
        f"{problem.name} | {system} | figure 2",
        settings_of(system, problem, 0) | {"choice": choice, "planes": planes},
        lambda: [
            final_fit(ROWS[system], m, problem, problem.counted, choice, 0)[0] for m in planes
        ],
    )


def figure_2(name: str, cache: Cache) -> dict[str, Any]:
    """Errors of four systems."""
    problem = problem_named(name, COUNTED.get(name))
    curves = {system: by_planes(system, problem, cache) for system in SYSTEMS}
    return lines(PLANES[name], curves, "planes", "test error, %")


def by_test_error(system: str, name: str, cache: Cache) -> tuple[int, list[list[float]]]:
    """Planes as the paper chose them, with the least test error of seed 0; the runs of all seeds.

    Not for the columns of Table 2 itself, whose choices see no test row.
    """
    problem = problem_named(name, COUNTED.get(name))
    row, n, choice = ROWS[system], problem.counted, choice_of(system, problem, cache)
    printed, runs = row.planes[name], runs_of(system, problem, cache)
    errors = dict(zip(PLANES[name], by_planes(system, problem, cache), strict=True))
    errors[printed] = runs[0][0]
    m = min(errors, key=lambda m: errors[m])
    if m == printed:
        return m, runs
    settings, seeds = settings_of(system, problem, m) | {"choice": choice}, n_seeds(row)
    run = partial(final_fit, row, m, problem, n, choice)
    key = f"{name} | {system} | planes of least test error"
    return m, cache.each(key, settings | {"seeds": seeds}, range(seeds), run)
