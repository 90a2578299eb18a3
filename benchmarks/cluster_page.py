"""The tables of docs/cluster.md, from what `cluster` and `dask_workers` have found.

``python -m benchmarks.cluster_page`` writes them into the page. To measure a fit anew, delete its
lines in ``benchmarks/results``, measure it with ``--jsonl`` and that file, and write the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "cluster.md"
SETS = {"letter": "LETTER", "covtype": "Covtype", "mnist": "MNIST"}
MODELS = {
    "ML3": "ML3",
    "SAPL": "SAPL",
    "OCC": "LL-SVM over planes (OCC)",
    "L3M": "L3M, online",
    "US-SVM": "US-SVM",
    "ensemble": "ensemble",
    "LL-SVM": "LL-SVM",
    "C-SVM": "C-SVM",
}

Result = dict[str, Any]


def stored(name: str) -> list[Result]:
    """Return the results of a file, a line each."""
    lines = (RESULTS / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def add(path: Path | None, result: Result) -> None:
    """Add a result to a file, so that a run that is cut off loses none."""
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(result) + "\n")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = (head, ["---"] * len(head), *rows)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def costs(results: list[Result]) -> str:
    """Return what a million rows take in one process, and on two workers."""
    told: dict[str, dict[int, str]] = {}
    for one in results:
        if one["rows"] == 10**6:
            text = f"{one['seconds']:.0f} s, {one['error %']:.2f} %"
            told.setdefault(one["model"], {})[one["workers"]] = text
    head = ["classifier", "one process", "two workers"]
    return table(head, ([model, of[0], of[2]] for model, of in told.items()))


def errors(results: list[Result]) -> str:
    """Return errors of one process, and in parts after rounds: means of seeds."""
    head = ["set", "rows", "classifier", "one process", "after 6 rounds", "12", "24"]
    return table([*head, "in the end", "kB a round"], _lines_of_errors(results))


def _lines_of_errors(results: list[Result]) -> Iterator[list[str]]:
    for of_set, shown in SETS.items():
        for model, name in MODELS.items():
            seeds = [one for one in results if (one["set"], one["model"]) == (of_set, model)]
            if not seeds:
                continue
            first = [shown, f"{seeds[0]['rows']:,}"] if model == "ML3" else ["", ""]
            alone = fmean(one["error of one process"] for one in seeds)
            after = [_after(seeds, rounds) for rounds in (6, 12, 24)]
            end = fmean(one["error"] for one in seeds)
            kilobytes = median(one["kB of a round"] for one in seeds)
            yield [*first, name, f"{alone:.2f}", *after, f"{end:.2f}", f"{kilobytes:,.0f}"]


def _after(seeds: list[Result], rounds: int) -> str:
    """Return the mean error after some rounds, or after the last one if that was earlier."""
    found = [one["errors"] for one in seeds]
    return f"{fmean(one[:rounds][-1] for one in found):.2f}" if all(found) else ""


def workers(results: list[Result]) -> str:
    """Return what one worker of a cluster takes, and what two do."""
    head = ["classifier", "workers", "seconds", "before the first round ends", "a round"]
    head += ["MB a round", "GB a worker", "GB the client", "error in %"]
    rows = (
        [
            one["model"], str(one["workers"]), f"{one['seconds']:.1f}",
            f"{one['until the first round']:.1f}", f"{one['a round']:.2f}",
            f"{one['MB of a round']:.1f}", f"{max(one['GB of a worker']):.1f}",
            f"{one['GB of the client']:.1f}", f"{one['error %']:.2f}",
        ]
        for one in results
        if one["rows"] == 10**7
    )  # fmt: skip
    return table(head, rows)


def written(page: str) -> str:
    """Return the page with its tables from the stored results."""
    tables = [
        costs(stored("dask_workers")),
        errors(stored("cluster")),
        workers(stored("dask_workers")),
    ]
    for new in tables:
        head = re.escape(new.partition("\n")[0])
        page, n_found = re.subn(rf"{head}\n(\|.*\n)*", lambda _, new=new: new, page)
        if n_found != 1:
            raise ValueError(f"The page has {n_found} tables with the head {head}.")
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
