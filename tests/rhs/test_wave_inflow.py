"""Inflows that are given as waves: computed by the device within whole steps, and the flow that the same function of
time, asked at every stage, gives."""

import numpy as np
import pytest
import scalar_cases
from checkpoint_cases import CHANNEL, swell
from ranks import run_ranks
from sanitize_flows import ROUND

from hiresx import Case, HiresxError, Simulation, Waves, load
from hiresx.decomposition import Part
from hiresx.device import backend
from hiresx.device.dependency_graph import flatten_calls
from hiresx.mpi.communicator import Communicator
from hiresx.rhs.boundary import Prescribe
from hiresx.solver import Solver
from hiresx.solver.batched_steps import BatchedSteps
from hiresx.solver.device_resident_steps import DeviceResidentSteps

STEPS = 6


def asked(x, y, z, t):
    """The same as arrays."""
    return [value.at(t) if isinstance(value, Waves) else value for value in swell(x, y, z, t)]


def case(**tables) -> Case:
    return Case.from_dict(CHANNEL | tables)


def flow(profile, where="cpu", **tables):
    """The solver after some steps, and its primitive fields."""
    simulation = Simulation(case(**tables), backend=where, profiles={"gust": profile})
    simulation.run(progress=False)
    return simulation.solver, np.array(list(simulation.solver.primitives(0).values()))


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_the_flow_is_that_of_the_function(where):
    solver, found = flow(swell, where)
    other, wanted = flow(asked, where)
    steps = "batched_steps" if where == "cpu" else "device_resident_steps"
    assert getattr(solver, steps).possible and not getattr(other, steps).possible
    assert solver.time == pytest.approx(other.time, rel=1e-14)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13)
    assert np.ptp(found[1][0, :, 0]) > 1e-2, "the waves came in"


@pytest.mark.parametrize(
    ("where", "time"),
    [
        ("cpu", {"steps": STEPS, "cfl": 0.5}),
        ("emulated", {"steps": STEPS, "cfl": 0.5}),
        ("emulated", {"steps": STEPS, "dt": 0.013, "integrator": "carpenter_kennedy_rk4"}),
    ],
)
def test_whole_steps_have_the_bits_of_single_stages(where, time, monkeypatch):
    solver, found = flow(swell, where, time=time)
    monkeypatch.setattr(DeviceResidentSteps, "possible", False)
    monkeypatch.setattr(BatchedSteps, "possible", False)
    single, wanted = flow(swell, where, time=time)
    assert solver.time == single.time
    np.testing.assert_array_equal(found, wanted)


def test_two_launches_a_stage_and_no_call_of_the_function():
    asked_at = []

    def counted(x, y, z, t):
        asked_at.append(t)
        return swell(x, y, z, t)

    def launches(profile):
        solver = Solver(case(), backend("emulated"), profiles={"gust": profile})
        solver.initialize()
        with solver.program.recording() as noted:
            for _, task in solver.tasks:
                task(0)
        return solver, [call.name for call in flatten_calls(noted)]

    solver, made = launches(counted)
    _, still = launches(lambda x, y, z, t: (1.0, Waves(1.5, []), 0.0, 0.0, 1 / 1.4))
    assert sorted(made) == sorted([*still, "wave_weights", "gas_waves"])
    assert len(asked_at) == 2, "once, and once more to see that it gives the same"
    solver.advance(4)
    assert len(asked_at) == 2


def test_waves_that_change_are_refused():
    def other(x, y, z, t):
        return 1.0, Waves(1.5, [2.0], sin=[0.1 * t]), 0.0, 0.0, 1 / 1.4

    with pytest.raises(HiresxError, match="the profile-inflow on imin gives waves, but others at another time"):
        flow(other)


