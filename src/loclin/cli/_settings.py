"""How to compare: the settings, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """How to compare.

    Attributes
    ----------
    budget : float
        Seconds of tuning for each system.
    folds, candidates : int
        Folds of the cross-validation, and the most candidates it tries.
    seed : int
        Seed of splits, candidates and classifiers.
    jobs : int
        Folds fitted at once, in threads.
    threads : int
        Threads of BLAS and OpenMP for each fit; 0 leaves them as they are.
    """

    budget: float = 8.0
    folds: int = 5
    candidates: int = 60
    seed: int = 0
    jobs: int = 1
    threads: int = 1
