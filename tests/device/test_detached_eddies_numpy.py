"""The lengths of detached-eddy models against NumPy written from the published formulas, and their balance in shear."""

from functools import cache

import kernels_alone as alone
import numpy as np
import pytest

RE, KAPPA, CB1, SIGMA, C_DES, FW = 0.01, 0.41, 0.1355, 2 / 3, 0.6, 0.424  # RE: 1 / Re_c; C_DES: not the usual one
CW1 = CB1 / KAPPA**2 + (1 + 0.622) / SIGMA
ALONG = dict(zip(("di", "dj", "dk"), alone.STRIDES, strict=True))
# with the formula for ft2 of the negative form, and without
MODELS = {"spalart_allmaras": False, "spalart_allmaras_negative": True}
KEPT = ("length_ratio", "resolved_share", "transported_source")


@cache
def kernels(model, length, backend="emulated"):
    return alone.program(
        backend, ("half_point.h", "metrics.h", "viscous.h"), viscosity="sutherland", turbulence=model,
        eddy_constant=C_DES, detached_eddies=length, transported_ft2=MODELS[model], schmidt=(SIGMA,),
    )  # fmt: skip


def kept(length, q, geometry, distance, spacings, model="spalart_allmaras", backend="emulated", inverse=RE):
    """What the viscous fluxes keep at the nodes: length over distance, share of resolved eddies and the source."""
    w, flux = np.zeros((5, *alone.SHAPE)), np.zeros((15, *alone.SHAPE))
    names = KEPT if length != "none" else KEPT[2:]
    found = {name: np.zeros((1, *alone.SHAPE)) for name in names}
    grid = {"grid_spacings": spacings} if length != "none" else {}
    there = kernels(model, length, backend)
    there.launch("viscous_primitives", tuple(reversed(alone.SHAPE)), **alone.ALL, sv=alone.POINTS, q=q, w=w)
    there.launch(
        "viscous_flux", alone.SIZE, **alone.PLACE, **ALONG, sv=alone.POINTS, w=w, m=geometry[0],
        jacobian=geometry[1], inverse_reynolds=inverse, q=q, wall_distance=distance, **grid, **found,
        eddies=np.zeros((1, *alone.SHAPE)), flux=flux,
    )  # fmt: skip
    return [alone.inside(found[name])[0] for name in names]


def damping(chi, ft2):
    fv1 = chi**3 / (chi**3 + 7.1**3)
    suppressed = 1.2 * np.exp(-0.5 * chi**2) if ft2 else 0 * chi
    return fv1, 1 - chi / (1 + chi * fv1), suppressed


def correction(chi, ft2):
    """Psi (Spalart et al. 2006)."""
    fv1, fv2, suppressed = damping(chi, ft2)
    above = 1 - CB1 / (CW1 * KAPPA**2 * FW) * (suppressed + (1 - suppressed) * fv2)
    with np.errstate(divide="ignore"):
        return np.sqrt(np.minimum(100, above / (fv1 * np.maximum(1e-10, 1 - suppressed))))


def ddes(nu, eddy, size, d, psi, spacings):
    r = (eddy + nu) / (size * KAPPA**2 * d**2)
    fd = 1 - np.tanh((8 * r) ** 3)
    return d - fd * np.maximum(0, d - psi * C_DES * spacings[0]), fd


def iddes(nu, eddy, size, d, psi, spacings):
    h_max, h_wn = spacings
    delta = np.minimum(np.maximum(np.maximum(0.15 * d, 0.15 * h_max), h_wn), h_max)
    turbulent, laminar = (viscosity / (KAPPA**2 * d**2 * np.maximum(size, 1e-10)) for viscosity in (eddy, nu))
    alpha = 0.25 - d / h_max
    fb = np.minimum(2 * np.exp(-9 * alpha**2), 1)
    f = np.maximum(np.tanh((8 * turbulent) ** 3), fb)
    fe1 = np.where(alpha >= 0, 2 * np.exp(-11.09 * alpha**2), 2 * np.exp(-9 * alpha**2))
    fe2 = 1 - np.maximum(np.tanh((1.63**2 * turbulent) ** 3), np.tanh((3.55**2 * laminar) ** 10))
    fe = np.maximum(fe1 - 1, 0) * psi * fe2
    assert all(some.any() and not some.all() for some in (fb < 1, f > fb, fe > 0.1, fe1 < 1, alpha >= 0))
    assert all((delta == other).any() for other in (0.15 * d, 0.15 * h_max, h_wn, h_max))
    return f * (1 + fe) * d + (1 - f) * psi * C_DES * delta, 1 - f


