"""The fit to rows in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from loclin.cluster.executors import Executor, executor_of
from loclin.cluster.kinds import by_kinds
from loclin.cluster.parts import Counts, Sample, count, draw
from loclin.cluster.plan import as_it_knows, planned
from loclin.cluster.rounds import Drawn, goes_on, in_rounds
from loclin.ensemble import LocallyLinearEnsemble
from loclin.ensemble.members import is_forest
from loclin.fitting.base import LocallyLinearClassifier
from loclin.fitting.checks import check_n_jobs, check_number


def fit(
    estimator: Any, parts: Any, *, executor: str | Executor = "threads",
    n_jobs: int | None = -1, rounds: int = 60, passes: int = 2, sample_rows: int = 20_000,
    on_round: Callable[[Any], Any] | None = None,
) -> Any:  # fmt: skip
    """Fit a classifier to rows that lie in parts; take this to use all cores, or a cluster.

    The result is the plain classifier. In each round every part goes on from the same
    models, over its own rows, and the means of what they have learned begin the next
    round. So rows stay where they are, and only models travel.

    Parameters
    ----------
    estimator : classifier
        ML3, SAPL, LL-SVM (by "sgd"), C-SVM, L-MKL (by "sgd"), LDKL, L3M (by "online"),
        US-SVM or an ensemble of them, with all its parameters. It is not changed. With
        ``warm_start=True``, one that is fitted goes on.
    parts : list
        Of each part a tuple ``(X, y)`` or ``(X, y, sample_weight)``, or a function
        without arguments that returns one, such as one that reads a file. Parts should
        be alike: sort no rows by label. An executor of your own may take something else.
    executor : {"threads", "processes"} or Executor, default="threads"
        Where parts are learned. Threads share the memory. Processes cost more to begin
        with, and suit parts that are functions.
    n_jobs : int or None, default=-1
        Threads, or processes; -1 takes as many as there are processors.
    rounds : int, default=60
        Maximum number of rounds; of an ensemble, for each member. The fit ends
        earlier where the objective levels off, by a tenth of the estimator's `tol` and by
        `n_iter_no_change`; with `early_stopping`, where the accuracy on rows held out
        does.
    passes : int, default=2
        Passes over a part in a round. A pass takes at most `round_rows` rows, if the
        estimator has that parameter. More passes need fewer rounds, but more time for
        each.
    sample_rows : int, default=20_000
        Rows that are fetched from the parts to begin with. A fit to them chooses the
        map of the features, the strength, pieces and the metric, the numbers that are
        left to the estimator, and the first models. Every class has some.
    on_round : callable, default=None
        Called after each round with a fitted classifier, to save or to measure it; an
        ensemble has the members so far. The fit ends if it returns True. Callbacks of
        scikit-learn are not called.

    Returns
    -------
    model : classifier
        A fitted one. `objective_` has a number for each round, and `t_` the rows that
        one part has passed over; L3M counts those of the fit to the sample in. Five rows
        in a hundred, at most 5,000, are held out, and tell the temperature.

    Raises
    ------
    TypeError
        If the classifier cannot be fitted in parts.
    ValueError
        If a parameter or a block of rows is not valid; the message names the block. Also
        if too few rows are held out for `early_stopping`.

    Notes
    -----
    Where codes do not change (LL-SVM, and C-SVM with its clusters of the sample), the
    problem is convex, and the rounds lead to the models of one machine. Others find
    models that are as good, but others.

    The members of an ensemble learn one after another, each in rounds of its own. First
    there is one of each kind; those that count get `n_folds`. To a forest each part adds
    trees. Rows held out tell how much each kind counts.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import loclin.cluster
    >>> from loclin import ML3Classifier
    >>> X, y = load_digits(return_X_y=True)
    >>> parts = [(X[k:1300:4], y[k:1300:4]) for k in range(4)]
    >>> model = loclin.cluster.fit(ML3Classifier(random_state=0), parts, rounds=10)
    >>> bool(model.score(X[1300:], y[1300:]) > 0.93)
    True
    """
    _check(estimator, n_jobs, rounds, passes, sample_rows)
    if not (on_round is None or callable(on_round)):
        raise TypeError(f"on_round={on_round!r} is no function; give one, or None.")
    with executor_of(executor, n_jobs) as run:
        counts = run(count, Counts.merge, parts, clone(estimator))
        drawing = planned(estimator, counts, sample_rows)
        if goes_on(estimator):
            drawing = as_it_knows(estimator, drawing)
        sample = run(draw, Sample.merge, parts, drawing)
        drawn = Drawn(run, parts, counts, drawing.view, sample)
        if estimator.verbose:
            print(*_told(estimator, drawn), sep="\n", flush=True)
        whole = isinstance(estimator, LocallyLinearEnsemble)
        fit_all = by_kinds if whole else in_rounds
        return fit_all(estimator, drawn, rounds=rounds, passes=passes, on_round=on_round)


def _told(estimator: Any, drawn: Drawn) -> Iterator[str]:
    """Yield what is known before the first round."""
    name, counts, view = type(estimator).__name__, drawn.counts, drawn.view
    yield (
        f"{name}: {counts.n_rows.sum()} rows of {len(view.classes)} classes and "
        f"{view.reader.n_features_in_} features, in {len(np.unique(counts.part))} parts"
    )
    if goes_on(estimator):
        yield f"{name}: goes on from an earlier fit"
    else:
        yield f"{name}: begins with a fit to {len(drawn.start.y)} of them"


def _check(
    estimator: Any, n_jobs: int | None, rounds: int, passes: int, sample_rows: int
) -> None:
    if isinstance(estimator, LocallyLinearEnsemble):
        estimator._check_parameters()
        alone = [kind for kind in estimator.estimators or () if not is_forest(kind)]
    else:
        alone = [estimator]
    for one in alone:
        if not isinstance(one, LocallyLinearClassifier):
            raise TypeError(
                f"{type(one).__name__} cannot be fitted in parts. ML3, SAPL, LL-SVM, C-SVM, L-MKL, "
                "LDKL, L3M, US-SVM and LocallyLinearEnsemble can."
            )
        refusal = one._checked_parameters().stream_refusal()
        if refusal is not None:
            raise TypeError(f"Parts are learned as streams are, and {refusal}")
    check_n_jobs(n_jobs)
    for name, value in (
        ("rounds", rounds),
        ("passes", passes),
        ("sample_rows", sample_rows),
    ):
        check_number(name, value, Integral, low=1)
