"""Figure 2 of Learning anchor planes: test error by planes, with the choices of Table 2.

Run by ``python -m benchmarks.reproduce "occ figure"``.
"""

from __future__ import annotations

from typing import Any

from benchmarks.choices import Cache, quiet
from benchmarks.occ_tables import (
    COUNTED,
    PLANES,
    ROWS,
    choice_of,
    final_fit,
    problem_named,
    settings_of,
)
from benchmarks.reproduce.shapes import lines

SYSTEMS = [name for name in ROWS if "LLSVM" in name and not ROWS[name].on_request]


def figure_2(name: str, cache: Cache) -> dict[str, Any]:
    """Errors of seed 0; the strength is in units of norm^2/n, and so fits any number of planes."""
    problem, planes, curves = problem_named(name, COUNTED.get(name)), PLANES[name], {}
    for system in SYSTEMS:
        choice = choice_of(system, problem, cache, 1)
        curves[system] = cache(
            f"{name} | {system} | figure 2",
            settings_of(system, problem, 0) | {"choice": choice, "planes": planes},
            lambda system=system, choice=choice: [
                quiet(final_fit)(ROWS[system], m, problem, problem.counted, choice, 0)[0]
                for m in planes
            ],
        )  # fmt: skip
    return lines(planes, curves, "planes", "test error, %")
