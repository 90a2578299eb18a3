"""Draw estimators, data and calls at random, and hold what they do against what is promised.

``python -m benchmarks.fuzz --cases 20000 --seed 0 --jobs 2`` (``--only 17`` runs one case)

Each case draws a classifier with parameters, rows (dtype, layout, scale, weights, labels), and
calls in any order: fit, partial_fit, a fit that goes on, calls that must fail, set_params, predict.
After each call:

- it raised an error that loclin or scikit-learn's validation raises on purpose, and the estimator
  is what it was, or the model is finite;
- the labels are the arg max of the scores, and of ``classes_``;
- ``local_model`` gives the scores;
- neither the rows nor the labels nor the weights have changed;
- nothing was warned of but convergence and what loclin itself warns of;
- classes that lie far apart are learned, whatever the scale of features and weights.
"""

from __future__ import annotations

import argparse
import re
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import loclin
from loclin.codings import (
    InverseDistanceCoding,
    LLCCoding,
    LocalCoordinateCoding,
    OrthogonalCoding,
    SoftAssignmentCoding,
    TangentCoding,
)

_RAISERS = (Path(loclin.__file__).parent, Path(sklearn.__file__).parent / "utils")
_CLASS_WEIGHTS = (None, None, None, {0: 2.0}, "balanced", {0: 1e308, 1: 1e308}, {0: 1e-300})


class Broken(Exception):
    """A promise that was not kept."""


METRICS = [None, None, "diagonal", "auto", "full"]


def _options(rng: np.random.Generator, **options: Any) -> dict[str, Any]:
    """Draw one of the values of each parameter."""
    return {name: values[rng.integers(len(values))] for name, values in options.items()}


def _coding(rng: np.random.Generator) -> Any:
    k = int(rng.integers(1, 4))
    drawn = [
        SoftAssignmentCoding(k + 1, k),
        InverseDistanceCoding(k + 1, k),
        LLCCoding(k + 1, k),
        LocalCoordinateCoding(k + 1, max_iter=2),
        OrthogonalCoding(k),
        OrthogonalCoding("auto", whiten=False, norm="l2"),
        OrthogonalCoding(k, per_class=True),
        TangentCoding(SoftAssignmentCoding(k + 1, k), n_tangents=2),
    ]
    return drawn[rng.integers(len(drawn))]


def _ml3(rng: np.random.Generator, far_apart: bool) -> Any:
    own = _options(
        rng, n_models=[1, 2, 5], p=[1.0, 1.5, 2.0, 4.0], init=["random", "kmeans"],
        loss=["hinge", "squared_hinge", "logistic"], revive=[True, False],
        penalize_intercept=[True, False], metric=METRICS,
    )  # fmt: skip
    return loclin.ML3Classifier(**own)


def _llsvm(rng: np.random.Generator, far_apart: bool) -> Any:
    own = _options(
        rng, loss=["hinge", "squared_hinge"], bias=["local", "global", "both"],
        solver=["sgd", "sgd", "dual_cd"], multi_class=["ovr", "ovr", "crammer_singer"],
        metric=METRICS,
    )  # fmt: skip
    if not far_apart:
        own |= _options(rng, weights=["linear", "constant"])
    coding = {} if rng.random() < 0.3 else {"coding": _coding(rng)}
    return loclin.LLSVMClassifier(**coding, **own)


def _sapl(rng: np.random.Generator, far_apart: bool) -> Any:
    own = _options(
        rng, n_anchors=[None, 3, 9], n_neighbors=[1, 3], share_anchors=[True, False],
        loss=["hinge", "squared_hinge", "logistic"], penalize_intercept=[True, False],
        metric=METRICS,
    )  # fmt: skip
    if not far_apart:
        own |= _options(rng, weights=["linear", "constant"], bandwidth=["auto", 1e-300, 1.0, 1e300])
    return loclin.SAPLClassifier(**own)


