"""Compile before the first fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.base import clone

from loclin._models import MODELS
from loclin.codings import OrthogonalCoding
from loclin.engine.warned import quiet
from loclin.llsvm import LLSVMClassifier


def warmup(
    *classifiers: Any,
    dtype: DTypeLike = np.float64,
    layouts: tuple[str, ...] = ("dense",),
) -> None:
    """Compile what classifiers need,
    so that the first fit and the first prediction do not wait.

    Compiled code is kept on disk (in the package's folder, or where NUMBA_CACHE_DIR
    says), so once after an installation is enough: in the recipe of a container, say.

    Parameters
    ----------
    *classifiers : classifiers
        Unfitted classifiers of this package; not changed. None stands for all, with
        default settings, and so for the kinds of `LocallyLinearEnsemble`.
    dtype : {float64, float32}, default=float64
        Type of the features to come.
    layouts : tuple of {"dense", "sparse"}, default=("dense",)
        Layouts of the features to come.

    Raises
    ------
    ValueError
        If a layout is not known.

    Examples
    --------
    >>> import loclin
    >>> loclin.warmup(loclin.ML3Classifier())
    """
    forms: dict[str, Any] = {"dense": np.asarray, "sparse": sparse.csr_matrix}
    if unknown := set(layouts) - set(forms):
        raise ValueError(f"layouts={layouts!r} is not valid; {sorted(unknown)} are none of "
                         f"{sorted(forms)}.")  # fmt: skip
    X = np.random.default_rng(0).standard_normal((300, 200)).astype(dtype)
    planes = LLSVMClassifier(OrthogonalCoding("auto"), bias="both")
    kinds = classifiers or (*(kind() for kind in MODELS), planes)
    for kind in kinds:
        few = {"max_iter": 2} if "max_iter" in kind.get_params() else {}
        for layout in layouts:
            # large models: other loops
            for n_classes, n_features in ((2, 4), (3, 4), (3, 200)):
                rows = forms[layout](X[:, :n_features])
                y = np.digitize(X[:, 0], np.arange(1, n_classes) - n_classes / 2)
                with quiet():  # of rows that are not to be learned
                    model = clone(kind).set_params(**few).fit(rows, y)
                    model.decision_function(rows)
                    model.predict(rows)
                    model.predict(rows[:1])
                    if hasattr(model, "local_model"):
                        model.local_model(rows[:1])
