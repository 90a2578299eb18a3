import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loclin.engine.dual_kernels import conjugate_at
from loclin.engine.jit import jit
from loclin.engine.losses import (
    HINGE,
    LOGISTIC,
    LOSSES,
    SQUARED_HINGE,
    Loss,
    check_loss,
    is_hinge,
    known_loss,
    loss_of,
    loss_slope,
    loss_value,
    losses_for,
)
from tests.extending.modified_huber import MODIFIED_HUBER

ALL = [*LOSSES.values(), MODIFIED_HUBER]
DUAL = [loss for loss in ALL if loss.dual is not None]


@jit
def compiled_scalars(loss, z, out):
    check_loss(loss)
    out[0], out[1], out[2] = loss_value(loss, z), loss_slope(loss, z), is_hinge(loss)


margins = st.floats(-30, 30)


@pytest.mark.parametrize("loss", ALL, ids=repr)
@given(z=margins)
def test_slope_is_the_derivative(loss, z):
    h = 1e-6
    if loss is HINGE and abs(z - 1) < 2 * h:
        return
    known = loss.compiled
    numeric = (loss_value(known, z + h) - loss_value(known, z - h)) / (2 * h)
    assert loss_slope(known, z) == pytest.approx(numeric, abs=1e-4)


@pytest.mark.parametrize("loss", DUAL, ids=repr)
@given(z=margins)
def test_fenchel_equality_holds_at_the_slope(loss, z):
    s = loss_slope(loss.compiled, z)
    both = loss_value(loss.compiled, z) + conjugate_at(loss.dual, -s)
    assert both == pytest.approx(s * z, abs=1e-9)


@pytest.mark.parametrize("loss", DUAL, ids=repr)
@given(z=margins, a=st.floats(0, 1))
def test_fenchel_inequality_holds_everywhere(loss, z, a):
    assert loss_value(loss.compiled, z) + conjugate_at(loss.dual, a) >= -a * z - 1e-9


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_compiled_loops_take_the_same_loss(loss):
    found = np.empty(3)
    for z in (-3.0, -0.5, 0.0, 1.0, 7.0):
        compiled_scalars(loss.compiled, z, found)
        scalars = loss_value, loss_slope, lambda known, z: is_hinge(known)
        np.testing.assert_allclose(found, [one(loss.compiled, z) for one in scalars])


def test_values_written_out():
    assert loss_value(HINGE.compiled, -1.0) == 2.0
    assert loss_value(SQUARED_HINGE.compiled, -1.0) == 4.0
    assert loss_value(LOGISTIC.compiled, 0.0) == pytest.approx(math.log(2))
    assert loss_value(LOGISTIC.compiled, -800.0) == 800.0  # no overflow
    assert loss_slope(LOGISTIC.compiled, 800.0) == pytest.approx(0.0)
    assert sorted(LOSSES) == ["hinge", "logistic", "squared_hinge"]
    assert np.isfinite(loss_slope(LOGISTIC.compiled, -800.0))


def test_an_unknown_loss_raises():
    for loss in ALL:
        check_loss(loss.compiled)
        assert known_loss(loss.compiled) is loss_of(loss)
    for number in (-1, len(LOSSES)):
        with pytest.raises(ValueError, match="unknown loss"):
            check_loss(number)
        with pytest.raises(ValueError, match="unknown loss"):
            compiled_scalars(number, 0.0, np.empty(3))


def test_every_loss_serves_some_procedure():
    serving = [loss.name for name in ("descent", "dual") for loss in losses_for(name).values()]
    assert set(serving) == set(LOSSES)
    assert losses_for("no such procedure") == {}
    assert all(isinstance(loss, Loss) for loss in ALL)
