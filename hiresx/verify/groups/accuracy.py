"""Accuracy on smooth flows: errors and orders against exact solutions.

The flows are a density wave that crosses its periodic box once (20 to 320 points), and the isentropic vortex (32, 64
and 128 points in each direction, on a uniform and on a wavy grid). Errors are L1 errors of the density. `order` is log2
of the ratio of the last two errors. The time step is proportional to h^(5/3), so that the third order of the time
integration does not reduce the measured order. The positivity methods for strong shocks must not change smooth flow:
without them the vortex's error is the same to three digits. The rows "interpolation" are for the interpolation to half
points by itself. They have the order of its L1 error from 64 to 128 points, for a periodic state in which all variables
vary.
"""

from math import log2
from typing import Any

import numpy as np

from hiresx import kernels
from hiresx.device import Configuration
from hiresx.device import backend as find_backend
from hiresx.equations.stencil import stencil
from hiresx.verify.checks import Check, CheckRun, CompletedRun, Workbench, at_least, at_most

LONG = False

WAVE_POINTS = (20, 40, 80, 160, 320)
VORTEX_POINTS = (32, 64, 128)


def error(run: CompletedRun) -> float:
    """Return the mean absolute error (L1) of the density at the end of `run`, in rho_ref."""
    return abs(run.state("rho") - run.exact("rho")).mean()


def order(*runs: CompletedRun) -> float:
    """Return the order of accuracy of the density from the errors of the last two of `runs`, of which the last has half
    the grid spacing."""
    return log2(error(runs[-2]) / error(runs[-1]))


def _wave(n: int) -> CheckRun:
    return CheckRun("density-wave", None, (f"grid.n=[{n},1,1]", f"time.cfl={0.5 * (20 / n) ** (2 / 3):.6g}"))


def _vortex(n: int, preset: str | None = None, *sets: str) -> CheckRun:
    # Nodes at the centres of n cells: on the seam of the periodic box the vortex's velocity has a kink (2e-5), which
    # would be visible in the error of 128 points if nodes were on it.
    half = 5 / n
    places = (f"grid.lower=[{half - 5},{half - 5},0]", f"grid.upper=[{half + 5},{half + 5},0]")
    cfl = f"time.cfl={0.5 * (32 / n) ** (2 / 3):.6g}"
    return CheckRun("isentropic-vortex", preset, (f"grid.n=[{n},{n},1]", *places, cfl, *sets))


def _family(name: str, runs: tuple[CheckRun, ...], least_order: float, most_error: float) -> list[Check]:
    def curves(*finished: CompletedRun) -> dict[str, list[float]]:
        return {"points": [_points(run.case.grid) for run in finished], "error": [error(run) for run in finished]}

    last = _points(runs[-1].loaded_case.grid)
    return [
        Check(f"{name}: L1 error, {last} points", at_most(most_error), error, runs[-1:]),
        Check(f"{name}: order", at_least(least_order), order, runs, curves),
    ]


def change(aided: CompletedRun, bare: CompletedRun) -> float:
    """Return the relative change of the error of the density that is due to a positivity method (one that keeps density
    and pressure positive): |e1/e2 - 1|, where e1 is the error of the run `aided` with the method, and e2 the error of
    the run `bare` without it."""
    return abs(error(aided) / error(bare) - 1)


def interpolation_errors(bench: Workbench, configuration: Configuration, points: int) -> float:
    """Return the mean absolute error of the conservative variables that are interpolated to the half points of a
    periodic line from the left and from the right, the larger of the two means over variables and points. `points`: the
    number of nodes of the line. `configuration`: the compile-time choices, with the interpolation. `bench`: the
    `Workbench` with the backend under test."""
    device = find_backend(bench.backend)
    program = device.compile(configuration)
    h = 2 * np.pi / points

    def state(x: np.ndarray) -> np.ndarray:
        """Density, velocities and total energy that vary by a tenth, each with a phase of its own."""
        base = np.array([1.0, 0.4, 0.3, -0.2, 2.5])[:, None]
        return base + 0.1 * np.sin(x + np.arange(5)[:, None])

    # nodes -halo .. points + halo - 1 of the line
    halo = stencil(configuration.interpolation).halo
    nodes = points + 2 * halo
    q = device.to_device(state(h * (np.arange(nodes) - halo)))
    area = np.zeros((3, nodes))
    area[:2] = [[0.8], [0.6]]
    area = device.to_device(area)
    minus, plus = (device.zeros((5, nodes), configuration.real) for _ in range(2))
    limited = kernels.trait("positivity", configuration.positivity, "limits_flux")
    rough = {"rough": device.zeros((nodes,), "int8")} if limited else {}
    interpolates_nodes = kernels.trait("interpolation", configuration.interpolation, "interpolates_nodes")
    # half points -1/2 .. points - 1/2, as in the right-hand side
    extent = (points + (2 if interpolates_nodes else 1), 1, 1)
    line = {"o": halo - 1, "sj": 0, "sk": 0, "sd": 1, "sv": nodes}
    program.launch("interpolate", extent, **line, q=q, m=area, minus=minus, plus=plus, **rough)
    exact = state(h * (np.arange(nodes) - halo + 0.5))
    inner = np.s_[:, halo - 1 : points + halo]
    return max(abs(device.to_host(found) - exact)[inner].mean() for found in (minus, plus))


def interpolation_order(bench: Workbench, configuration: Configuration) -> float:
    """Return the order of accuracy of the interpolation to half points, from the errors with 64 and 128 nodes.
    `configuration`: the compile-time choices, with the interpolation. `bench`: the `Workbench` with the backend under
    test."""
    coarse, fine = (bench.once(interpolation_errors, configuration, n) for n in (64, 128))
    return log2(coarse / fine)


def _points(grid: Any) -> int:
    """Return the number of nodes along i of a box."""
    return int(grid.n[0])


def _interpolation(least: float, **choices: Any) -> Check:
    configuration = Configuration(**choices)
    c = configuration
    return Check(
        f"interpolation, {c.interpolation}, {c.weights}, {c.space}: order",
        at_least(least),
        lambda bench: interpolation_order(bench, configuration),
        configurations=(configuration,),
    )


CHECKS = [
    *_family("density wave", tuple(_wave(n) for n in WAVE_POINTS), 4.95, 2.5e-10),
    *_family("vortex", tuple(_vortex(n) for n in VORTEX_POINTS), 4.8, 1.0e-6),
    *_family("vortex, wavy grid", tuple(_vortex(n, "wavy") for n in VORTEX_POINTS), 4.6, 1.8e-6),
    *_family(
        "vortex, original variant",
        tuple(_vortex(n, None, 'scheme.interpolation="original"') for n in VORTEX_POINTS),
        4.8,
        1.0e-6,
    ),
    *(
        Check(
            f"vortex, 64 points: change of the error by positivity = {aid}",
            at_most(5e-4),
            change,
            tuple(_vortex(64, None, f'scheme.positivity="{choice}"') for choice in (aid, "none")),
        )
        for aid in ("fallback", "limiter")
    ),
    _interpolation(4.9, weights="linear"),
    _interpolation(4.9, weights="linear", interpolation="original"),
    _interpolation(4.9),
    _interpolation(4.9, interpolation="original"),
    _interpolation(4.9, weights="z"),
    _interpolation(4.9, space="component"),
]
