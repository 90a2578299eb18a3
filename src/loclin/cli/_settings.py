"""How to compare: the settings, with their defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loclin.cli._errors import InputError, near

__all__ = ["METRICS", "Settings"]

# What models may be chosen by, and whether a higher figure is better.
METRICS = {
    "error": False,
    "log_loss": False,
    "auc": True,
    "average_precision": True,
    "balanced_accuracy": True,
}
MOST = 1024  # jobs and threads
# the time limit: so many budgets, but at least ...
LIMIT_BUDGETS, LIMIT_SECONDS = 20, 300
LONGEST = 1e9  # ... and at most so many seconds


@dataclass(frozen=True)
class Settings:
    """How to compare.

    Attributes
    ----------
    metric : str
        What models are tuned, ranked and recommended by.
    budget : float
        Seconds of tuning for each system.
    folds, candidates : int
        Folds of the cross-validation, and the most candidates it tries.
    seed : int
        Seed of splits, candidates and classifiers.
    jobs : int
        Models tuned at once, each in a process of its own.
    threads : int
        Threads of BLAS and OpenMP for each fit; 0 leaves them as they are.
    time_limit : float
        Seconds that one system may take in all, in a process that is killed then; 0: no
        limit, and with one job no process of its own.
    """

    metric: str = "error"
    budget: float = 10.0
    folds: int = 5
    candidates: int = 60
    seed: int = 0
    jobs: int = 1
    threads: int = 1
    time_limit: float = 0.0

    @classmethod
    def default_time_limit(cls, budget: float) -> float:
        """Return a limit far above what tuning with this budget, and the last fit, take."""
        return min(max(LIMIT_BUDGETS * budget, LIMIT_SECONDS), LONGEST)

    def check(self) -> None:
        """Raise where a setting is out of range."""
        check_metric(self.metric)
        check_seed(self.seed)
        if not (self.budget > 0 and math.isfinite(self.budget)):
            raise InputError(
                f"--budget {self.budget:g} is not a number of seconds above 0; "
                f"try {Settings.budget:g}"
            )
        most = {"jobs": MOST, "threads": MOST}
        for name, least in {"folds": 2, "candidates": 1, "jobs": 1, "threads": 0}.items():
            value = getattr(self, name)
            if value < least:
                raise InputError(
                    f"--{name} {value} is too small; it must be at least {least}"
                )
            if value > most.get(name, value):
                raise InputError(
                    f"--{name} {value} is too large; it may be {MOST} at most"
                )
        if not 0 <= self.time_limit < math.inf:
            raise InputError(
                f"--time-limit {self.time_limit:g} is not a number of seconds; "
                "give 0 for no limit"
            )


def check_metric(metric: str) -> None:
    """Raise where no metric is called so."""
    if metric not in METRICS:
        raise InputError(f"--metric '{metric}' is unknown; {near(metric, METRICS)}")


def check_seed(seed: int) -> None:
    """Raise where a seed is out of range."""
    if not 0 <= seed < 2**32:
        raise InputError(
            f"--seed {seed} is out of range; it must be from 0 to {2**32 - 1}"
        )
