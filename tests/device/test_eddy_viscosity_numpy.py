"""Eddy viscosities and what reads them, kernel by kernel, against NumPy written from the published formulas."""

import kernels_alone as alone
import numpy as np
import pytest

NI, NJ, NK = alone.SIZE
RE = 0.01  # 1 / Re_c
HEADERS = ("half_point.h", "metrics.h", "viscous.h", "compact.h", "timestep.h", "statistics.h")
# With a passive scalar of this Schmidt number in the flows of one model.
SCHMIDT, EDDY_SCHMIDT, WITH_SCALAR = 0.6, 0.8, "smagorinsky"
EDDY_PRANDTL, CONSTANTS = 0.45, {"smagorinsky": 0.2, "wale": 0.4, "vreman": 0.1, "sigma": 1.5}
ALONG = dict(zip(("di", "dj", "dk"), alone.STRIDES, strict=True))


def kernels(model):
    return alone.program(
        "emulated", HEADERS, viscosity="sutherland", turbulence=model, eddy_constant=CONSTANTS[model],
        eddy_prandtl=EDDY_PRANDTL, eddy_schmidt=EDDY_SCHMIDT, schmidt=(SCHMIDT,) if model == WITH_SCALAR else (),
    )  # fmt: skip


def rate(model, g):
    """mu_t / (rho delta^2) of the gradients du_i/dx_j, g (3, 3, ...)."""
    c = CONSTANTS[model]
    matrices = np.moveaxis(g, (0, 1), (-2, -1))
    strain = 0.5 * (matrices + np.swapaxes(matrices, -2, -1))
    squares = np.sum(strain**2, axis=(-2, -1))
    if model == "smagorinsky":
        return c**2 * np.sqrt(2 * squares)
    if model == "wale":
        product = matrices @ matrices
        w = 0.5 * (product + np.swapaxes(product, -2, -1))
        w = w - np.trace(w, axis1=-2, axis2=-1)[..., None, None] / 3 * np.eye(3)
        turning = np.sum(w**2, axis=(-2, -1))
        return c**2 * turning**1.5 / (squares**2.5 + turning**1.25)
    if model == "vreman":
        beta = np.swapaxes(matrices, -2, -1) @ matrices
        second = 0.5 * (np.trace(beta, axis1=-2, axis2=-1) ** 2 - np.trace(beta @ beta, axis1=-2, axis2=-1))
        return c * np.sqrt(second / np.sum(matrices**2, axis=(-2, -1)))
    s1, s2, s3 = np.moveaxis(np.linalg.svd(matrices, compute_uv=False), -1, 0)
    return c**2 * s3 * (s1 - s2) * (s2 - s3) / s1**2


def flux_of_nodes(model, s, q, m, jacobian, along=ALONG):
    """mu_t / mu_ref and the viscous fluxes of all nodes by the kernels of the usual plans."""
    count = len(q) - 1
    w, flux, eddies = np.zeros((count, *alone.SHAPE)), np.zeros((3 * count, *alone.SHAPE)), np.zeros((1, *alone.SHAPE))
    there = kernels(model)
    there.launch("viscous_primitives", tuple(reversed(alone.SHAPE)), **alone.ALL, sv=alone.POINTS, q=q, w=w)
    there.launch(
        "viscous_flux", alone.SIZE, **alone.PLACE, **along, sv=alone.POINTS, w=w, m=m, jacobian=jacobian,
        inverse_reynolds=RE, q=q, eddies=eddies, flux=flux,
    )  # fmt: skip
    return alone.inside(eddies)[0], alone.inside(flux)