@pytest.mark.parametrize(("length", "model", "backend"), [
    (ddes, "spalart_allmaras", "emulated"), (iddes, "spalart_allmaras", "emulated"),
    pytest.param(ddes, "spalart_allmaras_negative", "cpu", marks=pytest.mark.slow),
    pytest.param(iddes, "spalart_allmaras_negative", "cpu", marks=pytest.mark.slow),
])  # fmt: skip
def test_lengths_and_what_the_model_makes_of_them(length, model, backend):
    """Random nodes over all branches; the sources are those of averaged flow at this distance to the wall."""
    (s, q), grid, rng = alone.states(), alone.geometry(), alone.random(7)
    carried = 10 ** rng.uniform(-1.5, 2.5, alone.SHAPE)
    if model != "spalart_allmaras":
        carried *= rng.choice((1, -1), alone.SHAPE)
    carried[3:5] = 0  # where the correction is at its bound
    distance = 10 ** rng.uniform(-1.5, 1.0, (1, *alone.SHAPE))
    spacings = 10 ** rng.uniform(-1.0, 1.0, (2, *alone.SHAPE))
    spacings[1] *= rng.uniform(0, 1, alone.SHAPE) ** 3
    distance[:, :, 4] = 0  # nodes of walls
    count = 1 if length is ddes else 2
    given = np.stack([*q, s[0] * carried]), grid, distance, np.ascontiguousarray(spacings[:count]), model, backend
    ratio, share, source = kept(length.__name__, *given)
    rho, mu, d = alone.inside(s[0]), alone.sutherland(alone.inside(alone.temperature(s))), alone.inside(distance[0])
    chi = np.maximum(alone.inside(carried), 0) * rho / mu
    size = np.sqrt(np.sum(np.stack([alone.gradient(c, *grid) for c in s[1:4]]) ** 2, axis=(0, 1)))
    psi, nu = correction(chi, MODELS[model]), RE * mu / rho
    eddy = nu * chi * damping(chi, False)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted, resolved = length(nu, eddy, size, d, psi, alone.inside(spacings))
    above = d > 0
    assert (ratio[~above] == 1).all() and (~above).any()
    np.testing.assert_allclose(ratio[above], wanted[above] / d[above], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(share[above], resolved[above], rtol=0, atol=1e-12)
    assert psi.max() == 10 and psi.min() < 1.1
    assert all(((low <= share) & (share <= high) & above).any() for low, high in ((0, 1e-9), (0.2, 0.8), (1 - 1e-9, 1)))
    there = distance.copy()
    alone.inside(there)[0][above] *= ratio[above]
    (alike,) = kept("none", given[0], grid, there, None, model, backend)
    np.testing.assert_allclose(source, alike, rtol=1e-9, atol=1e-12 * abs(alike).max())


@pytest.mark.parametrize("length", ["ddes", "iddes"])
@pytest.mark.parametrize("chi", [2.0, 5.0, 500.0])
def test_resolved_shear_has_the_viscosity_of_smagorinsky(length, chi):
    """Far from walls, where production and destruction are in balance, nu_t is A (C_DES delta)^2 S, with A = cb1 / (cw1
    fw*) = 0.0987, at low Reynolds numbers as well (Spalart et al. 2006, equation 5). fw* = 0.424 has three digits."""
    shear, rho, p = 2.0, 1.3, 1e4
    mu = alone.sutherland(alone.GAMMA * p / rho)
    eddy = chi * damping(chi, False)[0] * mu
    delta = 3.0
    inverse = rho * CB1 / (CW1 * FW) * (C_DES * delta) ** 2 * shear / eddy
    _, j, _ = np.indices(alone.SHAPE)
    s = np.stack([np.full(alone.SHAPE, rho), shear * (j - 8.0), *np.zeros((2, *alone.SHAPE)), np.full(alone.SHAPE, p)])
    carried = np.full(alone.SHAPE, chi * mu / rho)
    grid = np.ascontiguousarray(np.broadcast_to(np.eye(3).reshape(9, 1, 1, 1), (9, *alone.SHAPE))), np.ones(alone.SHAPE)
    spacings = np.stack([np.full(alone.SHAPE, delta), np.full(alone.SHAPE, delta)])[: 1 if length == "ddes" else 2]
    q = np.stack([*alone.conservative(s), rho * carried])
    far = kept(length, q, grid, np.full((1, *alone.SHAPE), 1e4), spacings, inverse=inverse)
    np.testing.assert_allclose(far[1], 1, rtol=0, atol=1e-12)
    value, reach = carried[0, 0, 0], correction(chi, False) * C_DES * delta
    production = CB1 * rho * value * (shear + inverse * value * damping(chi, False)[1] / (KAPPA * reach) ** 2)
    assert abs(far[2]).max() < 1e-3 * production
