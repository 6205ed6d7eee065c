"""No-slip walls of given heat flux, and those through which gas is blown or sucked."""

import numpy as np
import pytest
from heated_gaps import chebyshev
from same_everywhere import same_everywhere
from wall_sums import total
from watched_runs import ran

from hiresx import Case, HiresxError, Simulation
from hiresx.grid import Block, Grid

GAMMA, PRANDTL, P = 1.4, 0.72, 1 / 1.4
SUTHERLAND = {"law": "sutherland", "sutherland_temperature": 0.4}
CONDUCTION = 1 / (20.0 * PRANDTL * 0.4)


def gap(n, lower, upper, skew=0.0, end=4.0, where="cpu", comm=None, out=None, initial=None, **tables):
    """A gap of n nodes between two walls, periodic along x, whose lines are displaced along it by `skew` times y."""
    x, y = np.meshgrid(np.arange(n - 1) / (n - 1), np.linspace(0, 1, n))
    nodes = (np.ascontiguousarray(c[None]) for c in (x + skew * y, y, 0 * x))
    grid = Grid((Block("gap", *nodes, {}),), period=({"i": (1.0, 0.0, 0.0)},))
    wall = {"type": "no-slip-wall"}
    case = {
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x"]},
        "gas": {"reynolds": 20.0, "prandtl": PRANDTL, "viscosity": SUTHERLAND},
        "time": {"end": end, "cfl": 1.0},
        "initial": {"state": {"rho": 1.0, "p": P}},
        "boundary": [
            {"type": "periodic", "faces": ["imin", "imax"]},
            wall | {"faces": ["jmin"]} | lower,
            wall | {"faces": ["jmax"]} | upper,
        ],
    }
    given = None if "grid" in tables else grid
    return Simulation(Case.from_dict(case | tables), where, grid=given, comm=comm, out=out, initial=initial)


def law(T):
    return T**1.5 * 1.4 / (T + 0.4)


def conducting(y, flux, upper=1.0):
    """T at y with T(1) = upper and -conduction mu(T) dT/dy = flux, by Newton's method on Chebyshev points."""
    points, D = chebyshev(24)
    T = upper + flux / CONDUCTION * (1 - points)
    top = points == 1
    for _ in range(20):
        fault = np.where(top, T - upper, law(T) * (D @ T) + flux / CONDUCTION)
        slope = np.diag((law(T + 1e-6) - law(T - 1e-6)) / 2e-6 * (D @ T)) + law(T)[:, None] * D
        slope[top] = np.eye(len(T))[top]
        T = T - np.linalg.solve(slope, fault)
    return np.polyval(np.polyfit(points, T, 14), y)


@pytest.mark.slow
@pytest.mark.parametrize("skew", [0.0, 0.6], ids=["orthogonal", "oblique"])
def test_conduction_has_the_heat_flux_to_third_order(skew):
    """Sutherland's law, from the exact profile on."""
    flux = 0.06

    def error(n):
        run = gap(n, {"heat_flux": flux}, {"temperature": 1.0}, skew,
                  initial=lambda x, y, z: (1 / conducting(y, flux), 0.0, 0.0, 0.0, P))  # fmt: skip
        run.run(progress=False)
        block = run.blocks[0]
        return abs(block.state("T") - conducting(block.y, flux)).max()

    coarse, fine = error(9), error(17)
    assert np.ptp(conducting(np.linspace(0, 1, 9), flux)) > 0.2
    assert coarse < 1e-3 and np.log2(coarse / fine) > 3, (coarse, fine)


def suction(n, skew=0.0, mass=0.2, **more):
    """Couette flow with mass blown in at y = 0 and sucked out at y = 1, constant viscosity: m u' = mu u'' whatever the
    density."""
    walls = [{"temperature": 1.0, "mass_flux": mass}, {"temperature": 1.0, "mass_flux": -mass, "velocity": [0.3, 0, 0]}]

    def exact(y):
        return 0.3 * np.expm1(mass * 20 * y) / np.expm1(mass * 20)

    run = gap(n, *walls, skew, gas={"reynolds": 20.0, "prandtl": PRANDTL}, end=20.0,
              initial=lambda x, y, z: (1.0, exact(y), mass, 0.0, P), **more)  # fmt: skip
    return run, exact


@pytest.mark.slow
@pytest.mark.parametrize("skew", [0.0, 0.6], ids=["orthogonal", "oblique"])
def test_couette_flow_with_suction_is_exponential_to_third_order(skew):
    errors = []
    for n in (13, 25):
        run, exact = suction(n, skew)
        run.run(progress=False)
        block = run.blocks[0]
        mass = block.state("rho") * block.state("v")
        errors.append([abs(block.state("u") - exact(block.y)).max() / 0.3, abs(mass / 0.2 - 1).max()])
        np.testing.assert_allclose(mass[0, [0, -1]], 0.2, rtol=1e-12)
    assert (np.log2(np.divide(*errors)) > 3).all() and max(errors[1]) < 1e-3, errors


# Everything at once, with the time in it: one kernel set.
BREATHING = {"temperature": 1.1, "mass_flux": "0.05 * depth * sin(4 * t) * (1 + 0.5 * cos(6.283185307179586 * x))"}


