"""What every system offers beside its own: vectors put together, and derivatives of what it computes by differences."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx.solver.state_history import StateHistory
from hiresx.time.ode_system import System, Vector

X, CHANGE = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.0, -4.0])


def _left_out(*_):
    raise NotImplementedError


class OnArrays(System):
    """dq/dt = t q^2, of which the first number is held at `time` by a condition."""

    stage = earlier = gather = scatter = state = accept = fill_ghosts = _left_out
    epsilon = 2.0**-53

    def vector(self) -> Vector:
        return Vector([np.zeros(3)])

    def of(self, values) -> Vector:
        return Vector([np.array(values, float)])

    def combine(self, a, x, b, y) -> None:
        y.arrays[0][:] = a * x.arrays[0] + (b * y.arrays[0] if b else 0.0)

    def dot(self, x, y) -> float:
        return float(x.arrays[0] @ y.arrays[0])

    def rates(self, x, time, into) -> None:
        into.arrays[0][:] = time * x.arrays[0] ** 2

    def impose(self, x, time) -> None:
        x.arrays[0][0] = time


def test_vectors():
    system = OnArrays()
    x, y = system.of(X), system.of(CHANGE)
    assert system.norm(x) == np.sqrt(5.25)
    system.axpy(2.0, x, y)
    np.testing.assert_array_equal(y.arrays[0], 2 * X + CHANGE)
    system.copy(x, y)
    system.scale(-3.0, y)
    np.testing.assert_array_equal(y.arrays[0], -3 * X)
    np.testing.assert_array_equal(x.arrays[0], X)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_derivatives(scale):
    """To the root of the rounding, however long what it is taken along, which stays as it is."""
    system, time = OnArrays(), 0.7
    x, change, value, found = (system.of(values) for values in (X, scale * CHANGE, np.zeros(3), np.full(3, 9.0)))
    system.rates(x, time, value)
    system.derivative(lambda at, into: system.rates(at, time, into), x, value, change, found)
    np.testing.assert_allclose(found.arrays[0], scale * 2 * time * X * CHANGE, rtol=0, atol=3e-7 * scale)
    system.copy(x, value)
    system.impose(value, time)

    def impose_at(at, into):
        system.copy(at, into)
        system.impose(into, time)

    system.derivative(impose_at, x, value, change, found)
    np.testing.assert_allclose(found.arrays[0], scale * np.array([0, *CHANGE[1:]]), rtol=0, atol=3e-7 * scale)
    np.testing.assert_array_equal(x.arrays[0], X)
    np.testing.assert_array_equal(change.arrays[0], scale * CHANGE)


def test_the_step_of_a_difference_is_that_of_the_rounding():
    """Its norm is that of x, or one, times the root of the rounding; along nothing there is none."""
    system, asked = OnArrays(), []

    def function(at, into):
        asked.append(at.arrays[0].copy())
        system.copy(at, into)

    for x in (1e-3 * X, 1e3 * X):
        system.derivative(function, system.of(x), system.of(x), system.of(CHANGE), system.vector())
        step = np.linalg.norm(asked.pop() - x)
        assert step == pytest.approx(2**-26.5 * max(np.linalg.norm(x), 1.0), rel=1e-6)
    found = system.of(X)
    system.derivative(function, system.of(X), system.of(X), system.vector(), found)
    assert not asked and not found.arrays[0].any()


def test_earlier_steps_are_taken_from_a_checkpoint_as_far_as_they_are_any():
    """The newest ones, as many as the integrator looks at."""
    block = SimpleNamespace(part=SimpleNamespace(whole=0, box=None), size=(4, 3, 2))
    vectors = SimpleNamespace(
        new=lambda: Vector([np.zeros((5, 2, 3, 4))]), fill=lambda s, array, values: np.copyto(array, values)
    )
    history = StateHistory(SimpleNamespace(states=[block]), vectors, 2)
    given = np.random.default_rng(1).random((3, 5, 2, 3, 4))
    history.read([0.1, 0.2, 0.3], lambda name, box: given[int(name.split(".")[1])])
    assert history.steps == [0.1, 0.2]
    assert np.array_equal([step.state.arrays[0] for step in history.earlier], given[:2])
    for values in (given[0, :, :-1], given[0].astype("f4")):
        with pytest.raises(ValueError, match=r"history\.0 is"):
            history.read([0.1], lambda name, box, values=values: values)
    for size in (0.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="earlier steps of"):
            history.read([size], lambda name, box: given[0])
