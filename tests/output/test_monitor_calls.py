"""How often a sample of each monitor calls the library of the kernels, from the second on: for all blocks at once."""

import pytest

from hiresx.case import load
from hiresx.device.native import NativeProgram, _PreparedLaunches
from hiresx.simulation import Simulation

JET = ["grid.points_per_height=12", "grid.exit_spacing=0.09", "grid.half_height=2.0", "grid.length=3.0"]
MONITORS = ["conservation.every=10", "extrema.every=10", "kinetic_energy.every=10"]

# Calls of a sample: all launches are prepared as one.
CALLS = {"residual": 1, "conservation": 1, "extrema": 1, "kinetic_energy": 1}


@pytest.fixture
def made(monkeypatch):
    """Puts down every call of the library."""
    found = []

    def noting(known):
        def note(*given, **named):
            found.append(known)
            return known(*given, **named)

        return note

    for kind, name in ((_PreparedLaunches, "run"), (NativeProgram, "run"), (NativeProgram, "launch")):
        monkeypatch.setattr(kind, name, noting(getattr(kind, name)))
    return found


def test_calls_of_a_sample_are_for_all_blocks(made):
    simulation = Simulation(load("planar-jet", "quick", overrides=[*JET, *MONITORS]), "cpu")
    solver = simulation.solver
    assert len(solver.states) == 4
    solver.step()
    for attachment in simulation.attachments:
        name = attachment.name.removeprefix("history.")
        if name in CALLS:
            attachment.measure(solver)
            made.clear()
            attachment.measure(solver)
            assert len(made) == CALLS[name], name


def test_so_is_the_look_at_every_so_many_steps(made):
    simulation = Simulation(load("planar-jet", "quick", overrides=JET), backend="cpu")
    simulation.step()
    simulation._record_residual()
    made.clear()
    simulation._record_residual()
    assert len(made) == 1
