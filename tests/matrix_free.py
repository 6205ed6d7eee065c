"""A flow on a stretched, sheared grid, and what sweeps of the implicit integrator make of a right-hand side there."""

from dataclasses import replace
from functools import cache

import numpy as np

from hiresx import Case
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.solver import Solver

STATE = {"rho": 1.0, "u": 0.4, "v": 0.1, "w": 0.05, "p": 1 / 1.4}
SPACE = [
    {"faces": ["jmin"], "type": "no-slip-wall"},
    {"faces": ["kmin"], "type": "slip-wall"},
    {"faces": ["kmax"], "type": "symmetry"},
    {"faces": ["imax"], "type": "pressure-outflow", "pressure": 1 / 1.4},
    {"faces": "all", "type": "far-field", "state": STATE},
]
PLANE = [boundary for boundary in SPACE if boundary["faces"] not in (["kmin"], ["kmax"])]
# Of passive scalars and of models of turbulence: what varies in space about what they are in layers.
SCALARS = {"smoke": (1.0, 0.5), "nu_tilde": (30.0, 20.0), "turbulent_k": (200.0, 100.0), "turbulent_g": (1.0, 0.3)}


def case_of(
    storage: str,
    flux: str = "steger_warming",
    precision: str = "fp64",
    viscous: bool = True,
    space: bool = True,
    model: str = "none",
    scalar: bool = False,
    nodes: tuple[int, int, int] = (9, 10, 8),
    law: str = "constant",
    smoothing: float = 0.0,
    **implicit,
) -> Case:
    """In space or in a plane. With a passive scalar or a model of large eddies by an integrator of unsteady flow."""
    boundaries = SPACE if space else PLANE
    wall = {} if viscous else {"type": "slip-wall"}
    enters = {"scalars": {"smoke": 0.5}} if scalar else {}
    unsteady = scalar or model == "smagorinsky"
    return Case.from_dict(
        {
            "gas": {"reynolds": 50.0, "viscosity": {"law": law}} if viscous else {},
            "grid": {
                "generator": "wavy", "n": [*nodes[:2], nodes[2] if space else 1],
                "amplitude": [0.03, 0.03, 0.03 if space else 0.0],
                "lower": [0.0, 0.0, 0.0], "upper": [1.0, 0.7, 0.8 if space else 0.0],
            },
            "scheme": {"flux": flux, "flux_smoothing": smoothing},
            "initial": {"state": STATE},
            "turbulence": {} if model == "none" else {"model": model},
            "scalar": [{"name": "smoke", "schmidt": 0.9}] if scalar else [],
            "time": {"steps": 1} | ({"integrator": "bdf2", "dt": 0.05} if unsteady else {"integrator": "implicit"}),
            "implicit": {"lines": "none", "sweeps": 3, "storage": storage, "sweep_precision": precision, **implicit},
            "boundary": [
                one | (wall if one["faces"] == ["jmin"] else enters if one["type"] == "far-field" else {})
                for one in boundaries
            ],
        }
    )  # fmt: skip


@cache
def swept(where: str, storage: str, flux: str, parts: int = 1, comm=None, **choices) -> np.ndarray:
    """What three sweeps make of a right-hand side, about a flow that is not uniform, in so many parts of one process or
    on the ranks of `comm`: an array (variables, nodes)."""
    case = case_of(storage, flux, **choices)
    alone = {} if comm is not None else {"rank": 0}
    cut = domain(
        case, *([] if comm is None else [comm]), parts=lambda cut: [replace(p, **alone) for p in partition(cut, parts)]
    )
    solver = Solver(case, backend(where), domain=cut)
    for n, s in enumerate(solver.states):
        x, y, z = s.block.x, s.block.y, s.block.z
        solver.set_state(
            n, 1 + 0.1 * np.sin(4 * x + z), 0.5 + 0.3 * y, 0.2 * np.cos(3 * x), 0.1 * np.sin(5 * z + x),
            (1 + 0.1 * x * y) / 1.4,
            scalars={
                name: mean + more * np.sin(3 * x + 2 * y + z)
                for name, (mean, more) in SCALARS.items() if name in s.equations.scalars
            },
        )  # fmt: skip
    solver.complete_state()
    system, linear = solver.system, solver.integrator.linearised
    x, right, found = (system.vector() for _ in range(3))
    system.state(x)
    linear.unsteady(0.0, 20.0, system.vector())  # with the coefficient of the new state in its rate
    linear.begin()
    linear.assemble(x, 0.01)
    linear.change(x, right)
    linear.precondition(right, found)
    return system.gather(found).reshape(solver.states[0].equations.variables, -1)


def off(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference of a variable over its largest value, or over that of the gas where this is larger."""
    scales = np.abs(wanted).max(axis=1)
    scales[:5] = scales[:5].max()
    return float((np.abs(found - wanted).max(axis=1) / scales).max())