def _l3m(rng: np.random.Generator, far_apart: bool) -> Any:
    own = _options(
        rng, n_regions=[None, 2, 4], n_restarts=[1, 2], loss=["hinge", "logistic"],
        solver=["refined", "refined", "refined", "online", "online", "online", "convex"],
    )  # fmt: skip
    return loclin.L3MClassifier(**own)


def _ussvm(rng: np.random.Generator, far_apart: bool) -> Any:
    if far_apart:
        return loclin.USSVMClassifier()
    own = _options(
        rng, n_atoms=[None, 2, 6], alpha=[0.0, 1e-6, 1.0, 1e6], beta=["auto", "scale", 0.0, 1.0],
        l1_ratio=[1.0, 0.5, 0.0], nonnegative=[False, True], n_nonzero=[None, 2],
        positive_weight=[1.0, 1e3],
    )  # fmt: skip
    return loclin.USSVMClassifier(**own)


def _csvm(rng: np.random.Generator, far_apart: bool) -> Any:
    own = _options(
        rng, n_clusters=[None, 2, 4], global_penalty=[0.1, 1.0, 10.0],
        loss=["hinge", "squared_hinge"], multi_class=["ovr", "ovr", "crammer_singer"],
    )  # fmt: skip
    return loclin.CSVMClassifier(**own)


def _ldkl(rng: np.random.Generator, far_apart: bool) -> Any:
    own = _options(
        rng, depth=["auto", 0, 1, 3], loss=["hinge", "squared_hinge", "logistic"],
        annealing=[0.5, 10.0], tree_penalty=[1.0, 0.0],
    )  # fmt: skip
    if not far_apart:
        own |= _options(rng, tree_lr=[3.0, 0.0, 100.0])
    return loclin.LDKLClassifier(**own)


def _svmknn(rng: np.random.Generator, far_apart: bool) -> Any:
    own = _options(
        rng, n_neighbors=[None, 1, 5, 20], metric=["euclidean", "euclidean", "cityblock"]
    )
    return loclin.SVMKNNClassifier(**own)


def _lmkl(rng: np.random.Generator, far_apart: bool) -> Any:
    own = _options(
        rng, n_models=[1, 3, 9], bias=["local", "global"], loss=["hinge", "squared_hinge"],
        solver=["sgd", "sgd", "alternating"],
    )  # fmt: skip
    if not far_apart:
        own |= _options(rng, gate_lr=[1.0, 0.0, 100.0])
    return loclin.LMKLClassifier(**own)


def _kernel_lmkl(rng: np.random.Generator, far_apart: bool) -> Any:
    if far_apart:  # other kernels do not take features of any scale
        return loclin.KernelLMKLClassifier(["linear", "linear"])
    own = _options(
        rng, kernels=[["linear", "poly"], ["rbf"], ["linear", "rbf", "linear"]],
        gate_lr=[1.0, 0.0, 100.0],
    )  # fmt: skip
    return loclin.KernelLMKLClassifier(**own)


_KINDS = (_ml3, _llsvm, _sapl, _l3m, _ussvm, _csvm, _ldkl, _svmknn, _lmkl, _kernel_lmkl)


def draw_model(rng: np.random.Generator, far_apart: bool) -> Any:
    """Draw a classifier; for classes far apart, one whose strengths and steps are the rule's."""
    model = _KINDS[rng.integers(len(_KINDS))](rng, far_apart)
    shared = _options(rng, max_iter=[1, 2, 4], average=[0, 2], warm_start=[False, True])
    shared |= {"alpha": "scale", "random_state": int(rng.integers(1000))}
    if far_apart:
        shared["max_iter"] = 40
    else:
        shared |= _options(
            rng, alpha=["scale"] * 6 + ["auto", 1e-300, 1e-6, 1.0, 1e10],
            batch_size=["auto", "auto", 1, 7, 10**9], early_stopping=[False] * 5 + [True],
            class_weight=_CLASS_WEIGHTS,
        )  # fmt: skip
    if isinstance(model, loclin.USSVMClassifier):
        del shared["alpha"]
    known = model.get_params()
    return model.set_params(**{name: value for name, value in shared.items() if name in known})


