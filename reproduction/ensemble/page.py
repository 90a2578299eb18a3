"""The section of the page on the ensemble on official splits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from reproduction.entry import Entry
from reproduction.judge import MARKS, WAITING
from reproduction.markdown import table

NOTE = """Cross-validation on training rows chooses preprocessing, metric, strength, size, members,
planes, pieces and a forest (`reproduction/ensemble/official.py`). There are three seeds. The SVC is
that of SAPL's table 2. Seconds are those of the processor. Size and members of MNIST are chosen
with all its rows, a sixth held out.
"""


def ensemble_section(entries: list[Entry], results: dict[tuple[str, str], Any]) -> Iterable[str]:
    """Yield the section."""
    rows = []
    for e in (e for e in entries if (e.paper, e.table) == ("ensemble", "official splits")):
        found = results.get(("ensemble", e.key))
        if not found:
            rows.append([e.data, MARKS[WAITING], *[""] * 6])
            continue
        errors, a_row = np.array(found["error %"]), np.mean(found["us a row"])
        rival, of_rival = found["rival's us a row"][0], found["rival's error %"][0]
        rows.append([
            e.data,
            f"{errors.mean():.2f} ± {errors.std(ddof=1) if len(errors) > 1 else 0.0:.2f}",
            f"{of_rival:.2f}",
            f"{np.mean(found['train s']):.0f}",
            f"{a_row:.3g}",
            f"{rival / a_row:.0f}",
            f"{np.mean(found['bytes']) / 1e6:.1f} MB",
            ", ".join(f"{name} {value}" for name, value in found["chosen"].items()),
        ])  # fmt: skip
    yield NOTE
    yield table(["", "error, %", "SVC's", "fit, s", "us a row", "times faster", "size", "chosen"],
                rows)  # fmt: skip
