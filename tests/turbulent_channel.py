"""Half a turbulent channel by the implicit integrator, for tests of models of turbulence."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from implicit_blocks import blocks_of

from hiresx import Case
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.solver import Solver

KAPPA = 0.41
# friction Reynolds number, and friction velocity over the sound speed: Mach 0.12 in the middle
RE_TAU, U_TAU = 395.0, 0.006


def channel_of(model: str, n: int, drop: float) -> Case:
    """Half a channel across, from its wall at x = 0 to its middle at x = 1; the gas flows along y."""
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": [n, 1, 1], "lower": [0, 0, 0], "upper": [1, 0, 0],
                     "stretch": {"x": {"cluster": "lower", "ratio": 60.0}}},
            "gas": {"reynolds": RE_TAU / U_TAU}, "scheme": {"flux": "roe"},
            "turbulence": {"model": model},
            "body_force": {"acceleration": [0.0, U_TAU**2, 0.0]},
            "time": {"integrator": "implicit", "cfl": 5.0, "steps": 60},
            "implicit": {"largest_cfl": 1e6, "sweeps": 100, "krylov": 60, "drop": drop},
            "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
            "boundary": [{"faces": ["imin"], "type": "no-slip-wall", "temperature": 1.0},
                         {"faces": ["imax"], "type": "symmetry"}],
        }
    )  # fmt: skip


def reichardt(y):
    return np.log(1 + KAPPA * y) / KAPPA + 7.8 * (1 - np.exp(-y / 11) - y / 11 * np.exp(-y / 3))


def started_from(case: Case, scalars: Callable[[np.ndarray], dict[str, np.ndarray]], where: str, parts: int) -> Solver:
    """From Reichardt's velocity and the variables of the model as functions of x, in so many parts."""
    cut = domain(case, parts=lambda cut: [replace(part, rank=0) for part in partition(cut, parts)])
    solver = Solver(case, backend(where), domain=cut)
    for number, state in enumerate(solver.states):
        x = solver.decomposition.blocks[state.part.whole].x[:, :, slice(*state.part.box[0])]
        flow = 1 + 0 * x, 0 * x, U_TAU * reichardt(RE_TAU * x), 0 * x, 1 / 1.4 + 0 * x
        solver.set_state(number, *flow, scalars=scalars(x))
    solver.complete_state()
    return solver


def all_sweeps(solver: Solver, given: list[np.ndarray] | None) -> tuple[np.ndarray, list[np.ndarray]]:
    """What the sweeps of a preconditioning make of the change by an explicit step, by variable, and the blocks that
    were assembled; where some are `given` the sweeps take those. Lines end where the grid is cut, so that only many
    sweeps are independent of the cut."""
    system, linear = solver.system, solver.integrator._linear
    x, right, found = (system.vector() for _ in range(3))
    system.state(x)
    linear.begin()
    linear.change(x, right)
    blocks = blocks_of(solver, given)
    linear.assemble(x, 0.01)
    linear.precondition(right, found)
    return system.gather(found).reshape(solver.states[0].equations.variables, -1), blocks