def draw_rows(rng: np.random.Generator, far_apart: bool) -> tuple[Any, Any, Any]:
    """Draw rows, labels and weights."""
    n, d = int(rng.integers(12, 60)), int(rng.integers(1, 7))
    n_classes = int(rng.integers(2, 5))
    if far_apart:
        n, d = 60, n_classes + 1
    labels = np.arange(n) % n_classes
    X = rng.normal(size=(n, d))
    if far_apart:
        X[np.arange(n), labels] += 12.0
    else:
        X[:, 0] += labels
    X = _odd(rng, X) if not far_apart else X
    with np.errstate(over="ignore"):  # infinity is among what is drawn
        X = X * 10.0 ** (rng.integers(-12, 9) if rng.random() < 0.7 else rng.integers(-320, 20))
        X = X.astype(_options(rng, dtype=[np.float64, np.float64, np.float32])["dtype"])
    names = [np.arange(4), np.array(["b", "a", "dd", "c"]), np.array([-1, 7, 3, 10**12])]
    names += [np.array([False, True])] if n_classes == 2 else []
    y = names[rng.integers(len(names))][labels]
    return _in_layout(rng, X), y, _draw_weights(rng, n, far_apart)


def _odd(rng: np.random.Generator, X: Any) -> Any:
    """Let some rows be zero, constant, repeated, of mixed scales, or wild."""
    kind = rng.integers(8)
    if kind == 0:
        X[:, -1] = 1.0
    elif kind == 1:
        X[: len(X) // 2] = X[0]
    elif kind == 2:
        X[rng.random(X.shape) < 0.7] = 0.0
    elif kind == 3:
        X *= 10.0 ** rng.uniform(-8, 8, X.shape[1])
    elif kind == 4:
        X[0, 0] = [np.nan, np.inf, 1e300, -1e18][rng.integers(4)]
    elif kind == 5:
        X[:] = 0.0
    return X


def _in_layout(rng: np.random.Generator, X: Any) -> Any:
    form = rng.integers(6)
    if form == 0:
        return np.asfortranarray(X)
    if form == 1:
        return sparse.csr_matrix(X)
    if form == 2:
        return sparse.csc_array(X)
    if form == 3:
        rows = sparse.csr_array(X)
        rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        return rows
    if form == 4:
        return np.repeat(X, 2, axis=1)[:, ::2]
    return X


def _draw_weights(rng: np.random.Generator, n: int, far_apart: bool) -> Any:
    scale = 10.0 ** rng.integers(-320, 309)
    kind = rng.integers(6)
    if kind == 0:
        return rng.uniform(0.5, 1.0, n) * scale
    if far_apart or kind > 3:
        return None
    if kind == 1:
        return 10.0 ** rng.uniform(-300, 300, n)
    if kind == 2:
        return (rng.random(n) < 0.7).astype(float)
    return np.where(rng.random(n) < 0.05, [-1.0, np.nan, np.inf][rng.integers(3)], 1.0)


class Caller:
    """Calls a classifier and holds what comes back against the promises."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.far_apart = bool(rng.random() < 0.2)
        self.model = draw_model(rng, self.far_apart)
        self.X, self.y, self.weights = draw_rows(rng, self.far_apart)
        self.outcomes: list[str] = []

    def run(self) -> list[str]:
        """Make some calls; return what came of each."""
        streams = [self.stream] * 2 if hasattr(type(self.model), "partial_fit") else []
        calls = [self.fit] * 3 + streams + [self.wrong] + [self.change]
        for _ in range(int(self.rng.integers(1, 6))):
            self.guarded(calls[self.rng.integers(len(calls))])
        return self.outcomes

    def fit(self) -> None:
        """Fit the rows."""
        self.model.fit(self.X, self.y, self.weights)
        # the last iterate may be any, and tangents' codes are lengths: both know a scale
        averaged = getattr(self.model, "average", 1) > 0
        lengths = isinstance(getattr(self.model, "coding", None), TangentCoding)
        known = self.far_apart and averaged and not lengths
        self.check(learned=known and abs(self.X).max() > 0)

    def stream(self) -> None:
        """Learn some of the rows, twice."""
        order = self.rng.permutation(len(self.y))
        X = self.X[order] if not sparse.issparse(self.X) else self.X.tocsr()[order]
        for rows in np.array_split(np.arange(len(self.y)), self.rng.integers(1, 4)):
            weights = None if self.weights is None else self.weights[order][rows]
            self.model.partial_fit(X[rows], self.y[order][rows], np.unique(self.y), weights)
        self.check()

    def wrong(self) -> None:
        """Make a call that must fail."""
        n, kind = len(self.y), self.rng.integers(6)
        if kind == 0:
            self.model.fit(self.X, self.y[:-1])
        elif kind == 1:
            self.model.fit(self.X, np.zeros(n, int))
        elif kind == 2:
            self.model.fit(self.X, self.y, -np.ones(n))
        elif kind == 3:
            self.model.fit(self.X, np.array(["a", 1, None] * n, dtype=object)[:n])
        elif kind == 4:
            count = "max_iter" if "max_iter" in self.model.get_params() else "n_neighbors"
            clone(self.model).set_params(**{count: 10**30}).fit(self.X, self.y)
        else:
            clone(self.model).predict(self.X)
        raise Broken("a wrong call did not raise")

    def change(self) -> None:
        """Change a parameter."""
        flags = [False, True]
        changed = _options(self.rng, max_iter=[1, 3], warm_start=flags, calibrate=flags)
        known = self.model.get_params()
        if not self.far_apart:
            self.model.set_params(**{name: changed[name] for name in changed if name in known})

    def guarded(self, call: Any) -> None:
        """Make a call; check what it has changed, raised and warned of."""
        given = [_bytes(part) for part in (self.X, self.y, self.weights)]
        parameters, before = self.model.get_params(), dict(vars(self.model))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                call()
                self.outcomes.append(f"{call.__name__}: done")
            except (ValueError, TypeError, AttributeError) as error:
                _check_raised_on_purpose(error)
                self.outcomes.append(f"{type(error).__name__}: {_without_values(str(error))}")
                if call.__name__ == "stream":  # calls before the one that failed have learned
                    before = None
            if before is not None and self.outcomes[-1].split(":")[0] != call.__name__:
                self.check_unchanged(before, parameters)
        _check_warnings(warned)
        if given != [_bytes(part) for part in (self.X, self.y, self.weights)]:
            raise Broken("rows, labels or weights were changed")

    def check_unchanged(self, before: dict[str, Any], parameters: dict[str, Any]) -> None:
        """Check that a failed call has left the estimator as it was."""
        after = vars(self.model)
        if after.keys() != before.keys() or self.model.get_params() != parameters:
            raise Broken("a failed call has changed the estimator")
        if not all(after[name] is before[name] for name in after):
            raise Broken("a failed call has replaced attributes")

    def check(self, *, learned: bool = False) -> None:
        """Check the model: finite, arg max of the scores, exact local models."""
        model, X = self.model, self.X
        scores = model.decision_function(X)
        if not np.isfinite(scores).all():
            raise Broken("scores are not finite")
        binary = scores.ndim == 1
        found = (scores > 0).astype(int) if binary else scores.argmax(axis=1)
        labels = model.predict(X)
        ties = binary and (scores == 0).any()
        if not ties and not np.array_equal(labels, model.classes_[found]):
            raise Broken("labels are not the arg max of the scores")
        if hasattr(model, "local_model"):
            self.check_local_models(scores)
        if getattr(model, "temperature_", None) is not None and model.calibrate:
            self.check_probabilities(found)
        right = np.mean(labels == self.y)
        if learned and right < 0.9:
            near_one = X * (20.0 / abs(X).max())
            usual = clone(model).fit(near_one, self.y, self.weights).score(near_one, self.y)
            if right < usual - 0.1:
                raise Broken(f"classes far apart: accuracy {right:.2f}, at scale 1 {usual:.2f}")

    def check_probabilities(self, found: Any) -> None:
        """Check that they are probabilities, and that no label has more than the one predicted."""
        P = self.model.predict_proba(self.X)
        if not ((P > 0).all() and np.allclose(P.sum(axis=1), 1.0, atol=1e-5)):
            raise Broken("probabilities are not above 0 with a sum of 1")
        if (P[np.arange(len(P)), found] < P.max(axis=1) * (1 - 1e-5)).any():
            raise Broken("a label has more probability than the one predicted")

    def check_local_models(self, scores: Any) -> None:
        """Check that the scores are those of the local models, to the rounding of their parts."""
        model, X = self.model, self.X
        rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
        rows = rows.astype(scores.dtype)
        coef, intercept = model.local_model(X)
        found = np.einsum("n...d,nd->n...", coef, rows) + intercept
        if not hasattr(model, "local_weights"):
            parts = np.einsum("n...d,nd->n...", np.abs(coef), np.abs(rows))
            _check_sums(found, scores, parts + np.abs(intercept))
            return
        codes = model.local_weights(X)
        codes = np.abs(codes.toarray()[:, None] if sparse.issparse(codes) else codes)
        parts = np.einsum("smd,nd->nsm", np.abs(model.local_coef_), np.abs(rows))
        parts = (codes * (parts + np.abs(model.local_intercept_))).sum(axis=2)
        parts = parts.sum(axis=1) if scores.ndim == 1 else parts
        _check_sums(found, scores, parts + np.abs(intercept))


def _check_sums(found: Any, scores: Any, parts: Any) -> None:
    """Check sums of parts that have these sizes, to their rounding."""
    error = float((np.abs(found - scores) / (parts + np.abs(scores) + 1e-30)).max())
    if error > (1e-4 if scores.dtype == np.float32 else 1e-10):
        raise Broken(f"local models miss the scores by {error:.1e}")


def _bytes(part: Any) -> Any:
    if part is None:
        return None
    if sparse.issparse(part):
        return part.data.tobytes(), part.indices.tobytes(), part.indptr.tobytes()
    return np.asarray(part).tobytes()


def _check_raised_on_purpose(error: BaseException) -> None:
    """Raise where it is not a `raise` of loclin's or of scikit-learn's validation."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    ours = any(Path(frame.filename).is_relative_to(folder) for folder in _RAISERS)
    if not ours or not (frame.line or "").startswith("raise"):
        raise Broken(f"raw {type(error).__name__}: {error}") from error


def _check_warnings(warned: list[warnings.WarningMessage]) -> None:
    for warning in warned:
        if issubclass(warning.category, ConvergenceWarning):
            continue
        if issubclass(warning.category, UserWarning) and "loclin" in warning.filename:
            continue
        if issubclass(warning.category, UserWarning) and str(warning.message).startswith("n_"):
            continue
        raise Broken(f"{warning.category.__name__}: {warning.message} ({warning.filename})")


def _without_values(message: str) -> str:
    """Return the message without numbers and values: errors of a kind have one."""
    first = message.split("\n")[0]
    return re.sub(r"[-+]?\d[\d.e+-]*|\[[^]]*\]|'[^']*'|=\S+", "*", first)[:70]


def run_case(seed: int, number: int) -> tuple[int, list[str], str | None]:
    """Run a case; return its number, what came of its calls, and what broke."""
    caller = Caller(np.random.default_rng([seed, number]))
    try:
        return number, caller.run(), None
    except Exception as error:
        n, d = caller.X.shape
        size = abs(caller.X).max()
        what = f"{type(caller.X).__name__} {caller.X.dtype} ({n}, {d}), up to {size:.3g}"
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


if __name__ == "__main__":
    sys.exit(min(main(), 1))
