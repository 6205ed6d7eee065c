"""The compact plan against the others: the same terms, direction by direction, in less memory."""

from dataclasses import dataclass

import numpy as np
import pytest
from ranks import run_ranks
from scalar_cases import NAMES, SCHMIDT
from vortices import taylor_green

from hiresx import Case, Simulation
from hiresx.bench import rhs
from hiresx.case import load
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.errors import HiresxError
from hiresx.estimate import estimate, memory_bytes
from hiresx.grid import Block, Grid
from hiresx.rhs.compact import obstacle
from hiresx.solver import Solver
from hiresx.verify.groups.kernels import flow_with_jump

# Four blocks, with walls, outflows, sponges and planes of symmetry.
JET = [
    "grid.points_per_height=16", "grid.boundary_layer_points=2", "grid.exit_spacing=0.05", "grid.length=4",
    "grid.half_height=2", "grid.sponge_length=2", "grid.sponge_height=2", "time.steps=1",
]  # fmt: skip
OWN = {"cpu": "pencils", "emulated": "decomposed"}


def rates(case, where: str, name: str, **more) -> list[np.ndarray]:
    """r of every block, from a flow with a jump."""
    solver = Solver(case, backend(where), plan=name, **more)
    solver.initialize(flow_with_jump(1.5))
    solver.right_hand_side()
    solver.right_hand_side()  # ghosts of the inviscid terms are made anew
    return [s.interior(solver.backend.to_host(s.r)).astype(float) for s in solver.states]


def cases():
    yield "periodic", rhs.flow(14, True, "fp64"), 1e-13
    yield "fp32", rhs.flow(14, True, "fp32"), 3e-5
    yield "walls", load("couette", overrides=["grid.n=[9,17,1]"]), 1e-13
    yield "jet", load("planar-jet", "quick", JET), 1e-13
    # Two, so that other tests have the same kernels (scalar_cases.py).
    carried = ", ".join(f'{{name="{name}",schmidt={SCHMIDT[name]},initial=1.0}}' for name in NAMES)
    wall = 'boundary.1={faces=["jmin"],type="modelled-wall"}'
    yield "scalar", load("couette", overrides=["grid.n=[9,17,1]", f"scalar=[{carried}]", wall]), 1e-13


@pytest.mark.parametrize("where", OWN)
@pytest.mark.parametrize(
    ("case", "within"),
    [
        pytest.param(*c, id=name, marks=() if name in ("walls", "jet", "scalar") else pytest.mark.slow)
        for name, *c in cases()
    ],
)
def test_the_right_hand_side_is_that_of_the_other_plans(case, within, where):
    for one, other in zip(rates(case, where, OWN[where]), rates(case, where, "compact"), strict=True):
        assert np.abs(one).max() > 0
        assert np.abs(one - other).max() <= within * np.abs(one).max()


def test_the_first_step_between_curved_walls_with_a_wall_model():
    """With an eddy viscosity the rates are computed before it, which must leave the ghosts of mirroring walls."""
    j, i = np.meshgrid(np.linspace(0, 1, 17), np.linspace(0, 1, 19), indexing="ij")
    block = Block("bent", i[None], (j + 0.1 * np.sin(2 * i))[None], 0 * i[None])
    tables = {
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "gas": {"reynolds": 300.0}, "turbulence": {"model": "smagorinsky"}, "time": {"steps": 1, "dt": 1e-3},
        "boundary": [{"faces": ["jmin", "jmax"], "type": "modelled-wall"}, {"faces": "all", "type": "slip-wall"}],
    }  # fmt: skip
    found = []
    for plan in ("pencils", "compact"):
        run = Simulation(Case.from_dict(tables | {"plan": plan}), "cpu", grid=Grid([block]), initial=bent_flow)
        run.run(progress=False)
        found.append([run.blocks[0].state(name) for name in ("rho", "u", "v", "p")])
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-13)


def bent_flow(x, y, z):
    return 1 + 0.05 * np.sin(2 * x + y), 0.25 + 0.03 * np.sin(3 * y), 0.02 * np.cos(2 * x), 0.0, 1 / 1.4 + 0.02 * x * y


def test_a_flow_without_viscosity_knows_no_difference():
    case = rhs.flow(12, False, "fp64")
    (one,), (other,) = rates(case, "cpu", "pencils"), rates(case, "cpu", "compact")
    assert np.array_equal(one, other)


