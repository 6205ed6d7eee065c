"""Viscous terms of eighth order (`scheme.viscous_order`) beside walls and open faces, their steps, and what they
refuse. Their order is checked by the groups "viscous" and "mms" of `hiresx verify`."""

import numpy as np
import pytest
from same_everywhere import same_everywhere

from hiresx import Case, HiresxError, Simulation, load
from hiresx.device import backend
from hiresx.rhs.viscous_plan import Viscous
from hiresx.solver import Solver
from hiresx.time.integrators import viscous_limit

EIGHTH = "scheme.viscous_order=8"
P = 1 / 1.4


def channel(plan="auto", n=(20, 11, 1), **tables) -> Case:
    """A scalar, walls of two kinds, and open faces."""
    grid = {"generator": "wavy", "n": list(n), "lower": [0.0] * 3, "upper": [2.0, 1.0, 0.0]}
    entering = {"faces": ["imin"], "type": "characteristic-inflow", "state": {"rho": 1.0, "u": 0.3, "p": P}}
    case = {
        "grid": grid | {"amplitude": [0.02, 0.02, 0.0]},
        "gas": {"reynolds": 50.0},
        "scheme": {"viscous_order": 8},
        "time": {"steps": 8, "cfl": 0.4},
        "scalar": [{"name": "dye", "initial": 1.0}],
        "initial": {"state": {"rho": 1.0, "u": 0.3, "p": P}},
        "boundary": [
            entering | {"scalars": {"dye": 1.0}},
            {"faces": ["imax"], "type": "pressure-outflow", "pressure": P},
            {"faces": ["jmin"], "type": "no-slip-wall"},
            {"faces": ["jmax"], "type": "slip-wall"},
        ],
        "plan": plan,
        "checkpoint": {"every_steps": 4},
    }
    return Case.from_dict(case | tables)


def run_of(where="cpu", comm=None, plan="auto", **arguments) -> Simulation:
    return Simulation(channel(plan), where, comm=comm, **arguments)


def test_the_same_everywhere(tmp_path):
    same_everywhere(run_of, tmp_path / "run", 4, ("decomposed", "compact"))


def test_differences_that_need_ghosts_of_other_ranks_are_apart():
    solver = Solver(channel(), backend("cpu"), plan="decomposed")
    reach = solver.decomposition.stencil.difference_reach
    made = Viscous(solver.program, solver.states[0], 50.0, reach, remote=frozenset({"imax"}))
    assert [call.extent for call in made.difference.inner] == [(16, 11, 1)]
    assert [call.extent for call in made.difference.outer] == [(4, 11, 1)]


def test_waves_of_few_nodes_are_damped_more():
    """Of four nodes, a shear wave in very viscous gas: the rate over that of sixth order, (1.5238/1.4667)^2."""
    box = {"generator": "box", "n": [16, 1, 1], "lower": [0.0] * 3, "upper": [1.0, 0.0, 0.0], "periodic": ["x"]}
    left = []
    for order in (6, 8):
        case = Case.from_dict({
            "grid": box, "gas": {"reynolds": 0.01}, "scheme": {"viscous_order": order},
            "time": {"steps": 1, "dt": 1e-10},
            "boundary": [{"faces": "all", "type": "periodic"}], "initial": {"state": {"rho": 1.0, "p": P}},
        })  # fmt: skip
        run = Simulation(case, "cpu", initial=lambda x, y, z: (1.0, 0.0, 1e-3 * np.sin(8 * np.pi * x), 0.0, P))
        start = run.blocks[0].state("v").copy()
        run.run(progress=False)
        left.append(np.abs(start - run.blocks[0].state("v")).max())
    assert left[1] / left[0] == pytest.approx((1.5238095 / 1.4666667) ** 2, rel=1e-4)


@pytest.mark.parametrize(("share", "grows"), [(0.97, False), (1.04, True)])
def test_noise_grows_above_the_limit_of_the_step_and_not_below(share, grows):
    sets = ["gas.reynolds=0.1", "grid.n=[48,1,1]", "time.steps=300", EIGHTH, "time.cfl=1e6"]
    case = load("shear-wave", overrides=sets, unset=["time.end"])
    limit = viscous_limit(case)
    assert limit == pytest.approx(0.998 * 2.51533 / 2.99497, rel=1e-4)
    case = load("shear-wave", overrides=[*sets, f"time.viscous_cfl={share * limit}"], unset=["time.end"])
    chance = np.random.default_rng(2)
    run = Simulation(case, "cpu", initial=lambda x, y, z: (1 + 1e-9 * chance.normal(size=x.shape), 0.0, 0.0, 0.0, P))
    run.run(progress=False)
    assert (np.ptp(run.blocks[0].state("rho")) > 1e-7) == grows


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["sod", EIGHTH], "has no effect without gas.reynolds"),
        (["taylor-green", "scheme.viscous_order=10"], "scheme.viscous_order"),
    ],
    ids=["inviscid", "tenth"],
)
def test_what_is_refused(sets, message):
    with pytest.raises(HiresxError, match=message):
        load(sets[0], overrides=sets[1:])


def test_a_narrow_block_is_refused():
    with pytest.raises(HiresxError, match=r"and scheme\.viscous_order = 8, with 4 ghost layers, 9 or more") as error:
        Simulation(channel(n=(20, 8, 1)), "cpu")
    assert "scheme.viscous_order = 6" in error.value.hint
