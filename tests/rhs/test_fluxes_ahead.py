"""Viscous fluxes ahead of the inviscid terms, with ghosts of the state that come from other ranks meanwhile."""

from dataclasses import replace

import numpy as np
import pytest
import scalar_cases
from ranks import run_ranks
from vortices import taylor_green
from wholes import advanced, whole

from hiresx.case import Case, load
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend, fields
from hiresx.device import state as device_state
from hiresx.equations import equations
from hiresx.rhs.plans import PLANS, fluxes_ahead, work_variables
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import difference, random_parts

# Small, with every kind of boundary condition that the jet has.
JET = [
    "grid.points_per_height=16", "grid.boundary_layer_points=2", "grid.exit_spacing=0.05", "grid.length=4",
    "grid.half_height=2", "grid.sponge_length=2", "grid.sponge_height=2",
]  # fmt: skip
WAYS = (("cpu", "pencils"), ("emulated", "fused"))


def flow(name: str) -> Case:
    return load("planar-jet", "quick", JET) if name == "jet" else load("cone", overrides=["gas.reynolds=1e4"])


def of_ranks(comm, name):
    """Difference from one rank's answer after a step, of every way; parts cut at random, so that faces of walls and
    outflows are shared with other ranks."""
    found = {}
    for where, plan in WAYS:
        case = flow(name)
        expected = advanced(Solver(case, backend(where), plan=plan), 1)

        def parts(cut):
            some = random_parts(cut, 4, np.random.default_rng(3))
            return [type(p)(p.whole, p.box, n % comm.size) for n, p in enumerate(some)]

        solver = Solver(case, backend(where), plan=plan, domain=domain(case, comm, parts=parts))
        found[plan] = difference(advanced(solver, 1), expected)
        tasks = [task for task, _ in solver.tasks]
        assert tasks.index("exchange") < tasks.index("inviscid")
        solver.halo.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jet", "cone"])
def test_ranks_that_wait_for_ghosts_of_the_state(name):
    for found in run_ranks(2, of_ranks, name, timeout=240):
        assert {plan: value for plan, value in found.items() if not value <= 1e-13} == {}


def differences_by_sweeps(comm):
    """For every way, the directions along which sweeps of a flow in two layers across k also compute the differences of
    the viscous fluxes, and the difference from one rank's answer after a step."""
    case, found = taylor_green("grid.n=[10,10,20]"), {}
    for where, plan in WAYS:
        expected = advanced(Solver(case, backend(where), plan=plan), 1)
        solver = Solver(
            case, backend(where), plan=plan, domain=domain(case, comm, parts=lambda cut: partition(cut, comm.size))
        )
        directions = {d for sweeps in solver.terms.inviscid for d in sweeps.viscous_fluxes}
        found[plan] = directions, difference(advanced(solver, 1), expected)
        solver.halo.close()
    return found


def test_sweeps_along_lines_of_one_rank_take_the_viscous_differences_with_them():
    for found in run_ranks(2, differences_by_sweeps, timeout=240):
        assert found["pencils"][0] == {0, 1}
        assert found["fused"][0] == {0}
        assert max(value for _, value in found.values()) <= 1e-13


@pytest.mark.parametrize("plan", PLANS)
def test_what_lies_in_the_right_hand_side_takes_no_memory(plan):
    gradients = len(equations(flow("cone")).gradients)
    assert work_variables(plan, is_viscous=True) == (3 if fluxes_ahead(plan) else 4) * gradients
    assert fluxes_ahead(plan) == (plan != "decomposed")


@pytest.mark.parametrize(
    ("where", "plan"), [*(pytest.param(*way, marks=pytest.mark.slow) for way in WAYS), ("cpu", "decomposed")]
)
def test_what_lies_in_the_right_hand_side_may_as_well_lie_elsewhere(where, plan, monkeypatch):
    """The primitives of viscous fluxes, the sums that walls keep and what outflows hold of scalars: whoever gives or
    takes them does so by their declarations, so that these alone say where they lie."""
    sides = [
        *scalar_cases.WALLS[:-1],
        {"faces": ["jmax"], "type": "characteristic-outflow", "pressure": scalar_cases.P},
    ]

    def states():
        case = scalar_cases.case(boundary=sides, reynolds=50.0, periodic=(), n=(20, 18, 1))
        solver = Solver(case, backend(where), plan=plan)
        scalar_cases.start(solver, scalar_cases.shocks, scalar_cases.patches)
        for _ in range(2):
            solver.step()
        (state,) = solver.states
        return whole(solver), [np.shares_memory(state.array(name), state.r) for name in names]

    names = [field.name for field in fields.FIELDS if field.lies_in == "r"]
    assert {"primitives", "wall_sums", "held_rates"} == set(names)
    usual, shared = states()
    assert all(shared)
    apart = tuple(replace(field, lies_in=None) if field.name in names else field for field in fields.FIELDS)
    for module in (fields, device_state):
        monkeypatch.setattr(module, "FIELDS", apart)
    found, shared = states()
    assert not any(shared)
    assert all(np.array_equal(one, other) for one, other in zip(found, usual, strict=True))


def test_primitives_lie_in_the_right_hand_side_until_it_begins():
    solver = Solver(taylor_green("grid.n=[9,9,9]"), backend("emulated"), plan="fused")
    (terms,), (state,) = solver.terms.viscous, solver.states
    assert np.shares_memory(terms.w, state.r) and not np.shares_memory(terms.all_fluxes, terms.w)
    first = solver.terms.inviscid[0].early[0]
    assert first.arguments["first"] == 1 and np.shares_memory(first.arguments["r"], terms.w)