def sheared(x, y, z):
    return 1.0 + 0 * x, 0.4, 0.0, 0.0, P


def test_a_heat_flux_of_0_is_the_adiabatic_wall():
    """The same bits, after an impulsive start, on oblique lines."""
    given, none = (
        gap(13, wall, {"temperature": 1.1}, 0.6, initial=sheared, time={"steps": 20, "cfl": 0.5})
        for wall in ({"heat_flux": 0}, {})
    )
    for run in (given, none):
        run.run(progress=False)
    for name in ("rho", "u", "v", "p"):
        np.testing.assert_array_equal(given.blocks[0].state(name), none.blocks[0].state(name))


WARMING = {"heat_flux": "0.02 * t * gamma", "normal_velocity": "-0.01 * (2 + cos(6.283185307179586 * x))"}


def breathing(upper=WARMING, **more):
    box = {"generator": "box", "n": [20, 13, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x"]}
    return gap(13, BREATHING, upper, grid=box, time={"steps": 40, "dt": 0.01}, parameters={"depth": 2.0}, **more)


@pytest.mark.slow
def test_mass_that_is_blown_in_is_there():
    """As much as the formula of the time says, integrated by SSP-RK3."""
    run = breathing(upper={})
    before = total(run.solver, 0)
    run.run(progress=False)
    blown = 0.05 * 2 * (1 - np.cos(4 * run.time)) / 4
    assert total(run.solver, 0) - before == pytest.approx(blown, abs=1e-8)


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_the_mass_that_a_vessel_gets_is_counted(where):
    """A sheared vessel with blowing through one wall between others, one of which moves. The nodes where they meet have
    the mean velocity, with which the flux was smaller by 3 %."""
    wall, n = {"type": "no-slip-wall", "temperature": 1.0}, 13
    x, y = np.meshgrid(*2 * [np.linspace(0, 1, n)])
    case = {
        "grid": {"generator": "box", "n": [n, n, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},
        "gas": {"reynolds": 20.0, "viscosity": SUTHERLAND},
        "time": {"steps": 2, "dt": 1e-3},
        "initial": {"state": {"rho": 1.0, "p": P}},
        "conservation": {"every": 1},
        "boundary": [
            wall | {"faces": ["jmin"], "mass_flux": 0.05},
            wall | {"faces": ["imin", "imax"]},
            wall | {"faces": ["jmax"], "velocity": [0.1, 0.0, 0.0]},
        ],
    }
    sheared = Grid((Block("vessel", *(np.ascontiguousarray(c[None]) for c in (x + 0.3 * y, y, 0 * x)), {}),))
    _, found = ran(Case.from_dict(case), grid=sheared, backend=where)
    counted = found["conservation"]
    np.testing.assert_allclose(counted["mass_flux_jmin"], -0.05, rtol=1e-12)
    np.testing.assert_allclose(np.diff(counted["mass"]), 0.05 * 1e-3, rtol=1e-9)
    for others in ("imin_imax", "jmax"):
        np.testing.assert_allclose(counted[f"mass_flux_{others}"], 0, rtol=0, atol=1e-15)


@pytest.mark.slow
def test_plans_ranks_backends_and_restart(tmp_path):
    alone = same_everywhere(breathing, tmp_path / "run", 25, ("decomposed", "compact"))
    assert np.ptp(alone[0]) > 1e-2


@pytest.mark.parametrize(
    ("lower", "tables", "said"),
    [
        ({"temperature": 1.0, "heat_flux": 0.1}, {}, "takes temperature or heat_flux, not both"),
        ({"temperature": 1.0, "mass_flux": 0.1, "normal_velocity": 0.1}, {}, "normal_velocity or mass_flux, not both"),
        ({"heat_flux": 0.1}, {"gas": {}}, "boundary.1.heat_flux needs heat conduction: give gas.reynolds"),
        ({"mass_flux": 0.1}, {}, "boundary.1.mass_flux: gas that is blown in needs the temperature of the wall"),
        ({"normal_velocity": "0.1 * t"}, {}, "boundary.1.normal_velocity: gas that is blown in needs the temperature"),
        (
            {"normal_velocity": "0.1 * x"},
            {},
            "normal_velocity of no-slip-wall on jmin of block 'gap': the gas that is blown in has no",
        ),
        ({"heat_flux": "0.1 * u"}, {}, 'boundary.1.heat_flux: "0.1 * u": u: it may hold x, y, z, t'),
        ({"heat_flux": "1 / 0"}, {}, 'boundary.1.heat_flux: "1 / 0" is nan everywhere'),
        ({"heat_flux": "1 / y"}, {}, "jmin of block 'gap': \"1 / y\" is inf at x, y, z = 0, 0, 0"),
        (
            {"mass_flux": -0.1},
            {"scalar": [{"name": "dye"}]},
            "boundary.1.mass_flux: not supported with passive scalars",
        ),
    ],
)
def test_what_cannot_be_is_refused(lower, tables, said):
    with pytest.raises(HiresxError) as error:
        gap(9, lower, {}, **tables)
    assert said in str(error.value)