@pytest.mark.slow
@pytest.mark.parametrize("model", CONSTANTS)
def test_fluxes_with_each_model(model):
    """The viscosity, the width of the filter in three and two dimensions, stresses, heat; by the compact plan too."""
    (s, q), (m, jacobian) = alone.states(), alone.geometry()
    carried = [alone.random(5).uniform(size=alone.SHAPE)] if model == WITH_SCALAR else []
    q = np.stack([*q, *(s[0] * c for c in carried)])
    count = len(q) - 1
    for missing, directions in ((None, 3), (2, 2)):
        area = m.copy()
        if missing is not None:
            area[3 * missing : 3 * missing + 3] = 0
        along = ALONG | ({} if missing is None else {"dk": 0})
        eddies, flux = flux_of_nodes(model, s, q, m, jacobian, along)
        t = alone.temperature(s)
        g = np.stack([alone.gradient(f, area, jacobian) for f in (*s[1:4], t, *carried)])
        width = alone.inside(jacobian) ** (-1 / directions)
        eddy = alone.inside(s[0]) * width**2 * rate(model, g[:3])
        slopes = alone.inside(s[0]) * width**2 * np.linalg.norm(g[:3], axis=(0, 1))
        np.testing.assert_allclose(eddies * RE, eddy, rtol=1e-8, atol=1e-12 * slopes.max())
        assert eddy.min() >= 0 and (eddy.max() > 1e-3 * slopes.max() or (model, directions) == ("sigma", 2))
        laminar = alone.sutherland(alone.inside(t)) * RE
        divergence = g[0, 0] + g[1, 1] + g[2, 2]
        tau = (laminar + eddy) * (
            g[:3] + np.swapaxes(g[:3], 0, 1) - 2 / 3 * divergence * np.eye(3)[:, :, None, None, None]
        )
        heat = (laminar / alone.PRANDTL + eddy / EDDY_PRANDTL) / (alone.GAMMA - 1) * g[3]
        energy = np.einsum("a...,ab...->b...", alone.inside(s[1:4]), tau) + heat
        areas = alone.inside(m).reshape(3, 3, NK, NJ, NI)
        wanted = [np.einsum("db...,ab...->da...", areas, tau), np.sum(areas * energy, axis=1)[:, None]]
        spread = (laminar / SCHMIDT + eddy / EDDY_SCHMIDT) * g[4:]
        wanted.append(np.einsum("db...,ab...->da...", areas, spread))
        wanted = np.concatenate(wanted, 1).reshape(3 * count, NK, NJ, NI)
        np.testing.assert_allclose(flux, wanted, rtol=0, atol=1e-9 * abs(wanted).max())
        for d in range(3):
            found, again = np.zeros((count, *alone.SHAPE)), np.zeros((1, *alone.SHAPE))
            kernels(model).launch(
                "viscous_flux_along", alone.SIZE, **alone.PLACE, **along, sv=alone.POINTS, q=q, m=m,
                through=m[3 * d : 3 * d + 3], jacobian=jacobian, inverse_reynolds=RE, eddies=again, flux=found,
            )  # fmt: skip
            np.testing.assert_allclose(
                alone.inside(found), flux[count * d : count * (d + 1)], rtol=0, atol=1e-12 * abs(wanted).max()
            )
            np.testing.assert_allclose(alone.inside(again)[0], eddies, rtol=1e-9, atol=1e-12 * slopes.max() / RE)


def of_gradient(model, gradient):
    """mu_t / (rho delta^2 |g|) in a flow with this velocity gradient everywhere, turned at random."""
    turned, _ = np.linalg.qr(alone.random(4).normal(size=(3, 3)))
    g = turned @ np.asarray(gradient, float) @ turned.T
    k, j, i = np.indices(alone.SHAPE)
    velocity = np.einsum("ab,b...->a...", g, np.stack([i, j, k]) - 8.0)
    s = np.stack([np.full(alone.SHAPE, 1.3), *velocity, np.full(alone.SHAPE, 1e4)])
    rho, kinetic = s[0], 0.5 * s[0] * np.sum(velocity**2, axis=0)
    q = np.stack([rho, *(rho * velocity), s[4] / (alone.GAMMA - 1) + kinetic, *([rho] if model == WITH_SCALAR else [])])
    m = np.ascontiguousarray(np.broadcast_to(np.eye(3).reshape(9, 1, 1, 1), (9, *alone.SHAPE)))
    eddies, _ = flux_of_nodes(model, s, q, m, np.ones(alone.SHAPE))
    return eddies * RE / 1.3 / (np.linalg.norm(g) or 1.0)


