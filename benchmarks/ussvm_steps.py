"""First steps of US-SVM's descent: held-out error by `code_lr` and `atom_lr`.

Training splits only: 30 % of their rows, stratified, are held out (isolet; letter after 300
Nystroem features; usps, satimage; newsgroups20, which has no split, after 100 directions of a
truncated SVD of its tf-idf). Standardised features in float32, at most 5,000 rows to learn from,
one thread. Atoms: a quarter and half of the classes, and the default. All else is default.

``LOCLIN_DATA=FOLDER python -m benchmarks.ussvm_steps [isolet ...] --results FOLDER``. A
stopped run goes on from what the folder has.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from loclin import USSVMClassifier
from loclin.datasets import load
from reproduction.runner import undisturbed
from reproduction.store import Cache
from reproduction.ussvm.data import mean_ap, preparation

SETS = ["isolet", "letter", "usps", "satimage", "newsgroups20"]
CODE_LR = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0]
ATOM_LR = [0.3, 1.0, 3.0]
MOST_ROWS = 5000


def held_out(name: str, seed: int) -> tuple[Any, ...]:
    """Rows to learn from, rows held out, and their labels."""
    data: Any = load(name)
    X, X_out, y, y_out = train_test_split(
        data.X_train.astype(np.float32), data.y_train, test_size=0.3, stratify=data.y_train,
        random_state=seed,
    )  # fmt: skip
    prepare = preparation(name, X.shape[1], seed).fit(X)
    some = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
    parts = (prepare.transform(part).astype(np.float32) for part in (X[some], X_out))
    return *parts, y[some], y_out


def errors_of(rows: tuple[Any, ...], n_atoms: int | None, steps: tuple[float, float],
              seed: int) -> list[float]:  # fmt: skip
    """Error and mean average precision held out, in %, the objective, and seconds."""
    X, X_out, y, y_out = rows
    code_lr, atom_lr = steps
    model = USSVMClassifier(
        n_atoms, beta="scale", code_lr=code_lr, atom_lr=atom_lr, random_state=seed
    )
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    P, signs = model.transform(X), np.where(y[:, None] == model.classes_, 1, -1)
    losses = np.maximum(0, 1 - signs * model.score_precomputed(P)).sum(axis=1)
    objective = losses.mean() + model.beta_ * np.abs(model.codes_.data).sum()
    found = 100 * (1 - model.score(X_out, y_out))
    ap = mean_ap(model.decision_function(X_out), y_out, model.classes_)
    return [found, ap, float(objective), seconds]


def study(name: str, seeds: int, cache: Cache) -> None:
    """Print the errors of every pair of steps on a set."""
    runs = [held_out(name, seed) for seed in range(seeds)]
    n_classes = len(np.unique(runs[0][2]))
    for n_atoms, *steps in product((n_classes // 4, n_classes // 2, None), CODE_LR, ATOM_LR):
        found = [
            cache(
                f"{name} | {n_atoms} | {steps} | {seed}",
                {"rows": MOST_ROWS},
                partial(errors_of, rows, n_atoms, tuple(steps), seed),
            )
            for seed, rows in enumerate(runs)
        ]
        error, ap, objective, seconds = np.mean(found, axis=0)
        print(
            f"{name}, {n_atoms or 'default'} atoms, code_lr={steps[0]:g}, atom_lr={steps[1]:g}: "
            f"error {error:.2f} %, mAP {ap:.2f} %, objective {objective:.4f}, {seconds:.1f} s",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", choices=[[], *SETS], default=[])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args(arguments)
    with undisturbed():
        for name in options.sets or SETS:
            study(name, options.seeds, Cache(options.results))


if __name__ == "__main__":
    main()
