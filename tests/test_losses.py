import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loclin.engine.losses import (
    LOSSES,
    Loss,
    check_loss,
    loss_conjugate,
    loss_slope,
    loss_value,
    losses_for,
)

margins = st.floats(-30, 30)


@pytest.mark.parametrize("loss", Loss)
@given(z=margins)
def test_slope_is_the_derivative(loss, z):
    h = 1e-6
    if loss == Loss.HINGE and abs(z - 1) < 2 * h:
        return
    numeric = (loss_value(loss, z + h) - loss_value(loss, z - h)) / (2 * h)
    assert loss_slope(loss, z) == pytest.approx(numeric, abs=1e-5)


@pytest.mark.parametrize("loss", Loss)
@given(z=margins)
def test_fenchel_equality_holds_at_the_slope(loss, z):
    s = loss_slope(loss, z)
    assert loss_value(loss, z) + loss_conjugate(loss, s) == pytest.approx(s * z, abs=1e-9)


@pytest.mark.parametrize("loss", Loss)
@given(z=margins, s=st.floats(-1, 0))
def test_fenchel_inequality_holds_everywhere(loss, z, s):
    assert loss_value(loss, z) + loss_conjugate(loss, s) >= s * z - 1e-9


@pytest.mark.parametrize("loss", [Loss.HINGE, Loss.LOGISTIC])
def test_conjugate_is_infinite_outside_its_domain(loss):
    assert math.isinf(loss_conjugate(loss, -1.5))
    assert math.isinf(loss_conjugate(loss, 0.5))


def test_values_written_out():
    assert loss_value(Loss.HINGE, -1.0) == 2.0
    assert loss_value(Loss.SQUARED_HINGE, -1.0) == 4.0
    assert loss_value(Loss.LOGISTIC, 0.0) == pytest.approx(math.log(2))
    assert loss_value(Loss.LOGISTIC, -800.0) == 800.0  # no overflow
    assert loss_slope(Loss.LOGISTIC, 800.0) == pytest.approx(0.0)
    assert sorted(LOSSES) == ["hinge", "logistic", "squared_hinge"]
    assert np.isfinite(loss_slope(Loss.LOGISTIC, -800.0))


def test_an_unknown_loss_raises():
    for loss in Loss:
        check_loss(int(loss))
    for number in (-1, len(Loss)):
        with pytest.raises(ValueError, match="unknown loss"):
            check_loss(number)


def test_every_loss_serves_some_procedure():
    assert {loss for name in ("descent", "dual") for loss in losses_for(name).values()} == set(Loss)
    assert losses_for("no such procedure") == {}
