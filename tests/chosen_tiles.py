"""Tiles of refinement that a function of the nodes asks for, in place of the flow."""

from hiresx.decomposition.flags import marks
from hiresx.grid.blocks import whole_box
from hiresx.simulation import flow_flags


def choose_tiles(monkeypatch, chosen):
    """Let `chosen` (as `hiresx.decomposition.flags.criterion`, of the nodes alone) take the place of the criterion."""

    def marks_of_flow(ground, solver, states):
        table = ground.hierarchy.table
        windows = (
            flow_flags._window(ground.coordinates(state.part), whole_box(state.size), ground.halo) for state in states
        )
        return [marks(table, chosen(table, None, nodes, None)) for nodes in windows]

    monkeypatch.setattr(flow_flags, "criterion", chosen)
    monkeypatch.setattr(flow_flags, "marks_of_flow", marks_of_flow)
