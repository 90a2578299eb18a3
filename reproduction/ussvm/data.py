"""The sets of US-SVM's experiments as their models see them, and what these are measured by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reproduction.data import load


def preparation(name: str, n_features: int, seed: int) -> Any:
    """Return what comes before US-SVM: standardised features, or a coding and these."""
    if name == "newsgroups20":
        svd = TruncatedSVD(100, random_state=seed)
        return make_pipeline(TfidfTransformer(sublinear_tf=True), svd, StandardScaler())
    steps: list[Any] = [StandardScaler()]
    if name == "letter":
        coding = Nystroem(gamma=1 / n_features, n_components=300, random_state=seed)
        steps += [coding, StandardScaler()]
    return make_pipeline(*steps)


def mean_ap(scores: NDArray[Any], y: NDArray[Any], classes: NDArray[Any]) -> float:
    """Mean average precision, in %."""
    each = [average_precision_score(y == label, scores[:, k]) for k, label in enumerate(classes)]
    return 100 * float(np.mean(each))


class Split:
    """Rows to learn a dictionary on, and rows of the classes to code: to learn, and to test on."""

    def __init__(self, name: str, seed: int, n_rows: int, n_old: int | None = None) -> None:
        data: Any = load(name)
        rng = np.random.default_rng(seed)
        X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
        if X_test is None:
            X, X_test, y, y_test = train_test_split(
                X, y, test_size=0.3, stratify=y, random_state=seed
            )
        X, X_test = X.astype(np.float32), X_test.astype(np.float32)
        prepare = preparation(name, X.shape[1], seed).fit(X)
        X, X_test = (prepare.transform(part).astype(np.float32) for part in (X, X_test))
        classes = rng.permutation(np.unique(y))
        first = classes if n_old is None else classes[:n_old]
        self.new = np.sort(classes if n_old is None else classes[n_old:])
        old = rng.permutation(np.flatnonzero(np.isin(y, first)))[:n_rows]
        self.X_old, self.y_old = X[old], y[old]
        new = old if n_old is None else np.isin(y, self.new)
        test = np.isin(y_test, self.new)
        self.X, self.y = X[new], y[new]
        self.X_test, self.y_test = X_test[test], y_test[test]
