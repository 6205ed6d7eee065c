"""The grid about a wing: planform, section, cut, branch line, and a uniform flow on it; bad tables are named."""

import numpy as np
import pytest

from hiresx import Simulation, kernels, load
from hiresx.case import Case
from hiresx.case.wing import WingCH
from hiresx.errors import HiresxError
from hiresx.grid import build, check_jacobian
from hiresx.grid.generators.wing_c_h import WingSection

KEYS = {
    "semi_span": 1.48442735, "taper": 0.562, "sweep": 30.0, "tip": 0.04, "n_airfoil": 32, "n_wake": 8, "n_normal": 13,
    "cells": [10, 2, 6], "stretching": 1.6, "wake": 10.0, "far_field": 10.0, "first_spacing": 0.024,
    "trailing_edge_spacing": 0.04,
}  # fmt: skip
# Of the cells along the span, up to the last whole section and to the sharp edge.
WHOLE, EDGE = 10, 12
STREAM = {"rho": 1.0, "u": 0.5, "v": 0.2, "w": -0.3, "p": 1 / 1.4}


@pytest.fixture(scope="module")
def grid():
    return build(WingCH(**KEYS))


def test_the_wing_has_its_planform_and_its_section(grid):
    (block,) = grid.blocks
    check_jacobian(grid)
    assert WingCH(**KEYS).nodes == block.x.size
    x, y, z = (c[: WHOLE + 1, 0, 8:-8] for c in block.coordinates)
    assert (z[0] == 0).all() and z[-1, 0] == pytest.approx(1.48442735)
    chord = 1 - (1 - 0.562) * z[:, 0] / 1.48442735
    leading = np.tan(np.radians(30)) * z[:, 0]
    np.testing.assert_allclose(x[:, 0], leading + chord, rtol=1e-12)
    np.testing.assert_array_equal(x[:, 0], x[:, -1])
    # Ordinates along the stream, of AGARD AR-138 B1, less the slope that closes the edge.
    along, across = (x - leading[:, None]) / chord[:, None], y / chord[:, None]
    for place, half in ((0.0971, 0.0359), (0.3761, 0.0489), (0.7470, 0.0287), (0.9018, 0.0128)):
        for k in (0, WHOLE):
            upper = slice(16, None)
            assert np.interp(place, along[k, upper], across[k, upper]) == pytest.approx(
                half - 0.00071 * place, abs=5e-4
            )
    np.testing.assert_allclose(across, -across[:, ::-1], atol=1e-15)
    assert (block.y[EDGE:, 0] == 0).all() and (block.y[EDGE - 1, 0, 9:-9] != 0).all()


def test_the_edge_of_a_cap_is_that_of_a_body_of_revolution():
    """In plan view; less than it where the section is thin, and not at all at the trailing edge. The leading edge of
    the cut beyond it is not swept."""
    span, edge = KEYS["semi_span"], 16
    made = build(WingCH(**KEYS | {"cap": True, "cells": [12, 4, 6]}))
    check_jacobian(made)
    (block,) = made.blocks
    x, _, z = (c[edge, 0, 24:-8] for c in block.coordinates)
    along = (x - x[0]) / (x[-1] - x[0])
    for place, half, least in ((0.2187, 0.0449, 0.95), (0.3761, 0.0487, 0.95), (0.8638, 0.0165, 0.75)):
        reach = (np.interp(place, along, z) - span) / 0.562
        assert least * half < reach < half
    assert z[-1] == pytest.approx(span, abs=1e-12) and (block.z[0] == 0).all() and (np.diff(block.z, axis=0) > 0).all()
    # The plane before the edge, at the thickest place.
    half, length = block.y[0, 0, 36] * 0.562, np.hypot(z[12] - span, 0.04)
    inside = 1 - (z[12] - block.z[edge - 1, 0, 36]) / length
    share = (z[12] - span) / length
    expected = share * np.sqrt(1 - inside**2) + (1 - share) * (1 - inside**4) ** 2
    assert block.y[edge - 1, 0, 36] == pytest.approx(expected * half, rel=0.02)
    straight = block.z[:, 0, 24] > span + 0.04
    assert straight.sum() >= 5 and np.ptp(block.x[straight, 0, 24]) < 1e-12


