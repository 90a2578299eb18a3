"""Hold classifiers against their limits: bare score products, other solvers, and memory.

``python -m benchmarks.limits --data mnist --n-models 90 --preprocess norm-center --dtype float32``
``python -m benchmarks.limits --shape 20000,50,10``: fit, predict and memory of any model

``LOCLIN_DATA=FOLDER python -m benchmarks.limits llsvm epochs``: one part of a model's own

- llsvm dual: USPS with 20 anchor planes; dual coordinate descent on implicit features against
  scikit-learn's LinearSVC on the same features written out, at the same objective.
- llsvm mnist: memory and time of MNIST with 50 planes.
- llsvm epochs: an epoch of SGD against its bare products, for codes by planes and by anchors.
- llsvm anchors: an epoch of SAPL, whose anchors learn, against one of LL-SVM, with given codes.
- llsvm sparse: newsgroups20 with 20 anchors, never made dense, beside LinearSVC.
- llsvm scale: seconds of fit as rows grow from 10,000 to 300,000.
- ussvm new-class: a class that comes late, over a frozen dictionary, beside LinearSVC.
- ussvm predict: 1,000 classes, scored from sparse codes and by a dense product.

Everything is on one thread, in processor seconds. What is compared is measured in turns.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from benchmarks._timing import pinned_threads
from benchmarks.limits import fits, llsvm, ussvm
from benchmarks.limits.models import MODELS, Shape

PARTS = {f"llsvm {name}": part for name, part in llsvm.PARTS.items()} | {
    f"ussvm {name}": part for name, part in ussvm.PARTS.items()
}


def main(argv: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
    """Measure, print each row as it comes, and return all figures."""
    parser = _parser()
    args = parser.parse_args(argv)
    part = " ".join(args.part)
    if part and part not in PARTS:
        parser.error(f"'{part}' is none of: {', '.join(PARTS)}")
    warnings.simplefilter("ignore", ConvergenceWarning)  # passes are counted
    results = {}
    with pinned_threads(1):
        for label, figures in PARTS[part]() if part else fits.rows(args):
            shown = (f"{name} {_digits(value)}" for name, value in figures.items())
            print(f"{label:67}{', '.join(shown)}", flush=True)
            results[label] = figures
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return results


def _digits(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _shape(text: str) -> Shape:
    return Shape(*map(int, text.split(",")))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.limits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("part", nargs="*", help="a model and a part of its own, alone; or none")
    add("--data", metavar="NAME", help="one of loclin.datasets.names(), instead of a shape")
    add("--shape", type=_shape, default="20000,50,10", metavar="N,D,C",
        help="rows, features and classes of a synthetic problem")  # fmt: skip
    add("--model", choices=MODELS, default="ML3Classifier")
    add("--n-models", type=int, default=16, help="local models")
    add("--dtype", choices=["float32", "float64"], default="float64")
    add("--preprocess", choices=fits.PREPROCESSORS, default="standard")
    add("--json", type=Path, metavar="FILE", help="write the figures to this file")
    return parser
