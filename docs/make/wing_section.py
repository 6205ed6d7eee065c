"""Lift and drag of the section of the case onera-m6 in plane subsonic flow, on the nodes that a wing has around it:

python docs/make/wing_section.py RESOLUTION [--planes N] [--mach M] [--incidence DEGREES] [--far-field CHORDS]
    [--turbulent] [--set KEY=VALUE]

Printed are the coefficients of the monitor, those by panels between nodes with the mean pressure of both, and the
largest p/rho^gamma on the section over that of the stream, less 1. `--planes`: so many nodes along the span, 0.04
chords apart, between two planes of symmetry. `--turbulent`: the nodes, the gas and the tables of the preset `sa`, from
the uniform flow; each step is printed. `--set`: a key of the wing's case, may be repeated.
"""

import argparse
from collections.abc import Sequence
from functools import partial

import numpy as np

from hiresx import Case, Simulation, load
from hiresx.case.wing import WingCH
from hiresx.grid.blocks import Block, Regions
from hiresx.grid.connections import Connection, Grid
from hiresx.grid.generators.wing_c_h import generate
from hiresx.output.watch.monitors.force import ForceMonitor

P = 1 / 1.4


def section(
    resolution: float,
    turbulent: bool = False,
    planes: int = 1,
    mach: float = 0.6,
    incidence: float = 2.0,
    overrides: Sequence[str] = (),
) -> tuple[Case, Grid]:
    """The case and the grid of the section, `incidence` in degrees."""
    keys = [f"parameters.resolution={resolution}", *overrides]
    wing = load("onera-m6", preset=["sa"] if turbulent else None, overrides=keys)
    assert isinstance(wing.grid, WingCH)
    (whole,) = generate(wing.grid).blocks
    x, y = (np.asarray(c)[:1].repeat(planes, axis=0) for c in (whole.x, whole.y))
    nk, _, ni = x.shape
    cut = wing.grid.n_wake
    on = (cut, ni - cut)
    regions: Regions = {"wing": (("jmin", (on, (0, 1), (0, nk))),)}
    opposite = partial(Connection, matrix=((-1, 0, 0), (0, -1, 0), (0, 0, 1)), offset=(ni - 1, 0, 0))
    sides = [opposite(0, "jmin", (along, (0, 1), (0, nk)), 0) for along in ((0, cut), (on[1], ni))]
    z = np.broadcast_to(0.04 * np.arange(nk)[:, None, None], x.shape)
    angle = np.radians(incidence)
    state = {"rho": 1.0, "u": mach * np.cos(angle), "v": mach * np.sin(angle), "p": P}
    given = wing.model_dump(mode="json", exclude_none=True)
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [7, 7, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "scheme": {"flux": "hllc", "epsilon": 1e-2},
        "time": {"integrator": "implicit", "steps": 60, **({"cfl": given["time"]["cfl"]} if turbulent else {})},
        "implicit": given["implicit"] | {"sequence": 0} if turbulent else {"drop": 1e6},
        **({name: given[name] for name in ("gas", "turbulence")} if turbulent else {}),
        "initial": {"state": state},
        "force": [{"name": "wing", "faces": ["jmin"], "range": "wing", "pressure": P, "every": 1}],
        "boundary": [
            {"faces": ["jmin"], "range": "wing", "type": "no-slip-wall" if turbulent else "slip-wall"},
            *([{"faces": ["kmin", "kmax"], "type": "symmetry"}] if nk > 1 else []),
            {"faces": "all", "type": "far-field", "state": state},
        ],
    })  # fmt: skip
    return case, Grid((Block("wing", x, y, z, regions),), tuple(sides))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("resolution", type=float)
    parser.add_argument("--planes", type=int, default=1)
    parser.add_argument("--mach", type=float, default=0.6)
    parser.add_argument("--incidence", type=float, default=2.0)
    parser.add_argument("--far-field", type=float, default=10.0)
    parser.add_argument("--turbulent", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    lengths = [f"grid.{name}={given.far_field}" for name in ("wake", "far_field")]
    case, grid = section(
        given.resolution, given.turbulent, given.planes, given.mach, given.incidence, [*lengths, *given.set]
    )
    simulation = Simulation(case, "cpu", grid=grid)
    iteration = simulation.solver.integrator
    most = case.time.steps or 0
    while not iteration.converged and simulation.step_count < most:
        simulation.run(steps=1, progress=False)
        if given.turbulent:
            print(simulation.step_count, *(f"{k} {v:.3g}" for k, v in iteration.report.items() if k != "largest"))
    (monitor,) = (m for m in simulation.attachments if isinstance(m, ForceMonitor))
    force = monitor.measure(simulation.solver)
    (block,) = grid.blocks
    ni, nj, nk = block.size
    wall = grid.blocks[0].regions["wing"][0][1][0]
    on, span, angle = slice(*wall), 0.04 * (nk - 1) or 1.0, np.radians(given.incidence)
    rho, p = (np.asarray(simulation.blocks[0].state(name))[0, 0, on] for name in ("rho", "p"))
    mean, x, y = 0.5 * (p[1:] + p[:-1]) - P, block.x[0, 0, on], block.y[0, 0, on]
    panels = (mean * np.diff(y)).sum(), -(mean * np.diff(x)).sum()
    print(f"{ni} x {nj} x {nk} nodes, {simulation.solver.steps} steps")
    for name, (fx, fy) in (("monitor", (force["force_x"] / span, force["force_y"] / span)), ("panels", panels)):
        lift, drag = fy * np.cos(angle) - fx * np.sin(angle), fx * np.cos(angle) + fy * np.sin(angle)
        print(f"{name}: lift {lift / (0.5 * given.mach**2):.4f}, drag {drag / (0.5 * given.mach**2):.4f}")
    print(f"entropy: {(p / P / rho**1.4 - 1).max():.3f}")


if __name__ == "__main__":
    main()
