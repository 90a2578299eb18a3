"""What explains an error of Table 2: never a result.

Prints for each row the test error of seed 0 by cross-validation's choice; by the best choice on the
test split itself: strengths with every preprocessing (MNIST: with the chosen one) and, for planes,
with every number of them (the paper prints the number "which returns the best result"); and with
all training rows instead of the paper's.

``LOCLIN_DATA=FOLDER python -m reproduction.occ.diagnose [mnist usps letter] [--rows ROW ...]``
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reproduction.choices import PREPARE
from reproduction.command import RESULTS
from reproduction.data import Problem, problem_named
from reproduction.occ.figures import PLANES
from reproduction.occ.tables import COUNTED, ROWS, c_occ, choice_of, final_fit, g_occ, settings_of
from reproduction.runner import undisturbed
from reproduction.store import Cache


def diagnose(problem: Problem, name: str, cache: Cache) -> str:
    """Tune a row on the test split, and give it all training rows."""
    row, size = ROWS[name], ROWS[name].planes[problem.name]
    chosen = choice_of(name, problem, cache)
    prepares = [chosen["prepare"]] if problem.name == "mnist" else list(PREPARE)
    planes = PLANES[problem.name] if row.coding in (g_occ, c_occ) else ()
    strengths = range(chosen["k"] - 3, chosen["k"] + 4)
    cases = [(size, chosen | {"prepare": p, "k": k}) for p in prepares for k in strengths]
    cases += [(m, chosen | {"k": k}) for m in planes if m != size for k in strengths]
    found = cache.each(
        f"{problem.name} | {name} | diagnosis",
        settings_of(name, problem, size) | {"choice": chosen, "planes": planes},
        [*((m, case, problem.counted) for m, case in cases), (size, chosen, len(problem.X))],
        lambda task: final_fit(row, task[0], problem, task[2], task[1], 0)[0],
    )
    *errors, with_all_rows = found
    m, best = cases[int(np.argmin(errors))]
    return (
        f"{problem.name}, {name}, seed 0: {errors[cases.index((size, chosen))]:.2f} % by CV's "
        f"choice [{size}]; tuned on the test split it would be {min(errors):.2f} % ([{m}], "
        f"{best['prepare']}, {10 ** (best['k'] / 2):.3g} norm^2/n; {len(cases)} settings); with "
        f"all {len(problem.X):,} rows {with_all_rows:.2f} %"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", choices=[[], *PLANES], default=[])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), metavar="ROW", default=list(ROWS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    cache = Cache(options.results / "occ")
    with undisturbed():
        for data in options.sets or PLANES:
            problem = problem_named(data, COUNTED.get(data))
            for name in options.rows:
                if data in ROWS[name].planes:
                    print(diagnose(problem, name, cache), flush=True)


if __name__ == "__main__":
    main()