SHEAR = [[0, 2.0, 0], [0, 0, 0], [0, 0, 0]]
ROTATION = [[0, 2.0, 0], [-2.0, 0, 0], [0, 0, 0]]
PLANE_STRAIN = [[1.0, 0, 0], [0, -1.0, 0], [0, 0, 0]]
AXIAL_STRAIN = [[2.0, 0, 0], [0, -1.0, 0], [0, 0, -1.0]]


@pytest.mark.slow
def test_no_eddy_viscosity_where_the_models_promise_none():
    """To the round-off of the gradients, about 1e-14 of them here; where two singular values are equal, to its root."""
    assert of_gradient("smagorinsky", SHEAR) == pytest.approx(CONSTANTS["smagorinsky"] ** 2, rel=1e-12)
    for model in ("wale", "vreman", "sigma"):
        assert of_gradient(model, SHEAR).max() < 1e-12, model
    assert of_gradient("sigma", ROTATION).max() < 1e-12
    assert of_gradient("sigma", PLANE_STRAIN).max() < 1e-12
    assert of_gradient("sigma", AXIAL_STRAIN).max() < 1e-5
    assert of_gradient("wale", ROTATION).min() > 0.01
    assert of_gradient("vreman", PLANE_STRAIN).min() > 0.01
    for model in CONSTANTS:
        assert not of_gradient(model, np.zeros((3, 3))).any()  # nor a nan


@pytest.mark.slow
def test_time_step_and_dissipation_know_it():
    (s, q), (m, jacobian) = alone.states(), alone.geometry()
    q = np.stack([*q, s[0]])
    there, eddies = kernels("smagorinsky"), alone.random(6).uniform(0.0, 50.0, (1, *alone.SHAPE))
    flow = alone.PLACE | {"sv": alone.POINTS, "q": q, "m": m, "jacobian": jacobian}
    flow |= {"inverse_reynolds": RE, "eddies": eddies}
    laminar = max(4 / 3, alone.GAMMA / alone.PRANDTL) * alone.sutherland(alone.temperature(s))
    together = laminar + max(4 / 3, alone.GAMMA / EDDY_PRANDTL, 1 / EDDY_SCHMIDT) * eddies[0]
    rates = jacobian**2 * np.sum(m * m, axis=0) * together * RE / s[0]
    partial, dt = np.zeros((2, NJ, NI)), np.zeros(alone.SHAPE)
    column = {"columns": NJ * NI, "rows": NJ, "nodes": NK, "height": NK, "width": NI}
    there.launch("column_radii", (NI, NJ, 1), **flow, **column, active=7, partial=partial)
    np.testing.assert_allclose(partial[1], alone.inside(rates).max(axis=0), rtol=1e-13)
    there.launch("local_step", alone.SIZE, **flow, active=7, cfl=1e9, viscous_cfl=0.4, longest=np.inf, dt=dt)
    np.testing.assert_allclose(alone.inside(dt), 0.4 / alone.inside(rates), rtol=1e-13)

    weight, w = alone.random(3).uniform(0.5, 2.0, alone.SHAPE), np.stack([*s[1:4], alone.temperature(s)])
    sums = np.zeros((8, NK, NI))
    there.launch(
        "column_energy", (NI, 1, NK), **flow, **ALONG, height=NJ, nodes=NJ, rows=NK, columns=NK * NI, width=NI, w=w,
        weight=weight, partial=sums,
    )  # fmt: skip
    g = np.stack([alone.gradient(c, m, jacobian) for c in s[1:4]])
    dilatation = g[0, 0] + g[1, 1] + g[2, 2]
    stress = g + np.swapaxes(g, 0, 1) - 2 / 3 * dilatation * np.eye(3)[:, :, None, None, None]
    wanted = np.sum(alone.inside(weight * eddies[0]) * RE * np.sum(stress * g, axis=(0, 1)), axis=1)
    np.testing.assert_allclose(sums[7], wanted, rtol=0, atol=1e-12 * abs(wanted).max())
