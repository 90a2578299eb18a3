"""Draw estimators, data and calls at random, and hold what they do against what is promised.

``python -m tests.robustness.fuzz --cases 20000 --seed 0 --jobs 2`` (``--only 17`` runs one case)

Each case draws a classifier with parameters, rows (dtype, layout, scale, weights, labels), and
calls in any order: fit, partial_fit, a fit that goes on, calls that must fail, set_params, predict.
After each call:

- it raised an error that loclin or scikit-learn's validation raises on purpose, and the estimator
  is what it was, or the model is finite;
- the labels are the arg max of the scores, and of ``classes_``;
- ``local_model`` gives the scores;
- neither the rows nor the labels nor the weights have changed;
- rows of weight zero count as if they were not there;
- a parameter that shapes a model and changes on a stream is refused;
- nothing was warned of but convergence and what loclin itself warns of;
- classes that lie far apart are learned, whatever the scale of features and weights.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
from joblib import Parallel, delayed

from tests.robustness.fuzz.caller import Caller, largest


def run_case(seed: int, number: int) -> tuple[int, list[str], str | None]:
    """Run a case; return its number, what came of its calls, and what broke."""
    caller = Caller(np.random.default_rng([seed, number]))
    try:
        return number, caller.run(), None
    except Exception as error:
        n, d = caller.X.shape
        what = f"{type(caller.X).__name__} ({n}, {d}), up to {largest(caller.X):.3g}"
        return number, caller.outcomes, f"{error!r:.300}\n  {caller.model}\n  {what}"


def run_cases(seed: int, numbers: list[int]) -> list[tuple[int, list[str], str | None]]:
    """Run some cases in this process."""
    return [run_case(seed, number) for number in numbers]


def main(arguments: list[str] | None = None) -> int:
    """Run the cases and print errors by kind and failures; the number of failures is returned."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this case alone")
    options = parser.parse_args(arguments)
    numbers = list(range(options.cases)) if options.only is None else [options.only]
    parts = [numbers[first : first + 50] for first in range(0, len(numbers), 50)]
    found = Parallel(options.jobs)(delayed(run_cases)(options.seed, part) for part in parts)
    results = [result for part in found for result in part]
    kinds = Counter(outcome for _, outcomes, _ in results for outcome in outcomes)
    for kind, count in kinds.most_common():
        print(f"{count:7d}  {kind}")
    failures = [(number, failure) for number, _, failure in results if failure is not None]
    for number, failure in failures:
        print(f"case {number}: {failure}")
    print(
        f"{len(results)} cases of seed {options.seed}, {kinds.total()} calls, "
        f"{len(failures)} failures"
    )
    return len(failures)