def test_the_cut_goes_on_beyond_the_tip(grid):
    (block,) = grid.blocks
    covered = np.zeros((block.size[2], block.size[0]), int)
    for connection in grid.connections:
        (i0, i1), _, (k0, k1) = connection.range
        at = np.stack(np.meshgrid(np.arange(i0, i1), [0], np.arange(k0, k1), indexing="ij"))
        np.testing.assert_allclose(block.node(*at), block.node(*connection.donors(at)), atol=1e-14)
        covered[k0:k1, i0:i1] += 1
    wing = np.zeros_like(covered)
    wing[: EDGE + 1, 8:-8] = 1
    np.testing.assert_array_equal(covered + wing, 1)
    assert block.regions["wing"] == (("jmin", ((8, 40), (0, 1), (0, EDGE + 1))),)
    # The line about which nodes turn by half a revolution lies in the middle between two nodes.
    assert block.x[-1, 0, 23] == block.x[-1, 0, 24] and block.x[-1, 0, 22] > block.x[-1, 0, 23]


OTHERS = [pytest.param(flux, marks=pytest.mark.slow) for flux in kernels.choices("flux") if flux != "hllc"]


@pytest.mark.parametrize("flux", ["hllc", *OTHERS])
def test_a_uniform_flow_stays_over_the_branch_line(grid, flux):
    """With 1/area of the face that has none the flow is not a number after one step."""
    tables = load("onera-m6").model_dump(mode="json", exclude_none=True)
    far_field = [{"faces": "all", "type": "far-field", "state": STREAM}]
    case = {
        "grid": {"file": "none"}, "initial": {"state": STREAM}, "boundary": far_field, "gas": tables["gas"],
        "scheme": {"flux": flux}, "time": {"local": True, "cfl": 0.5, "steps": 2},
    }  # fmt: skip
    for made in (grid, build(WingCH(**KEYS | {"cap": True}))):
        simulation = Simulation(Case.from_dict(case), backend="cpu", grid=made)
        simulation.solver.step()
        (block,) = simulation.blocks
        for name, value in STREAM.items():
            assert abs(block.state(name) - value).max() < 1e-13


def test_the_first_distance_grows_behind_the_trailing_edge_and_beyond_the_tip():
    """And on the wing nothing changes."""
    thin = KEYS | {"n_normal": 33, "first_spacing": 1e-5}
    grids = [build(WingCH(**thin | more)) for more in ({}, {"first_spacing_doubles": 0.5})]
    check_jacobian(grids[1])
    before, wanted = (np.stack(grid.blocks[0].coordinates)[:, :, :2] for grid in grids)
    ratio = np.linalg.norm(np.diff(wanted, axis=2), axis=0) / np.linalg.norm(np.diff(before, axis=2), axis=0)
    np.testing.assert_allclose(ratio[: EDGE - 2, 0, 8:-8], 1, rtol=1e-9)
    x, _, z = before[:, :, 0, :8]
    # In the plane of the root, and in those beyond the tip, where two cells have the length 0.04.
    np.testing.assert_allclose(ratio[0, 0, :8], 1 + ((x[0] - 1) / 0.5) ** 2, rtol=1e-5)
    for k in (EDGE + 1, -1):
        beyond = (z[k, 0] - 1.48442735 - 0.04) / 0.02
        np.testing.assert_allclose(ratio[k, 0, 10:22], np.hypot(1, beyond), rtol=1e-2)


def test_the_turbulent_presets_have_the_wing_whose_section_goes_on_to_a_sharp_edge():
    """That of NASA's Turbulence Modeling Resource, in metres. Half thicknesses of the model along the stream (AGARD
    AR-138, B1) are reproduced with its longer chord; those of the closed section are less by up to 0.0007."""
    case, root, model = load("onera-m6", preset="sa"), 0.810491, 0.8059
    (force,) = case.force
    assert force.coefficients.area * root**2 == pytest.approx(0.7575, rel=1e-5)
    assert case.grid.semi_span * root == pytest.approx(1.1963, rel=1e-5)
    assert case.grid.taper * root == pytest.approx(0.455914, rel=1e-5)
    places = np.array([0.0793, 0.2187, 0.3761, 0.5282, 0.6753, 0.8175, 0.9363])
    half = (root / model) * WingSection(1.0).outline(np.sqrt(places * model / root)).imag
    wanted = [0.03384, 0.04505, 0.04893, 0.04502, 0.03495, 0.02198, 0.00858]
    np.testing.assert_allclose(half, wanted, rtol=0, atol=6e-5)


def test_a_table_that_makes_no_wing_is_refused():
    with pytest.raises(ValueError, match="2 or more over the tip"):
        WingCH(**KEYS | {"cells": [10, 1, 6]})
    with pytest.raises(ValueError, match="n_airfoil"):
        WingCH(**KEYS | {"n_airfoil": 33})
    with pytest.raises(HiresxError, match=r"too few on the wing") as error:
        build(WingCH(**KEYS | {"stretching": 1.05}))
    assert "grid.stretching" in error.value.hint
    with pytest.raises(HiresxError, match=r"longer than grid\.semi_span"):
        build(WingCH(**KEYS | {"tip": 0.4}))