def test_blocks_that_are_cut_give_what_the_whole_one_gives():
    case = rhs.flow(16, True, "fp64")
    (whole,) = rates(case, "cpu", "compact")

    def halves(decomposition):
        return [type(p)(p.whole, p.box, 0) for p in partition(decomposition, ranks=2)]

    found = np.zeros_like(whole)
    ground = domain(case, parts=halves)
    for part, piece in zip(ground.cut.parts, rates(case, "cpu", "compact", domain=ground), strict=True):
        found[(slice(None), *part.slices)] = piece
    assert len(ground.cut.parts) == 2
    assert np.abs(found - whole).max() <= 1e-13 * np.abs(whole).max()


def of_ranks(comm, name):
    case = rhs.flow(14, True, "fp64")
    ground = domain(case, comm, parts=lambda decomposition: partition(decomposition, ranks=comm.size))
    solver = Solver(case, backend("cpu"), plan=name, domain=ground)
    solver.initialize()
    for _ in range(2):
        solver.step()
    return [(s.part.slices, s.interior(solver.backend.to_host(s.q))) for s in solver.states]


@pytest.mark.slow
def test_two_ranks():
    solver = Solver(rhs.flow(14, True, "fp64"), backend("cpu"), plan="pencils")
    solver.initialize()
    for _ in range(2):
        solver.step()
    whole = solver.states[0].interior(solver.backend.to_host(solver.states[0].q))
    for slices, q in [piece for rank in run_ranks(2, of_ranks, "compact") for piece in rank]:
        assert np.abs(q - whole[(slice(None), *slices)]).max() <= 1e-13


@pytest.mark.parametrize("where", ["cpu", pytest.param("emulated", marks=pytest.mark.slow)])
def test_a_run_that_goes_on_is_the_one_that_did_not_stop(where, tmp_path):
    case = load("planar-jet", "quick", [*JET, 'plan="compact"', "time.steps=4"])
    whole, first = (Simulation(case, backend=where, out=tmp_path / name) for name in ("whole", "parts"))
    whole.run(progress=False)
    first.run(steps=2, progress=False)
    again = Simulation(case, backend=where, restart=tmp_path / "parts")
    again.run(progress=False)
    assert again.solver.plan == "compact" and again.step_count == 4
    for one, other in zip(whole.solver.states, again.solver.states, strict=True):
        assert np.array_equal(one.interior(one.q), other.interior(other.q))


def test_reals_a_point():
    case = rhs.flow(14, True, "fp64")
    compact = taylor_green("grid.n=[14,14,14]", 'plan="compact"')
    assert estimate(case)["reals_per_padded_point"] == 37
    assert estimate(compact)["reals_per_padded_point"] == 29
    solver = Solver(compact, backend("cpu"))
    assert solver.plan == "compact"
    assert 0 <= solver.bytes - memory_bytes(compact, solver.grid.blocks) <= 8  # the one step of all points


@pytest.mark.parametrize(("plan", "reals"), [("fused", 37), ("decomposed", 41)])
def test_reals_a_point_of_gpus(plan, reals):
    case = taylor_green("grid.n=[14,14,14]", f'plan="{plan}"')
    assert estimate(case, "emulated")["reals_per_padded_point"] == reals
    solver = Solver(case, backend("emulated"))
    assert 0 <= solver.bytes - memory_bytes(case, solver.grid.blocks, "emulated") <= 8


def test_what_it_does_not_know_is_said():
    case = load("cone", overrides=["gas.reynolds=1e4"])
    with pytest.raises(HiresxError, match="axisymmetric"):
        Solver(case, backend("cpu"), plan="compact")


def test_lines_that_turn_are_named():
    case = load("round-jet", "quick")
    assert "go on as lines" in (obstacle(case, domain(case).whole) or "")


def test_plans_of_other_backends_are_refused():
    with pytest.raises(HiresxError, match="the cpu backend has no plan"):
        Solver(load("taylor-green", overrides=["grid.n=[9,9,9]", 'plan="fused"']), backend("cpu"))


@dataclass
class Small:
    """A backend that says it is a GPU with so much memory, until something is to be compiled."""

    bytes_: float
    name: str = "cuda"

    def free_memory(self) -> float:
        return self.bytes_

    def compile(self, configuration):
        raise AssertionError("compiled")


@pytest.mark.parametrize(
    ("reals", "outcome"), [(41, "fused"), (40.1, "fused"), (39, "compact"), (32.1, "compact"), (31, None)]
)
def test_the_plan_goes_by_what_a_gpu_has_free(reals, outcome):
    """37 and 29 reals for a padded node, 3 for its coordinates while the metrics are made."""
    from hiresx.solver.plan_choice import choose_plan

    case = rhs.flow(32, True, "fp64")
    gpu = Small(reals * 8 * 38 * 38 * 40)  # rows along i in eights
    if outcome is None:
        with pytest.raises(HiresxError, match="by the plan compact"):
            choose_plan(case, gpu, domain(case))
    else:
        assert choose_plan(case, gpu, domain(case)) == outcome
