"""One block of a simulation as its user sees it."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from hiresx.base.argument_types import check_types
from hiresx.base.arrays import check_reals
from hiresx.case.functions import STATE
from hiresx.case.validation import check_state
from hiresx.device.fields import output_fields
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block
from hiresx.output.fields import derived
from hiresx.solver import Solver


class BlockView:
    """One block of a simulation, or this rank's part of one: node coordinates and the state as host arrays
    (nk, nj, ni). `first`: index (i, j, k) of its first node in the whole block `whole` (its name)."""

    def __init__(self, solver: Solver, index: int):
        self._solver, self._index = solver, index
        state = solver.states[index]
        block: Block = state.block
        self.name, self.x, self.y, self.z = block.name, block.x, block.y, block.z
        self.whole, self.first = state.name, state.first

    @check_types
    def state(self, name: Annotated[str, "a name of another type is refused by states"]) -> np.ndarray:
        """Return a copy of the variable `name` at the nodes of this block, (nk, nj, ni): rho, u, v, w, p, a passive
        scalar, a field for output (hiresx.device.fields) or a derived variable
        (hiresx.output.fields.derived.VARIABLES). Gradients are one-sided at the edges of the nodes that this rank has.
        `states` returns several variables. Raises HiresxError for an unknown name."""
        return self.states(name)[0]

    def states(self, *names: str) -> list[np.ndarray]:
        """Return copies of several variables at the nodes of this block, in the order of `names`, each as `state`
        returns it. Conserved variables are copied from the device, and gradients computed, once for all names. Raises
        HiresxError for an unknown name."""
        primitives, gamma = self._solver.lazy_primitives(self._index), self._solver.case.gas.gamma
        flow = derived.FlowState(np.asarray(self.x), np.asarray(self.y), np.asarray(self.z), primitives, gamma)
        return [self._variable(name, flow) for name in names]

    def _variable(self, name: str, flow: derived.FlowState) -> np.ndarray:
        if not isinstance(name, str):
            raise derived.unknown_variable(
                name, list(dict.fromkeys([*flow.names, *derived.VARIABLES, *output_fields()]))
            )
        if name in output_fields():
            return self._solver.field(self._index, name).reshape(self.x.shape)
        return derived.evaluate([name], flow)[name]

    @check_types
    def set_state(
        self, rho: ArrayLike, u: ArrayLike, v: ArrayLike, w: ArrayLike, p: ArrayLike,
        scalars: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Replace the state, rho, u, v, w and p, by arrays (or numbers) that broadcast to (nk, nj, ni). Passive scalars
        that `scalars` omits keep their values. A rank may set any of its blocks: the conditions at faces and the values
        of shared nodes are imposed by the next `step`, `run`, `adapt` or `rebuild` of the simulation. Raises
        HiresxError, with the state unchanged, for arguments that are not real numbers, for arrays of another shape or
        with masked entries, and for the first node whose values are not finite, or whose rho or p is not positive."""
        state: dict[str, np.ndarray] = {}
        known = self._solver.layout.equations.scalars
        if unknown := [name for name in scalars or {} if name not in known]:
            there = f"it has {', '.join(known)}" if known else "it has no scalars: give it a [[scalar]]"
            raise HiresxError(f'the case has no scalar "{unknown[0]}"', there)
        named = {**dict(zip(STATE, (rho, u, v, w, p), strict=True)), **(scalars or {})}
        for name, given in named.items():
            try:
                array = check_reals(given)
            except ValueError as error:
                there = ", ".join(f"{n} is '{part.name}'" for n, part in enumerate(self._solver.states))
                raise HiresxError(
                    f"set_state of block '{self.name}': {name} {error}",
                    f"give a real number or an array of them, with a value at every node; a block is chosen by "
                    f"`simulation.blocks[n]`, where {there}",
                ) from None
            try:
                state[name] = np.broadcast_to(array.astype(float), self.x.shape)
            except ValueError:
                raise HiresxError(
                    f"set_state of block '{self.name}': {name} has the shape {array.shape}",
                    f"give numbers, or an array that broadcasts to {self.x.shape}",
                ) from None
        places = np.asarray(self.x), np.asarray(self.y), np.asarray(self.z)
        check_state(f"set_state of block '{self.name}':", state, places)
        carried = {name: state.pop(name) for name in scalars or {}}
        gas = [state[name] for name in STATE]
        self._solver.set_state(self._index, gas[0], gas[1], gas[2], gas[3], gas[4], carried)
