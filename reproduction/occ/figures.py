"""Figure 2 of Learning anchor planes: test error by planes, with the choices of Table 2."""

from __future__ import annotations

from typing import Any

from reproduction.data import problem_named
from reproduction.occ.tables import COUNTED, ROWS, VARIANTS, choice_of, final_fit, settings_of
from reproduction.quick import sized
from reproduction.shapes import lines
from reproduction.store import Cache

SYSTEMS = [name for name in ROWS if "LLSVM" in name and name not in VARIANTS]
PLANES = {
    "usps": sized((5, 10, 20, 40, 60, 80, 95), quick=(2, 5)),
    "letter": sized((2, 4, 6, 8, 10, 12, 14, 16), quick=(2, 5)),
    "mnist": sized((10, 30, 50, 70, 90), quick=(2, 5)),
}


def figure_2(name: str, cache: Cache) -> dict[str, Any]:
    """Errors of seed 0; the strength is in units of norm^2/n, and so fits any number of planes."""
    problem, planes, curves = problem_named(name, COUNTED.get(name)), PLANES[name], {}
    for system in SYSTEMS:
        choice = choice_of(system, problem, cache)
        curves[system] = cache(
            f"{name} | {system} | figure 2",
            settings_of(system, problem, 0) | {"choice": choice, "planes": planes},
            lambda system=system, choice=choice: [
                final_fit(ROWS[system], m, problem, problem.counted, choice, 0)[0] for m in planes
            ],
        )  # fmt: skip
    return lines(planes, curves, "planes", "test error, %")
