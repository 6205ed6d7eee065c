"""Inflows of given total pressure and temperature, outflows that keep a mass flow: ducts against isentropic flow."""

import numpy as np
import pytest
from same_everywhere import same_everywhere
from scipy.optimize import brentq

from hiresx import Case, HiresxError, Simulation
from hiresx.grid import Block, Grid

GAMMA = 1.4
TOTAL_P, TOTAL_T = 0.8, 1.1
INLET = {"faces": ["imin"], "type": "total-pressure-inflow", "total_pressure": TOTAL_P, "total_temperature": TOTAL_T}
OUTLET = {"faces": ["imax"], "type": "pressure-outflow", "relaxation": 2.0}


def isentropic(mach):
    """rho, speed and pressure of the total state at a Mach number."""
    T = TOTAL_T / (1 + 0.2 * mach**2)
    p = TOTAL_P * (T / TOTAL_T) ** 3.5
    return GAMMA * p / T, mach * np.sqrt(T), p


def sector(n, sign=1.0, angle=0.4):
    """Sector of a ring of n x n/2 nodes from radius 2 to 1; i runs inwards, or with `sign` -1 outwards."""
    r = np.linspace(2, 1, n)[:: int(sign)]
    angles = np.linspace(0, -sign * angle, n // 2 + 1)
    radius, turn = np.meshgrid(r, angles)
    nodes = radius * np.cos(turn), radius * np.sin(turn), 0 * radius
    return Grid((Block("sector", *(np.ascontiguousarray(c[None]) for c in nodes), {}),))


def radial(r, mach_at_1=0.5):
    """The isentropic flow to a sink: rho u r is the same at all radii r."""
    rho, u, _ = isentropic(mach_at_1)
    mach = [brentq(lambda m, at=at: np.prod(isentropic(m)[:2]) * at - rho * u, 1e-6, mach_at_1 + 1e-9) for at in r.flat]
    return isentropic(np.reshape(mach, r.shape))


def sink(n, outlet, end=40.0, where="cpu", comm=None, inlet=None, out=None, **tables):
    """Starts with the state at the inlet at rest."""
    case = Case.from_dict(
        {
            "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # is replaced
            "time": {"end": end, "cfl": 0.8},
            "initial": {"state": {"rho": GAMMA * TOTAL_P / TOTAL_T, "p": TOTAL_P}},
            "boundary": [inlet or INLET, OUTLET | outlet, {"faces": ["jmin", "jmax"], "type": "slip-wall"}],
        }
        | tables
    )
    return Simulation(case, where, grid=sector(n), comm=comm, out=out)


def errors(n, outlet):
    """Largest errors of rho, speed and p."""
    run = sink(n, outlet)
    run.run(progress=False)
    block = run.blocks[0]
    rho, u, v, p = (block.state(name) for name in ("rho", "u", "v", "p"))
    found = rho, np.hypot(u, v), p
    return np.array([abs(a - b).max() for a, b in zip(found, radial(np.hypot(block.x, block.y)), strict=True)])


MASS_FLUX = float(np.prod(isentropic(0.5)[:2]))
EXIT = isentropic(0.5)[2]


@pytest.mark.slow
@pytest.mark.parametrize("held", ["pressure", "mass_flux"])
def test_the_flow_to_a_sink_is_isentropic(held):
    """The exact flow to third order; mass flux and pressure at the exit are those asked for."""
    outlet = {held: {"pressure": EXIT, "mass_flux": MASS_FLUX}[held]}
    found = np.array([errors(n, outlet) for n in (13, 25)])
    order = np.log2(found[0] / found[1])
    assert (found[1] < 5e-5).all() and (order > 2.5).all(), (found, order)


def wavy(x, y, z):
    return 1 + 0.05 * np.sin(9 * x + 5 * y), 0.1, 0.02 * np.sin(10 * y), 0.0, 0.7 + 0.02 * np.cos(7 * x)


def duct(n=(24, 7, 1), inlet=None, where="cpu", comm=None, out=None, **tables):
    """A straight duct that starts with pressure lower than the total one, and waves in it."""
    span = [1.0, 0.3, 0.3 * (n[2] > 1)]
    sides = ["jmin", "jmax"] + (["kmin", "kmax"] if n[2] > 1 else [])
    case = Case.from_dict(
        {
            "grid": {"generator": "box", "n": list(n), "lower": [0, 0, 0], "upper": span},
            "time": {"steps": 30, "cfl": 0.5},
            "initial": {"state": {"rho": 1.0, "u": 0.1, "p": 0.7}},
            "boundary": [inlet or INLET, OUTLET | {"mass_flux": 0.3}, {"faces": sides, "type": "slip-wall"}],
        }
        | tables
    )
    return Simulation(case, where, comm=comm, out=out, initial=wavy)


def test_nodes_have_the_total_state_and_the_direction():
    direction = np.array([1.0, 0.4, 0.2])
    run = duct((12, 9, 7), INLET | {"direction": direction.tolist()})
    run.run(progress=False)
    block = run.blocks[0]
    u, v, w, p, T = (block.state(name)[1:-1, 1:-1, 0] for name in ("u", "v", "w", "p", "T"))
    velocity = np.stack([u, v, w])
    speed = np.linalg.norm(velocity, axis=0)
    assert speed.min() > 0.05
    np.testing.assert_allclose(
        velocity / speed, np.broadcast_to(direction[:, None, None], velocity.shape) / np.linalg.norm(direction)
    )
    np.testing.assert_allclose(T + 0.2 * speed**2, TOTAL_T, rtol=1e-12)
    np.testing.assert_allclose(p * (TOTAL_T / T) ** 3.5, TOTAL_P, rtol=1e-12)


def test_the_wave_that_leaves_is_not_changed():
    """u_n - 2c/(gamma - 1), also of an oblique inflow."""
    run = duct((12, 9, 7), INLET | {"direction": [1.0, 0.4, 0.2]})
    run.run(steps=0, progress=False)
    rho, u, v, w, p = 1.0, 0.25, 0.0, 0.0, 0.7
    run.solver.initialize(lambda x, y, z: (rho, u, v, w, p))
    found = run.solver.primitives(0)
    c = np.sqrt(GAMMA * found["p"] / found["rho"])
    np.testing.assert_allclose((found["u"] - 5 * c)[1:-1, 1:-1, 0], u - 5 * np.sqrt(GAMMA * p / rho), rtol=1e-13)
    assert abs(found["u"][3, 4, 0] - u) > 1e-3


@pytest.mark.parametrize("start", [{"u": -0.3, "p": 0.8}, {"u": 0.0, "p": 0.3}])
def test_gas_neither_leaves_nor_enters_faster_than_sound(start):
    run = duct(initial={"state": {"rho": 1.0} | start})
    run.run(steps=0, progress=False)
    run.solver.initialize(lambda x, y, z: (1.0, start["u"], 0.0, 0.0, start["p"]))
    u, T = (run.solver.primitives(0)["u"], 1.4 * run.solver.primitives(0)["p"] / run.solver.primitives(0)["rho"])
    mach = (u / np.sqrt(T))[0, :, 0]
    np.testing.assert_allclose(mach, 0.0 if start["u"] else 1.0, atol=1e-12)


def leaning(shape, lean, inlet=None, integrator="ssp_rk3", **time):
    """A duct between slip walls whose inlet leans by `lean` along y and z."""
    nk, nj, ni = shape
    z, y, x = np.meshgrid(
        *(np.linspace(0, length, n) for n, length in ((nk, 0.3), (nj, 0.4), (ni, 1.0))), indexing="ij"
    )
    grid = Grid((Block("duct", x + lean * (y + z), y, z * (nk > 1), {}),))
    sides = ["jmin", "jmax"] + (["kmin", "kmax"] if nk > 1 else [])
    case = Case.from_dict(
        {
            "grid": {"file": "none"},
            "time": {"integrator": integrator} | time,
            "initial": {"state": {"rho": 1.0, "u": 0.1, "p": 0.7}},
            "boundary": [inlet or INLET, OUTLET | {"pressure": 0.7}, {"faces": sides, "type": "slip-wall"}],
        }
    )
    run = Simulation(case, "cpu", grid=grid)
    run.run(progress=False)
    return run.blocks[0].states("rho", "u", "v", "w", "p", "T")


@pytest.mark.parametrize("inlet", [INLET, INLET | {"direction": [1.0, 0.2, -0.1]}], ids=["normal", "given"])
def test_the_flow_enters_along_slip_walls(inlet):
    """Edges and corners of the inlet have the total state, too, with a velocity that is tangential to the walls."""
    _, u, v, w, p, T = leaning((7, 7, 9), 0.3, inlet, steps=8, cfl=0.5)
    speed = np.sqrt(u * u + v * v + w * w)[:, :, 0]
    T, p = T[:, :, 0], p[:, :, 0]
    assert speed.min() > 0.0  # nowhere limited to that of gas at rest
    np.testing.assert_allclose(v[:, [0, -1]], 0.0, atol=1e-14)
    np.testing.assert_allclose(w[[0, -1]], 0.0, atol=1e-14)
    np.testing.assert_allclose(T + 0.2 * speed**2, TOTAL_T, rtol=1e-12)
    np.testing.assert_allclose(p * (TOTAL_T / T) ** 3.5, TOTAL_P, rtol=1e-12)


def test_implicit_steps_agree_with_explicit_ones_at_slip_walls():
    """The difference is an error in time, of first order, since the start does not satisfy the conditions."""
    end = 0.032
    exact = np.array(leaning((1, 9, 11), 0.3, steps=64, dt=end / 64))
    for integrator in ("bdf2", "esdirk3"):
        flows = [np.array(leaning((1, 9, 11), 0.3, None, integrator, steps=n, dt=end / n)) for n in (4, 16)]
        coarse, fine = (abs(flow - exact).max() for flow in flows)
        assert fine < coarse / 2**1.5, (integrator, coarse, fine)


def test_a_direction_that_leads_out_along_a_wall_is_refused():
    with pytest.raises(HiresxError, match="along the slip walls at x, y, z = "):
        leaning((1, 7, 9), 2.0, INLET | {"direction": [-0.1, -1.0, 0.0]}, steps=1, cfl=0.5)


@pytest.mark.slow
def test_ranks_backends_and_restart(tmp_path):
    same_everywhere(duct, tmp_path / "run", 20, ("decomposed", "compact"))


@pytest.mark.slow
def test_a_scalar_comes_in_with_the_gas():
    run = duct(inlet=INLET | {"scalars": {"dye": 0.7}}, scalar=[{"name": "dye", "initial": 0.7}])
    run.run(progress=False)
    np.testing.assert_allclose(run.blocks[0].state("dye"), 0.7, rtol=1e-11)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"boundary": [INLET | {"direction": [0.0, 0.0, 0.0]}]}, "direction = [0, 0, 0] is not a direction"),
        ({"boundary": [INLET | {"total_pressure": -1.0}]}, "total_pressure"),
        ({"boundary": [OUTLET]}, "exactly one of pressure and mass_flux"),
        ({"boundary": [OUTLET | {"pressure": 0.7, "mass_flux": 0.1}]}, "exactly one of pressure and mass_flux"),
        ({"scalar": [{"name": "dye"}]}, 'boundary.0 (total-pressure-inflow): give the value of "dye" that enters'),
    ],
)
def test_what_cannot_be_is_refused(tables, said):
    with pytest.raises(HiresxError) as error:
        duct(**tables)
    assert said in str(error.value)


def test_a_direction_out_of_the_block_is_refused_with_its_place():
    with pytest.raises(HiresxError, match=r"does not lead into the block at x, y, z = 0, 0, 0"):
        duct(inlet=INLET | {"direction": [-1.0, 0.0, 0.0]})
