"""The launches of one block for the terms that axisymmetric flow has in addition to those of plane flow."""

from collections.abc import Sequence

import numpy as np

from hiresx.device.interface import Backend, Call, Program
from hiresx.device.state import BlockState
from hiresx.grid.blocks import direction, side, slices
from hiresx.rhs.boundary import AxisCondition
from hiresx.rhs.viscous_plan import Viscous


class Axisymmetric:
    """Launches of the source terms of axisymmetric flow on one block. `source` must be launched after the inviscid
    terms, and `steps` after the launches that choose local time steps. Viscous flow has two more: `stress` is launched
    between the viscous fluxes of the nodes and those of the ghosts, and `friction` after the viscous terms. The
    constructor sets `state.inverse_radius` to 1/y. On the axis it is minus the value of the next node. `axes`:
    conditions of the block on the axis. `viscous`: the viscous terms of the block, None in inviscid flow."""

    def __init__(
        self,
        backend: Backend,
        program: Program,
        state: BlockState,
        axes: Sequence[AxisCondition],
        viscous: Viscous | None,
    ):
        s, sv = state, state.variable_stride
        y = np.abs(s.block.y)
        for axis in axes:
            patch = axis.patch
            nodes = slices(patch.range)
            y[nodes] = -np.abs(np.roll(s.block.y, side(patch.face), axis=2 - direction(patch.face))[nodes])
        padded = np.zeros(s.shape, dtype=s.real)
        s.interior(padded)[...] = 1 / y
        inverse = s.inverse_radius
        backend.copy(inverse, backend.to_device(padded))
        self.source: list[Call] = [
            program.call(
                "axisymmetric_source", s.size, **s.place, sv=sv, q=s.q, jacobian=s.jacobian, inverse=inverse, r=s.r
            )
        ]
        self.steps: list[Call] = []
        self.stress: list[Call] = []
        self.friction: list[Call] = []
        for axis in axes:
            self.source += axis.calls("limit", inverse)
            self.steps += axis.calls("step_limit") if s.dt_stride else []
        if viscous is None:
            return
        w, fluxes = viscous.w, viscous.all_fluxes
        self.stress.append(
            program.call(
                "axisymmetric_stress", s.size, **s.place, di=s.strides[0], dj=s.strides[1], sv=sv, w=w, m=s.metrics,
                jacobian=s.jacobian, inverse=inverse, inverse_reynolds=viscous.inverse_reynolds, flux=fluxes,
            )
        )  # fmt: skip
        self.friction.append(
            program.call(
                "axisymmetric_friction", s.size, **s.place, sv=sv, flux=fluxes, m=s.metrics, inverse=inverse, r=s.r
            )
        )
        for axis in axes:
            self.friction += axis.calls("friction_limit", fluxes, inverse)
