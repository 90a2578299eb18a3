"""How to compare: the settings, with their defaults."""

from __future__ import annotations

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
        Folds of the cross-validation, and the maximum number of candidates that it tries.
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


def check_metric(metric: str) -> None:
    """Raise where no metric is called so."""
    if metric not in METRICS:
        raise InputError(f"--metric '{metric}' is unknown; {near(metric, METRICS)}")
