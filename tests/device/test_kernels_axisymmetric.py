"""What the equations of axisymmetric flow have beside the plane ones, kernel by kernel, against NumPy."""

import numpy as np
import pytest
from kernels_alone import (
    GAMMA,
    PLACE,
    POINTS,
    PRANDTL,
    SHAPE,
    SIZE,
    VISCOUS,
    conservative,
    geometry,
    inside,
    program,
    random,
    states,
    sutherland,
    temperature,
)

RE = 0.01  # 1 / Re_c


def kernels(backend):
    return program(backend, VISCOUS, viscosity="sutherland")


def one_over_radius() -> np.ndarray:
    return random(31).uniform(0.5, 3.0, SHAPE)


def test_source(backend):
    """-(rho v, rho u v, rho (v^2 - w^2), 2 rho v w, (e + p) v)/y, over J; none on the axis."""
    (s, q), (_, jacobian), inverse = states(), geometry(), one_over_radius()
    inverse[..., 4] *= -1  # the axis
    r = random(32).normal(size=(5, *SHAPE))
    before = r.copy()
    kernels(backend).launch(
        "axisymmetric_source", SIZE, **PLACE, sv=POINTS, q=q, jacobian=jacobian, inverse=inverse, r=r
    )
    rho, u, v, w, p = s
    source = np.stack([rho * v, rho * u * v, rho * (v * v - w * w), 2 * rho * v * w, (q[4] + p) * v])
    wanted = before - source * np.maximum(inverse, 0) / jacobian
    np.testing.assert_allclose(inside(r), inside(wanted), rtol=1e-12, atol=1e-12)


def test_rigid_rotation_is_held_by_the_pressure(backend):
    """rho w^2/y = dp/dy: S is the plane divergence of the pressure, and nothing else."""
    rng = random(33)
    rho, u, inverse = rng.uniform(0.5, 2.0, SHAPE), rng.normal(size=SHAPE), one_over_radius()
    omega = 0.7
    still, p = np.zeros(SHAPE), 1 + 0.5 * rho * (omega / inverse) ** 2
    q, r = conservative(np.stack([rho, u, still, omega / inverse, p])), np.zeros((5, *SHAPE))
    jacobian = geometry()[1]
    kernels(backend).launch(
        "axisymmetric_source", SIZE, **PLACE, sv=POINTS, q=q, jacobian=jacobian, inverse=inverse, r=r
    )
    wanted = np.zeros((5, *SHAPE))
    wanted[2] = rho * omega**2 / inverse / jacobian  # dp/dy
    np.testing.assert_allclose(inside(r), inside(wanted), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("local", [False, True], ids=["radii", "local step"])
def test_limits_of_the_step(backend, local):
    """Of convection (gamma |v|/2 + |w|)/y, of diffusion max(4/3, gamma/Pr) mu/(Re_c rho y^2); the frequency of the
    oscillator of pressure and v, where it asks for more."""
    (s, q), (m, jacobian), inverse = states(), geometry(), one_over_radius()
    sound = np.sqrt(GAMMA * s[4] / s[0])
    flow = (0.5 * GAMMA * abs(s[2]) + abs(s[3])) * inverse
    viscous = inverse**2 * max(4 / 3, GAMMA / PRANDTL) * sutherland(temperature(s)) * RE / s[0]
    frequency = sound * np.sqrt(inverse * (abs(m[1]) + abs(m[4])) * jacobian)
    shared = PLACE | {"sv": POINTS, "q": q, "m": m, "jacobian": jacobian, "inverse": inverse, "inverse_reynolds": RE}
    if local:
        cfl, viscous_cfl = 0.5, 0.3
        dt = random(34).uniform(1e-3, 1.0, SHAPE)
        wanted = 1 / (1 / dt + flow / cfl + viscous / viscous_cfl)
        wanted = np.where(wanted * frequency > 2 * cfl, 2 * cfl / frequency, wanted)
        assert 0.05 < np.mean(wanted * frequency < 2 * cfl) < 0.95
        kernels(backend).launch("axisymmetric_step", SIZE, **shared, cfl=cfl, viscous_cfl=viscous_cfl, dt=dt)
        np.testing.assert_allclose(inside(dt), inside(wanted), rtol=1e-12)
        return
    ni, nj, _ = SIZE
    given = random(35).uniform(0.0, 2.0, (2, nj, ni))
    found = given.copy()
    kernels(backend).launch(
        "axisymmetric_radii", (ni, nj, 1), **shared, columns=ni * nj, width=ni, partial=found
    )  # fmt: skip
    flow, viscous, frequency = (inside(values)[0] for values in (flow, viscous, frequency))
    np.testing.assert_allclose(found[0], np.maximum(given[0] + flow, frequency), rtol=1e-12)
    np.testing.assert_allclose(found[1], given[1] + viscous, rtol=1e-12)
    assert 0.02 < np.mean(given[0] + flow < frequency) < 0.98
