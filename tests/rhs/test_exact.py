"""Closed forms against values from the literature, their own equations, and the reference files where these are."""

import importlib
import sys
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import SHARED

from hiresx import exact
from hiresx.errors import HiresxError

REFERENCE = SHARED / "reference"

# left, right, gamma, p*, u*: Toro (2009), table 4.2 (tests 1 to 5; his accuracy is 5 to 6 digits).
TORO = {
    "sod": ((1, 0, 1), (0.125, 0, 0.1), 1.4, 0.30313, 0.92745),
    "123": ((1, -2, 0.4), (1, 2, 0.4), 1.4, 0.00189, 0.0),
    "left blast": ((1, 0, 1000), (1, 0, 0.01), 1.4, 460.894, 19.5975),
    "right blast": ((1, 0, 0.01), (1, 0, 100), 1.4, 46.0950, -6.19633),
    "collision": ((5.99924, 19.5975, 460.894), (5.99242, -6.19633, 46.0950), 1.4, 1691.64, 8.68975),
}


def reference(name: str) -> np.ndarray:
    path = REFERENCE / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside the project")
    lines = [line for line in path.read_text().splitlines() if line[:1].isdigit() or line[:1] == "-"]
    return np.array([[float(value) for value in line.split(",")] for line in lines])


@pytest.mark.parametrize("name", TORO)
def test_riemann_star_state(name):
    left, right, gamma, p, u = TORO[name]
    solution = exact.Riemann(left, right, gamma)
    assert solution.p_star == pytest.approx(p, rel=4e-3 if name == "123" else 1e-5)
    assert solution.u_star == pytest.approx(u, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("name", ["sod", "lax"])
def test_riemann_against_the_reference_files(name):
    data = reference(f"exact_{name}.csv")
    states = {"sod": (TORO["sod"][:2], 0.5, 0.2), "lax": (((0.445, 0.698, 3.528), (0.5, 0, 0.571)), 0.0, 1.3)}
    (left, right), x0, t = states[name]
    rho, u, _, _, p = exact.riemann(data[:, 0], t, left=left, right=right, x0=x0, gamma=1.4)
    for ours, theirs in zip((rho, u, p), data[:, 1:].T, strict=True):
        # A node on a jump may lie on either side.
        assert np.sum(abs(ours - theirs) > 2e-6) <= 2


@given(
    st.tuples(*[st.floats(0.01, 100.0)] * 4),
    st.floats(-1.0, 1.0),
    st.floats(-1.0, 1.0),
    st.floats(1.1, 1.9),
)
def test_riemann_conserves(thermal, mach_left, mach_right, gamma):
    """The integral of the conserved variables over (-1, 1) changes by the fluxes through its ends."""
    rho_l, p_l, rho_r, p_r = thermal
    left, right = (rho_l, mach_left * sqrt(p_l / rho_l), p_l), (rho_r, mach_right * sqrt(p_r / rho_r), p_r)
    solution = exact.Riemann(left, right, gamma)
    fastest = max(abs(u) + 3 * sqrt(gamma * max(p_l, p_r) / min(rho_l, rho_r)) for _, u, _ in (left, right))
    edges = np.linspace(-fastest, fastest, 200_001)
    xi = 0.5 * (edges[1:] + edges[:-1])

    def conserved(rho, u, p):
        return np.array([rho, rho * u, p / (gamma - 1) + 0.5 * rho * u * u])

    def flux(rho, u, p):
        energy = p / (gamma - 1) + 0.5 * rho * u * u
        return np.array([rho * u, rho * u * u + p, u * (energy + p)])

    total = conserved(*solution.sample(xi)).sum(axis=1) * (edges[1] - edges[0])
    started = fastest * (conserved(*left) + conserved(*right))
    scale = fastest * np.maximum(abs(conserved(*left)), abs(conserved(*right)))
    assert np.all(abs(total - started - flux(*left) + flux(*right)) <= 2e-4 * (scale + scale.max()))


def test_riemann_is_its_own_mirror_image():
    left, right, xi = (1.0, 0.75, 1.0), (0.125, -0.2, 0.1), np.linspace(-3, 3, 101)
    rho, u, p = exact.Riemann(left, right, 1.4).sample(xi)
    mirrored = exact.Riemann((0.125, 0.2, 0.1), (1.0, -0.75, 1.0), 1.4).sample(-xi)
    np.testing.assert_allclose(mirrored, (rho, -u, p), rtol=1e-12, atol=1e-12)


def test_riemann_of_equal_states_is_that_state():
    rho, u, p = exact.Riemann((1.3, 0.4, 0.7), (1.3, 0.4, 0.7), 1.4).sample(np.linspace(-2, 2, 11))
    np.testing.assert_allclose(np.array([rho, u, p]), np.broadcast_to([[1.3], [0.4], [0.7]], (3, 11)), rtol=1e-14)


def test_riemann_refuses_vacuum_and_inadmissible_states():
    with pytest.raises(HiresxError, match="vacuum"):
        exact.Riemann((1, -10, 0.4), (1, 10, 0.4), 1.4)
    with pytest.raises(HiresxError, match="right state has rho = 1, p = -1"):
        exact.Riemann((1, 0, 1), (1, 0, -1), 1.4)


@pytest.mark.parametrize(("n", "inset"), [(20, True), (20, False), (21, False), (37, True)])
def test_jump_keeps_what_is_conserved_wherever_the_nodes_lie(n, inset):
    h = 1 / n if inset else 1 / (n - 1)
    x = (np.arange(n) + 0.5) * h if inset else np.arange(n) * h
    left, right = (1.0, 0.5, 1.0), (0.125, -0.3, 0.1)
    rho, u, p = exact.jump(x, 0.3, left, right, 1.4)
    cells = np.full(n, h)
    if not inset:
        cells[[0, -1]] *= 0.5

    def conserved(rho, u, p):
        return np.array([rho, rho * u, p / 0.4 + 0.5 * rho * u * u])

    wanted = 0.3 * conserved(*left) + 0.7 * conserved(*right)
    np.testing.assert_allclose((conserved(rho, u, p) * cells).sum(axis=1), wanted, rtol=1e-12)
    if (n, inset) == (20, True):  # half-way between two nodes: none is mixed, not even by rounding
        assert set(p) == {1.0, 0.1}


def test_blasius_constants():
    assert exact.blasius(0.0)[2] == pytest.approx(0.33205733621519630, abs=1e-10)  # Boyd, SIAM Review 50 (2008) 791
    f, fp, _ = exact.blasius(20.0)
    assert 20.0 - f == pytest.approx(1.7207876575, abs=1e-8)  # displacement
    assert fp == pytest.approx(1.0, abs=1e-11)


def test_blasius_equation_holds():
    eta, h = np.linspace(0.1, 9.0, 90), 1e-3
    f, _, fpp = exact.blasius(eta)
    third = (exact.blasius(eta + h)[2] - exact.blasius(eta - h)[2]) / (2 * h)
    np.testing.assert_allclose(third, -0.5 * f * fpp, atol=1e-6)
    with pytest.raises(HiresxError, match="eta = -1"):
        exact.blasius([-1.0, 2.0])


def test_blasius_against_the_reference_file():
    data = reference("blasius.csv")
    np.testing.assert_allclose(np.array(exact.blasius(data[:, 0])).T, data[:, 1:], atol=2e-8)


def test_blasius_layer_has_its_thickness():
    np.testing.assert_allclose(exact.blasius_layer([0.0, 0.05, 1.0], 0.05), [0.0, 0.99, 1.0], atol=1e-7)


def test_crocco_busemann():
    u = np.linspace(0, 0.5, 5)
    adiabatic = exact.crocco_busemann(u, T_wall=None, T_edge=1.0, u_edge=0.5, gamma=1.4)
    np.testing.assert_allclose(adiabatic + 0.2 * u**2, 1.05, rtol=1e-14)  # uniform total temperature
    cooled = exact.crocco_busemann(u, T_wall=0.9, T_edge=1.0, u_edge=0.5, gamma=1.4, recovery=0.85)
    np.testing.assert_allclose(cooled[[0, -1]], [0.9, 1.0], rtol=1e-14)


def test_shocks_against_the_reference_file():
    for mach, theta, beta, p, rho, behind, _ in reference("oblique_shock.csv"):
        shock = exact.oblique_shock(mach, theta, 1.4)
        np.testing.assert_allclose(
            (shock.angle, shock.pressure, shock.density, shock.mach), (beta, p, rho, behind), rtol=1e-5
        )


@pytest.mark.parametrize("gamma", [1.4, 5 / 3])
@pytest.mark.parametrize(("mach", "deflection"), [(1.5, 3.0), (2.0, 10.0), (6.0, 25.0)])
def test_oblique_shock_keeps_its_relations(mach, deflection, gamma):
    shock = exact.oblique_shock(mach, deflection, gamma)
    beta, theta = np.radians([shock.angle, deflection])
    assert np.tan(beta) / np.tan(beta - theta) == pytest.approx(shock.density, rel=1e-10)  # tangential velocity kept
    normal = exact.normal_shock(mach * np.sin(beta), gamma)
    assert shock.pressure == normal.pressure


def test_shock_limits():
    assert exact.oblique_shock(2.0, 0.0, 1.4).angle == pytest.approx(30.0)  # a Mach wave
    assert exact.normal_shock(1.0, 1.4).pressure == pytest.approx(1.0)
    with pytest.raises(HiresxError, match="detached"):
        exact.oblique_shock(2.0, 23.0, 1.4)  # 22.97 degrees is the most
    with pytest.raises(HiresxError, match=r"no shock at Mach 0\.9"):
        exact.normal_shock(0.9, 1.4)


def test_blunt_bodies_against_the_reference_file():
    for mach, *cylinder, sphere, sphere_curvature, pitot, p, rho in reference("billig_standoff.csv"):
        # The file gives four decimals.
        np.testing.assert_allclose(exact.billig_standoff(mach), cylinder, atol=5.1e-5)
        np.testing.assert_allclose(exact.billig_standoff(mach, "sphere"), (sphere, sphere_curvature), atol=5.1e-5)
        assert exact.rayleigh_pitot(mach, 1.4) == pytest.approx(pitot, rel=1e-5)
        shock = exact.normal_shock(mach, 1.4)
        np.testing.assert_allclose((shock.pressure, shock.density), (p, rho), rtol=1e-5)


@pytest.mark.parametrize(
    ("former", "home", "name"),
    [
        ("exact", "hiresx.exact", "riemann"),
        ("nozzle", "hiresx.exact.nozzle", "walled_jet"),
        ("shear_layer", "hiresx.exact.shear_layer", "growing_mode"),
    ],
)
def test_the_former_names_lead_here_and_warn(former, home, name):
    sys.modules.pop(f"hiresx.verify.{former}", None)
    with pytest.warns(FutureWarning, match=f"{home} now"):
        module = importlib.import_module(f"hiresx.verify.{former}")
    assert getattr(module, name) is getattr(importlib.import_module(home), name)