@pytest.mark.slow
def test_a_scalar_as_waves():
    """Carried in as the function of time would."""

    def dye(x, y, z, t):
        return Waves(0.5, [4.0], sin=[0.2 * y])

    def dye_asked(x, y, z, t):
        return dye(x, y, z, t).at(t)

    inflow = CHANNEL["boundary"][0] | {"function": "swell", "scalars": {"dye": "dye", "ink": 0.3}}
    tables = {
        "scalar": [{"name": name, "schmidt": sc, "initial": 0.3} for name, sc in scalar_cases.SCHMIDT.items()],
        "boundary": [inflow, *CHANNEL["boundary"][1:]],
    }
    found, wanted = (
        Simulation(case(**tables), backend="cpu", profiles={"swell": swell, "dye": given}) for given in (dye, dye_asked)
    )
    for simulation in (found, wanted):
        simulation.run(progress=False)
    assert found.solver.batched_steps.possible and not wanted.solver.batched_steps.possible
    a, b = (simulation.blocks[0].state("dye") for simulation in (found, wanted))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)
    assert np.ptp(a) > 1e-2


def on_ranks(comm, where, transport="auto"):
    """The largest difference from the whole in one process, and whether whole steps were taken."""
    wide = case(grid=CHANNEL["grid"] | {"n": [16, 17, 1]})
    parts = [Part(0, ((0, 16), j, (0, 1)), rank) for j, rank in (((0, 8), 0), ((8, 17), comm.size - 1))]
    cut = Simulation(wide, backend=where, profiles={"gust": swell}, comm=comm, parts=lambda whole: parts,
                     transport=transport)  # fmt: skip
    cut.run(progress=False)
    whole = Simulation(wide, backend=where, profiles={"gust": swell}, comm=Communicator())
    whole.run(progress=False)
    wanted = np.array(list(whole.solver.primitives(0).values()))
    off = []
    for n, state in enumerate(cut.solver.states):
        box = tuple(slice(*interval) for interval in reversed(state.part.box))
        off.append(np.abs(np.array(list(cut.solver.primitives(n).values())) - wanted[(slice(None), *box)]).max())
    return float(max(off)), cut.solver.device_resident_steps.possible


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_cut_across_the_inflow(where):
    off, whole = on_ranks(Communicator(), where)
    assert off < 1e-13 and whole == (where == "emulated")


@pytest.mark.slow
@pytest.mark.parametrize(("where", "transport"), [("cpu", "auto"), ("emulated", "mpi"), ("emulated", "signals")])
def test_on_ranks(where, transport):
    for off, whole in run_ranks(2, on_ranks, where, transport):
        assert off < 1e-13 and whole == (transport == "signals")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_in_single_precision(where):
    fp32 = {"scheme": {"precision": "fp32"}}
    _, found = flow(swell, where, **fp32)
    _, wanted = flow(asked, where, **fp32)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=32 * 2.0**-24 * np.abs(wanted).max())


def test_the_round_jet_leaves_nothing_to_the_host():
    """Its disturbances are waves, and without any there is nothing that changes: a GPU takes whole steps."""
    for disturbance in (0.05, 0.0):
        solver = Solver(load("round-jet", "quick", [*ROUND, f"parameters.disturbance={disturbance}"]), backend("cpu"))
        solver.initialize()
        inflows = [c for c in solver.conditions if isinstance(c, Prescribe)]
        assert all(c.is_prepared for c in inflows) and any(c.moves for c in inflows) == (disturbance > 0)
        assert all(c.function_moments is not None for c in inflows), "a restart is held to it"


def test_a_function_is_asked_once_for_each_time():
    """The last stage of a step and the first of the next have their time in common, and another lies between."""
    asked_at = []

    def counted(x, y, z, t):
        asked_at.append(t)
        return 1.0, 1.5 + 0.01 * np.sin(t), 0.0, 0.0, 1 / 1.4

    solver = Solver(case(), backend("cpu"), profiles={"gust": counted})
    solver.initialize()
    for _ in range(4):
        solver.step()
    assert len(asked_at) == len(set(asked_at)) == 1 + 2 * 4
