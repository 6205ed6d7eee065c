"""Small flows that together launch every kernel of a step, and the results of them that are compared. The last entry
launches every kernel by itself, with the arguments of `hiresx verify kernels`."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from hiresx.case import Case, load
from hiresx.decomposition import decompose
from hiresx.device.interface import Backend
from hiresx.grid import Block, Grid, build
from hiresx.rhs import chunks
from hiresx.solver import Solver, configuration
from hiresx.verify import kernel_data
from hiresx.verify.turned_blocks import turn_blocks

# A jet of four blocks with every kind of boundary condition that the full one has.
JET = (
    "grid.points_per_height=12", "grid.boundary_layer_points=2", "grid.exit_spacing=0.08", "grid.length=3",
    "grid.half_height=1.5", "grid.sponge_length=1.5", "grid.sponge_height=1.5",
)  # fmt: skip
ROUND = (
    "grid.length=1.0", "grid.radius=1.0", "grid.upstream=0.7", "grid.sponge_length=0.5", "grid.sponge_height=0.5",
    "grid.stretching=[1.1,1.3]",
)  # fmt: skip
STEPS = 2
# The plan of the entry without a flow, which gives no results: addresses alone are checked.
BY_ITSELF = "by itself"


@dataclass(frozen=True)
class Flow:
    """`case` gives a case and its grid (None: the case's own), computed by these `plans` as for a GPU of so many
    `multiprocessors`: of few, threads go as far along their lines as in large grids."""

    case: Callable[[], tuple[Case, Grid | None]]
    plans: tuple[str, ...]
    multiprocessors: int = 1


@cache
def _jet() -> Case:
    return load("planar-jet", "quick", JET)


def _alike(case: Case) -> Case:
    """`case` with the gas and the scheme of the jet, so that flows share their kernels."""
    return case.model_copy(update={"gas": _jet().gas, "scheme": _jet().scheme})


def _round() -> tuple[Case, None]:
    """The butterfly around the axis, its seams and their triple points."""
    return _alike(load("round-jet", "quick", ROUND)), None


def _turned() -> tuple[Case, Grid]:
    """A periodic box of six blocks, each turned another way."""
    case = _alike(load("taylor-green", overrides=["grid.n=[16,15,14]"]))
    whole = decompose(case, build(case.grid, case.directory))
    new = turn_blocks(case, whole, 6, np.random.default_rng(4))
    return new.case, new.grid


def _single() -> tuple[Case, Grid]:
    """The same in single precision, where the sweeps take all viscous differences."""
    case, grid = _turned()
    return case.model_copy(update={"scheme": case.scheme.model_copy(update={"precision": "fp32"})}), grid


def _hybrid() -> tuple[Case, Grid]:
    """The blocks of the box by the hybrid scheme, whose sensor sees some of the flow."""
    case, grid = _turned()
    scheme = case.scheme.model_copy(update={"inviscid": "hybrid"})
    hybrid = scheme.hybrid.model_copy(update={"threshold": 0.0006})
    return case.model_copy(update={"scheme": scheme.model_copy(update={"hybrid": hybrid})}), grid


def _scalars() -> tuple[Case, None]:
    """Two passive scalars that spread, on a wavy box."""
    scalars = '[{name="dye", schmidt=0.7, initial=0.7}, {name="ink", schmidt=0.4, initial=0.2}]'
    wavy = ['grid.generator="wavy"', "grid.amplitude=[0.1,0.1,0.1]"]
    return _alike(load("taylor-green", overrides=["grid.n=[13,12,11]", *wavy, f"scalar={scalars}"])), None


def _patched() -> tuple[Case, Grid]:
    """Two blocks whose nodes do not meet, their face a curved one."""
    blocks = []
    for n, (a, b) in enumerate(pairwise((-1.0, 0.0, 1.0))):
        x, y, z = np.linspace(a, b, 9 + 2 * n), np.linspace(0, 1, 9 + 4 * n), np.linspace(0, 1, 7)
        z, y, x = np.meshgrid(z, y, x, indexing="ij")
        x = x + 0.1 * np.sin(math.pi * (x + 1) / 2) * np.sin(2 * math.pi * y) * (1 + 0.5 * np.sin(3 * z))
        blocks.append(Block(f"b{n}", x, y, z))
    state = {"rho": 1.0, "u": 0.5, "v": 0.2, "w": 0.1, "p": 1 / 1.4}
    sides = ({"block": f"b{n}", "faces": [face], "type": "patched"} for n, face in enumerate(("imax", "imin")))
    case = Case.from_dict(
        {
            "grid": {"file": "none"},
            "time": {"steps": STEPS, "cfl": 0.5},
            "initial": {"state": state},
            "boundary": [*sides, {"faces": "all", "type": "far-field", "state": state | {"u": 0.55}}],
        }
    )
    return _alike(case), Grid(tuple(blocks))


def _poles() -> tuple[Case, None]:
    """A sphere whose stagnation line is a pole, with local steps and a bow shock, which the limiter sees."""
    return _alike(load("sphere", overrides=["grid.n_meridian=11", "grid.n_normal=12", "grid.n_around=12"])), None


FLOWS = {
    "jet": Flow(lambda: (_jet(), None), ("fused", "decomposed", "compact"), chunks.MULTIPROCESSORS),
    "round jet": Flow(_round, ("fused",)),
    "turned blocks": Flow(_turned, ("fused", "decomposed")),
    "single precision": Flow(_single, ("fused",)),
    "hybrid": Flow(_hybrid, ("fused",)),
    "scalars": Flow(_scalars, ("decomposed",)),
    "patched faces": Flow(_patched, ("fused", "decomposed")),
    "poles": Flow(_poles, ("fused",)),
    "axisymmetric": Flow(lambda: (_alike(load("cone")), None), ("fused",)),
    "every kernel": Flow(_hybrid, (BY_ITSELF,)),
}


@contextmanager
def _gpu_of(multiprocessors: int) -> Iterator[None]:
    usual = chunks.MULTIPROCESSORS
    chunks.MULTIPROCESSORS = multiprocessors
    try:
        yield
    finally:
        chunks.MULTIPROCESSORS = usual


def computed(flow: str, plan: str, device: Backend) -> list[Any]:
    """Of a flow after two steps by CFL number the state and the right-hand side of every block, and the norms."""
    case, grid = FLOWS[flow].case()
    if plan == BY_ITSELF:
        _launch_every_kernel(case, device)
        return []
    with _gpu_of(FLOWS[flow].multiprocessors):
        solver = Solver(case, device, grid=grid, plan=plan)
    solver.initialize()
    for _ in range(STEPS):
        solver.step()
    solver.right_hand_side()
    arrays = [s.interior(solver.backend.to_host(a)) for s in solver.states for a in (s.q, s.r)]
    rates, density, pressure = solver.norms()
    return [*arrays, rates, np.array([density, pressure, solver.time])]


def _launch_every_kernel(case: Case, device: Backend) -> None:
    """Launches the kernels of `case` with test arguments. Of every field only the variables that the kernel takes
    exist, so that an access behind them is found."""
    chosen = configuration(case)
    program = device.compile(chosen)
    for name, signature in program.signatures.items():
        for values in kernel_data.variants(signature, chosen.real):
            passed = dict(values)
            for called, value in values.items():
                if isinstance(value, np.ndarray):
                    held = signature.holds.get(called, len(value)) * values.get("variables", 1)
                    passed[called] = device.to_device(value[:held] if len(value) == kernel_data.VARIABLES else value)
            program.launch(name, kernel_data.extent(signature), **passed)
