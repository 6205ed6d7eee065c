"""Differences on curvilinear grids and the variables derived with them."""

import math

import numpy as np
import pytest
from flow_blocks import state, wavy

from hiresx.errors import HiresxError
from hiresx.output.fields import derived
from hiresx.output.fields.differences import Metrics, derivative


def flow(coordinates, **values):
    return derived.FlowState(*coordinates, state(coordinates[0].shape, **values), gamma=1.4)


# Differences ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("n", [7, 8, 12])
def test_derivative_is_exact_for_polynomials_of_degree_six_up_to_the_faces(axis, n):
    s = np.arange(n) - n / 2
    shape = [2, 2, 2]
    shape[axis] = n
    f = np.broadcast_to(np.expand_dims((0.5 * s**6 - s**3 + 2 * s), [d for d in range(3) if d != axis]), shape)
    expected = np.broadcast_to(np.expand_dims(3 * s**5 - 3 * s**2 + 2, [d for d in range(3) if d != axis]), shape)
    np.testing.assert_allclose(derivative(f, axis), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_derivative_refuses_too_few_nodes():
    with pytest.raises(ValueError, match="7 nodes, there are 6"):
        derivative(np.zeros((1, 6, 9)), 1)


@pytest.mark.parametrize("shape", [(1, 1, 20), (1, 14, 20), (9, 14, 20)])
def test_gradient_of_a_linear_function_is_exact_on_a_wavy_grid(shape):
    x, y, z = wavy(*shape)
    gradient = Metrics(x, y, z).gradient(2 * x - 3 * y * (shape[1] > 1) + z * (shape[0] > 1))
    for component, expected in zip(gradient, (2, -3 * (shape[1] > 1), float(shape[0] > 1)), strict=True):
        np.testing.assert_allclose(component, expected, rtol=0, atol=1e-11)


def test_gradient_has_sixth_order_on_a_wavy_grid():
    errors = []
    for n in (40, 80):
        x, y, z = wavy(1, n + 1, n + 1)
        f_x, f_y, f_z = Metrics(x, y, z).gradient(np.sin(3 * x) * np.cos(2 * y))
        errors.append(
            np.abs(f_x - 3 * np.cos(3 * x) * np.cos(2 * y)).mean()
            + np.abs(f_y + 2 * np.sin(3 * x) * np.sin(2 * y)).mean()
        )
        assert not f_z.any()
    assert math.log2(errors[0] / errors[1]) > 5.7


# Derived variables ----------------------------------------------------------------------------------------------------


def test_ambient_gas():
    values = derived.evaluate(derived.VARIABLES, flow(wavy(7, 8, 9)))
    expected = {"rho": 1, "p": 1 / 1.4, "T": 1, "sound_speed": 1, "total_enthalpy": 2.5, "total_pressure": 1 / 1.4}
    for name, value in values.items():
        assert value.shape == (7, 8, 9)
        np.testing.assert_allclose(value, expected.get(name, 0.0), rtol=0, atol=1e-11, err_msg=name)


def test_local_variables_of_a_uniform_stream():
    rho, u, v, w, p = 2.0, 1.0, 2.0, -2.0, 3.0
    values = derived.evaluate(derived.VARIABLES, flow(wavy(1, 8, 9), rho=rho, u=u, v=v, w=w, p=p))
    temperature = 1.4 * p / rho
    mach = 3 / math.sqrt(temperature)
    expected = {
        "T": temperature,
        "speed": 3.0,
        "mach": mach,
        "sound_speed": math.sqrt(temperature),
        "entropy": math.log(1.4 * p / rho**1.4),
        "total_enthalpy": 3.5 * p / rho + 4.5,
        "total_pressure": p * (1 + 0.2 * mach**2) ** 3.5,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-13, err_msg=name)
    for name, variable in derived.VARIABLES.items():
        if not variable.local:
            np.testing.assert_allclose(values[name], 0, atol=1e-10, err_msg=name)


def test_gradients_of_a_linear_velocity_field():
    x, y, z = wavy(9, 10, 11)
    a = np.array([[0.3, -1.0, 0.2], [0.7, 0.5, -0.4], [1.1, 0.6, -0.1]])
    u, v, w = (row[0] * x + row[1] * y + row[2] * z for row in a)
    values = derived.evaluate(derived.VARIABLES, flow((x, y, z), u=u, v=v, w=w, rho=1 + 0.1 * x + 0.2 * y - 0.2 * z))
    omega = [a[2, 1] - a[1, 2], a[0, 2] - a[2, 0], a[1, 0] - a[0, 1]]
    s, r = (a + a.T) / 2, (a - a.T) / 2
    expected = {f"vorticity_{axis}": value for axis, value in zip("xyz", omega, strict=True)} | {
        "vorticity": np.linalg.norm(omega),
        "dilatation": 0.7,
        "schlieren": 0.3,
        "q_criterion": ((r * r).sum() - (s * s).sum()) / 2,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=0, atol=1e-10, err_msg=name)


def test_vorticity_has_a_sign_in_two_dimensions():
    x, y, z = wavy(1, 10, 11)
    np.testing.assert_allclose(derived.evaluate(["vorticity"], flow((x, y, z), u=y))["vorticity"], -1, atol=1e-11)


def test_inadmissible_states_give_nan_without_a_warning():
    values = derived.evaluate(["entropy", "mach"], flow(wavy(1, 1, 9), u=1.0, p=-1.0))
    assert np.isnan(values["entropy"]).all()
    assert np.isnan(values["mach"]).all()


def test_unknown_variable_gets_did_you_mean():
    with pytest.raises(HiresxError) as caught:
        derived.check(["rho", "schliren"])
    assert caught.value.message == 'output.variables: there is no variable "schliren"'
    assert 'did you mean "schlieren"?' in caught.value.hint
