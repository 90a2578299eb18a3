"""Two sizes of everything: the papers', and a tiny one that touches every entry in minutes.

A constant that makes work names both: ``SEEDS = sized(10, quick=1)``. Which of the two holds is
settled when a process starts, by the environment, which the processes started from it inherit.
"""

from __future__ import annotations

import os
from typing import Any

QUICK = os.environ.get("REPRODUCTION_QUICK") == "1"


def sized(full: Any, *, quick: Any) -> Any:
    """Return the value of the size that was chosen."""
    return quick if QUICK else full
