"""What `warmup` leaves to compile: nothing."""

import pytest
from numba.core import event
from scipy import sparse
from sklearn.datasets import load_digits

import loclin

OTHERS = [loclin.LLSVMClassifier, loclin.SAPLClassifier, loclin.L3MClassifier,
          loclin.LDKLClassifier, loclin.LMKLClassifier]  # fmt: skip
KINDS = [loclin.ML3Classifier, *(pytest.param(kind, marks=pytest.mark.slow) for kind in OTHERS)]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_to_compile(kind):
    loclin.warmup(kind())
    X, y = load_digits(return_X_y=True)
    with event.install_recorder("numba:compile") as recorder:
        for labels in (y, y < 5):  # so few rows are cross-validated, as some hundreds are
            model = kind(random_state=0).set_params(max_iter=3).fit(X[:300] / 16.0, labels[:300])
            model.predict(X / 16.0)
            model.predict(X[:1])
            model.predict_proba(X[:1])
            model.local_model(X[:2])
    assert not recorder.buffer


@pytest.mark.slow
def test_sparse_rows():
    loclin.warmup(loclin.ML3Classifier(), layouts=("sparse",))
    X, y = load_digits(return_X_y=True)
    with event.install_recorder("numba:compile") as recorder:
        model = loclin.ML3Classifier(max_iter=3, random_state=0).fit(sparse.csr_matrix(X / 16.0), y)
        model.predict(sparse.csr_matrix(X[:9]))
    assert not recorder.buffer


def test_bad_layouts():
    with pytest.raises(ValueError, match=r"layouts=.*'wide'"):
        loclin.warmup(layouts=("wide",))
