"""Flows on public grids that are compared: what they are compared with, and one on a grid made here."""

from types import SimpleNamespace

import numpy as np
import pytest
from public_flows import ANGLE, GAMMA, INLET, MACH, P, _airfoil, _mach_of, _nozzle, _panel_lift, compared

from hiresx.case import Case
from hiresx.grid import Block, Grid


def profile(thickness: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of a NACA profile clockwise from its closed trailing edge."""
    t = np.linspace(0, 2 * np.pi, n + 1)
    x = 0.5 * (1 + np.cos(t))
    y = 5 * thickness * (0.2969 * np.sqrt(x) - 0.126 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1036 * x**4)
    return x, np.where(t < np.pi, -y, y)


def test_lift_by_panels():
    """A thin profile has that of a plate; that of NACA 0012 grows by about 1 + 0.77 t/c (Abbott & von Doenhoff)."""
    plate = 2 * np.pi * np.sin(ANGLE)
    assert _panel_lift(*profile(0.01, 200)) == pytest.approx(1.0077 * plate, rel=0.01)
    assert _panel_lift(*profile(0.12, 200)) == pytest.approx(1.0924 * plate, rel=0.015)


def test_mach_number_of_an_area_ratio():
    """NACA report 1135 (1953), table of isentropic flow."""
    assert _mach_of(1.6875, 1.0, 4.0) == pytest.approx(2.0, abs=1e-4)
    assert _mach_of(1.3398, 0.1, 1.0) == pytest.approx(0.5, abs=1e-4)


def test_a_ramp_is_compared_with_its_oblique_shock():
    j, i = np.meshgrid(np.linspace(0, 1, 21), np.linspace(-0.5, 1.5, 33), indexing="ij")
    floor = np.maximum(i, 0) * np.tan(np.radians(10))
    y = floor + j * (2 - floor)
    walls = {"inviscid-wall": (("jmin", ((0, 33), (0, 1), (0, 1))), ("jmax", ((0, 33), (20, 21), (0, 1))))}
    first, last = (("imin", ((0, 1), (0, 21), (0, 1))),), (("imax", ((32, 33), (0, 21), (0, 1))),)
    ends = {"free-stream": first, "extrapolation": last}
    block = Block("ramp", i[None], y[None], np.zeros((1, *i.shape)), walls | ends)
    state = {"rho": 1.0, "p": 0.7}
    boundary = [{"faces": "all", "range": name, "type": "slip-wall"} for name in walls | ends]
    tables = {"grid": {"file": "none"}, "time": {"steps": 1}, "initial": {"state": state}, "boundary": boundary}
    found = compared(Case.from_dict(tables), Grid((block,)), "ramp")
    ((what, pressure, wanted),) = found["rows"]
    assert "10.00 degrees" in what and wanted == pytest.approx(1.7066, rel=1e-3)
    assert pressure == pytest.approx(wanted, rel=0.01) and found["change"] < 1e-3


def test_a_nozzle_is_compared_with_its_areas():
    """The flow of one dimension through them, but for the two nodes at each end, which do not count."""
    mach = np.concatenate([np.linspace(INLET, 1, 21), np.linspace(1, 2, 21)[1:]])
    t = 1 + 0.2 * mach**2
    height, cooler = (t / 1.2) ** 3 / mach, (1 + 0.2 * INLET**2) / t
    rho, p = cooler**2.5, P * cooler**3.5
    rho, x = rho * np.r_[0.5, 2, np.ones(37), 0.5, 2], np.linspace(0, 3, 41)
    flow = {"rho": rho, "u": mach * np.sqrt(GAMMA * p / rho), "v": 0 * x, "p": p}
    wide = np.linspace(-0.5, 0.5, 9)[:, None]
    block = SimpleNamespace(
        x=(x + 0 * wide)[None], y=(height * wide)[None], state=lambda name: (flow[name] + 0 * wide)[None]
    )
    rows = _nozzle(SimpleNamespace(blocks=[block]))
    assert [found for _, found, _ in rows] == pytest.approx([wanted for *_, wanted in rows], rel=1e-9)
    assert rows[1][2] == pytest.approx(mach[-3])


def test_forces_on_a_profile():
    """A pressure that grows with y pushes down by its gradient times the area, as a fluid lifts what floats in it; one
    that grows with x pushes upstream."""
    x, y = profile(0.12, 200)
    area = abs(np.sum(0.5 * (x[1:] + x[:-1]) * np.diff(y)))
    q, c, s = 0.5 * MACH**2, np.cos(ANGLE), np.sin(ANGLE)
    for gradient, force in (((0.0, 0.1), (0.0, -0.1)), ((0.2, 0.0), (-0.2, 0.0))):
        fields = [np.concatenate([[1.5], f, [1.5]])[None, None] for f in (x, y)]  # the wake on both sides
        p = P + gradient[0] * fields[0] + gradient[1] * fields[1]
        block = SimpleNamespace(x=fields[0], y=fields[1], state=lambda name, p=p: p)
        (_, lift, wanted), (_, drag, nothing) = _airfoil(SimpleNamespace(blocks=[block]))
        fx, fy = (part * area / q for part in force)
        assert lift == pytest.approx(fy * c - fx * s, rel=1e-3) and drag == pytest.approx(fx * c + fy * s, rel=1e-3)
        assert wanted == pytest.approx(_panel_lift(x, y) / np.sqrt(1 - MACH**2)) and nothing == 0.0
