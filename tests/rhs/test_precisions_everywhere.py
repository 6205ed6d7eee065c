"""Precisions that keep fields in FP32, in every way in which nodes get what their stencils read, by every plan, on
parts and on ranks: what they are off FP64, or off themselves, is of the size of FP32's rounding."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scalar_cases
from precise_flows import FLOWS, Flow, waves
from ranks import run_ranks

from hiresx import Simulation
from hiresx.case import Case
from hiresx.decomposition import domain
from hiresx.decomposition.halo_bytes import halo_bytes
from hiresx.device import backend
from hiresx.device.fields import Layout
from hiresx.equations.storage import STORAGE
from hiresx.errors import HiresxError
from hiresx.estimate import memory_bytes
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import difference, random_parts

# Kernels of their own.
pytestmark = pytest.mark.slow

KINDS = ("mixed", "differences")
STEPS = 5
# Of a number kept in FP32, half a unit in the last place over the number.
ROUNDING = 2.0**-24
# What such roundings, of metrics, work arrays and the state, come to in so few steps, relative to the largest value of
# a variable.
OFF = 4 * ROUNDING


def solver(flow: Flow, where: str = "cpu", plan: str | None = None, **more) -> Solver:
    return Solver(flow.case, backend(where), grid=flow.grid, plan=plan, **more)


def states(made: Solver, flow: Flow, steps: int | None = None) -> list[np.ndarray]:
    """The conservative states of its parts after so many steps, or those of the flow, in FP64."""
    made.initialize(flow.initial) if flow.initial else made.initialize()
    for _ in range(flow.steps if steps is None else steps):
        made.step()
    return [s.from_storage(s.interior(made.backend.to_host(s.q))) for s in made.states]


@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_flow_is_that_of_fp64(name, kind, tmp_path):
    exact, flow = (FLOWS[name](precision, tmp_path) for precision in ("fp64", kind))
    before = states(solver(exact), exact, 0)
    wanted, found = (states(solver(of), of) for of in (exact, flow))
    assert difference(wanted, before) > 100 * OFF
    assert difference(found, wanted) <= OFF


@pytest.mark.parametrize("name", ["box_3d", "poles", "rotated", "patched"])
@pytest.mark.parametrize("kind", KINDS)
def test_plans_agree(name, kind, tmp_path):
    flow = FLOWS[name](kind, tmp_path)
    wanted = states(solver(flow), flow)
    plans = [("cpu", "decomposed"), ("emulated", "fused")]
    plans += [("cpu", "compact"), ("emulated", "compact")] if name == "box_3d" else []
    for where, plan in plans:
        made = solver(flow, where, plan)
        assert made.plan == plan
        assert difference(states(made, flow), wanted) <= OFF, (where, plan)


def on_parts(comm, name: str, kind: str, folder: str, transport: str) -> float:
    """How far off one whole the ranks of `comm` are, with a part of the first block on each. Collective."""
    own = Path(folder, name, transport, str(comm.rank))
    own.mkdir(parents=True)
    flow = FLOWS[name](kind, own)
    alone = solver(flow)
    expected = states(alone, flow)
    cuts = random_parts(alone.decomposition, comm.size + len(alone.states) - 1, np.random.default_rng(1))
    parts = [replace(part, rank=n % comm.size) for n, part in enumerate(cuts)]
    ground = domain(flow.case, comm, alone.grid, lambda cut: parts)
    made = solver(flow, domain=ground, transport=transport)
    sent = {there.rank: there.state_bytes + there.flux_bytes for there in made.halo.neighbours}
    estimated = halo_bytes(ground.cut, Layout(STORAGE[kind]).exchanged_bytes(viscous=True))[comm.rank]
    assert sent == {rank: count for rank, count in enumerate(estimated) if count}
    found = [np.array(q) for q in states(made, flow)]
    boxes = [(s.part.whole, s.part.box) for s in made.states]
    made.halo.close()
    off = [expected[b][:, *(slice(*r) for r in reversed(box))] for b, box in boxes]
    return difference(found, off)


def on_ranks(comm, names: list[str], kind: str, folder: str) -> dict[str, float]:
    ways = [(name, transport) for name in names for transport in ("auto", "signals")]
    return {f"{name}, {transport}": on_parts(comm, name, kind, folder, transport) for name, transport in ways}


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_are_one(kind, tmp_path):
    names = [name for name in FLOWS if name != "blast"]
    for found in run_ranks(2, on_ranks, names, kind, str(tmp_path), timeout=300):
        assert {name: value for name, value in found.items() if not value <= OFF} == {}


@pytest.mark.parametrize("plan", ["pencils", "decomposed", "compact"])
@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_as_estimated(kind, plan, tmp_path):
    flow = FLOWS["box_3d"](kind, tmp_path)
    made = solver(flow, plan=plan)
    estimated = memory_bytes(flow.case, made.grid.blocks, "cpu", plan)
    assert 0 <= made.bytes - estimated <= 8  # the one step of all points


@pytest.mark.parametrize("kind", KINDS)
def test_a_restart_goes_on_to_the_last_bit(kind, tmp_path):
    """Averages too; in another precision it is refused."""

    def case(precision: str, steps: int) -> Case:
        made = FLOWS["open_2d"](precision, tmp_path).case
        tables = made.model_dump() | {"average": {"every": 1}}
        return Case.from_dict(tables | {"time": {"steps": steps, "cfl": 0.5}, "checkpoint": {"every_steps": 3}})

    def ran(steps, **more) -> Simulation:
        simulation = Simulation(case(kind, steps), "cpu", **more)
        simulation.run(progress=False)
        return simulation

    whole = ran(6, initial=waves)
    ran(3, initial=waves, out=tmp_path / "run")
    again = ran(6, restart=tmp_path / "run")
    for one, other in zip(whole.solver.pieces(), again.solver.pieces(), strict=True):
        assert np.array_equal(np.array(one.array), np.array(other.array)), one.name
    one, other = (next(a for a in s.attachments if a.name == "averages").fields(0) for s in (whole, again))
    for way, means in one.items():
        for name, values in means.items():
            assert np.array_equal(values, other[way][name]), (way, name)
    for precision in {"fp64", *KINDS} - {kind}:
        with pytest.raises(HiresxError, match=f'scheme.precision is "?{precision}"?, in the checkpoint "?{kind}'):
            Simulation(case(precision, 6), "cpu", restart=tmp_path / "run")


def carried(precision: str, **more) -> list[np.ndarray]:
    """Two scalars and the gas, between walls and a shock."""
    spec = scalar_cases.case(boundary=scalar_cases.WALLS, reynolds=100.0, periodic=(), scheme={"precision": precision})
    made = Solver(spec, backend("cpu"), **more)
    for n, state in enumerate(made.states):
        nodes = state.block.x, state.block.y, state.block.z
        made.set_state(n, *scalar_cases.shocks(*nodes), scalar_cases.patches(*nodes))
    made.complete_state()
    for _ in range(STEPS):
        made.step()
    return [s.interior(made.backend.to_host(s.q)) for s in made.states]


def test_scalars_in_mixed():
    wanted = carried("fp64")
    for plan in ("pencils", "decomposed"):
        assert difference(carried("mixed", plan=plan), wanted) <= OFF, plan
