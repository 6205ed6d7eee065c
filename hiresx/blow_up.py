"""A flow that has blown up: where, and what is around that place."""

from pathlib import Path

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output import fields
from hiresx.solver import Solver

FILE = "blow-up.nc"
# Nodes to each side of the place that are written: twice the reach of the scheme and some more.
REACH = 8
_VARIABLES = ("rho", "u", "v", "w", "p")
_MEND = 'lower time.cfl (or time.dt), or set scheme.positivity = "limiter"'


class BlowUp(HiresxError):
    """The flow blew up. `block` and `node` (i, j, k) say where, None if the state itself is still good."""

    def __init__(self, message: str, mend: str, block: int | None = None, node: tuple[int, int, int] | None = None):
        super().__init__(message, mend)
        self.block, self.node = block, node


def check(solver: Solver) -> tuple[np.ndarray, float, float]:
    """The solver's `norms`. Raises BlowUp when they say that the flow is not alive."""
    norms, density, pressure = solver.norms()
    if not (np.isfinite(norms).all() and density > 0 and pressure > 0):
        raise find(solver, "the rate of change is not finite")
    return norms, density, pressure


def find(solver: Solver, otherwise: str) -> BlowUp:
    """The error for the first node whose density or pressure is not a positive number; if there is none, for what
    `otherwise` says."""
    moment = f"step {solver.steps}, time {solver.time:.6g}"
    for b, block in enumerate(solver.decomposition.blocks):
        with np.errstate(all="ignore"):
            state = solver.primitives(b)
        for name in ("rho", "p"):
            bad = ~(state[name] > 0) | ~np.isfinite(state[name])
            if bad.any():
                k, j, i = (int(n) for n in np.argwhere(bad)[0])
                x, y, z = block.node(i, j, k)
                return BlowUp(
                    f"the flow blew up: {name} = {state[name][k, j, i]:.4g} in block '{block.name}' at node "
                    f"(i, j, k) = ({i}, {j}, {k}), (x, y, z) = ({x:.6g}, {y:.6g}, {z:.6g}), {moment}",
                    f"{_MEND}; look at the grid and the conditions near that place",
                    b,
                    (i, j, k),
                )
    return BlowUp(f"the flow blew up: {otherwise} at {moment}; density and pressure are positive everywhere", _MEND)


def write_neighbourhood(directory: Path, solver: Solver, error: BlowUp, case: dict) -> Path | None:
    """Write rho, u, v, w, p around the place to `directory`/blow-up.nc, a field file like the others; None if no place
    is known. Raises HiresxError when it cannot be written."""
    if error.block is None:
        return None
    block = solver.decomposition.blocks[error.block]
    box = tuple(slice(max(n - REACH, 0), n + REACH + 1) for n in reversed(error.node))
    with np.errstate(all="ignore"):
        state = {name: np.ascontiguousarray(v[box]) for name, v in solver.primitives(error.block).items()}
    i, j, k = (s.start for s in reversed(box))
    part = fields.FieldBlock(f"{block.name}_from_{i}_{j}_{k}", block.x[box], block.y[box], block.z[box], state)
    return fields.write(directory / FILE, [part], solver.time, solver.steps, case, _VARIABLES)
