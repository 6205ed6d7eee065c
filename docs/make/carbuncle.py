"""What strong shocks along grid lines become by each numerical flux, and what its cure of carbuncles costs elsewhere.

    python docs/make/carbuncle.py

prints the table of docs/robustness.md. All runs use the weights `js`.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import markdown_tables
import numpy as np
import robustness_runs

from hiresx import Case, Simulation
from hiresx.exact import normal_shock
from hiresx.grid import Block, Grid
from hiresx.verify.checks import CheckRun, CompletedRun
from hiresx.verify.groups.robustness import FLOWS

MACH, GAMMA = 6.0, 1.4
P = 1 / GAMMA
FLUXES = ("roe", "hllc", "hllc_lm", "rotated_rhll", "roe_h")


def box(nodes: Sequence[int], boundary: list[dict[str, Any]], periodic: str, **changes: Any) -> Case:
    """A box of `nodes` with a spacing of 1."""
    grid = {"generator": "box", "n": list(nodes), "lower": [0.0] * 3, "upper": [1.0 * n for n in nodes[:2]] + [0.0]}
    return Case.from_dict(
        {
            "grid": grid | {"periodic": list(periodic)},
            "time": {"cfl": 0.5, "end": 100.0},
            "initial": {"state": {"rho": 1.0, "p": P}},
            "boundary": boundary,
        }
        | changes
    )


def quirk(flux: str, where: str = "cpu", way: int = 150, odd_even: bool = False) -> float:
    """Quirk's test (International Journal for Numerical Methods in Fluids 18 (1994) 555) in a shorter form: a shock of
    Mach 6 goes `way` nodes along a duct of 12 rows, periodic across. The gas has noise of a thousandth in its density.
    With `odd_even` the duct has slip walls and 13 rows instead, and the nodes of the middle one are displaced by a
    thousandth of the spacing, to both sides in turn. Returns the largest velocity across the duct, in sound speeds."""
    shock = normal_shock(MACH, GAMMA)
    density = (GAMMA + 1) * MACH**2 / ((GAMMA - 1) * MACH**2 + 2)
    behind = {"rho": density, "u": MACH * (1 - 1 / density), "p": P * shock.pressure}
    boundary: list[dict[str, Any]] = [
        {"faces": ["imin"], "type": "supersonic-inflow", "state": behind},
        {"faces": ["imax"], "type": "supersonic-outflow"},
        {"faces": ["jmin", "jmax"], "type": "slip-wall" if odd_even else "periodic"},
    ]
    x, y = np.meshgrid(np.arange(way + 40.0), np.arange(12.0 + odd_even))
    if odd_even:
        y[6] += 1e-3 * (-1) ** np.arange(way + 40)

    def start(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[Any, ...]:
        noise = 1 if odd_even else 1 + 1e-3 * np.random.default_rng(1).uniform(-1, 1, x.shape)
        rho, u, p = (np.where(x < 20, behind[name], ahead) for name, ahead in (("rho", 1.0), ("u", 0.0), ("p", P)))
        return rho * noise, u, 0.0, 0.0, p

    time = {"cfl": 0.5, "end": way / MACH}
    run = Simulation(
        box((way + 40, 12, 1), boundary, "" if odd_even else "y", scheme={"flux": flux}, time=time),
        where,
        initial=start,
        grid=Grid((Block("duct", *(a[None] for a in (x, y, 0 * x))),)) if odd_even else None,
    )
    run.run(progress=False)
    p, v, place = (run.blocks[0].state("p")[0], run.blocks[0].state("v"), run.blocks[0].x[0, 0])
    found = place[np.abs(np.diff(p, axis=1)).argmax(axis=1)]
    assert abs(found.mean() - 20 - way) < 10  # on its way, whatever it looks like
    return float(abs(v).max())


def cylinder(flux: str, nodes: int) -> CompletedRun:
    """The flow around the Mach 20 cylinder of docs/robustness.md with so many `nodes` from the wall outwards."""
    flow = next(flow for flow in FLOWS if flow.title == "Mach 20 cylinder")
    coarse = ("grid.n_around=129", f"grid.n_normal={nodes}", f'scheme.flux="{flux}"', 'scheme.weights="js"')
    return CompletedRun(CheckRun(flow.case, flow.preset, coarse), "cpu")


def asymmetry(run: CompletedRun) -> float:
    """Largest difference of the density between both sides of the stagnation line, over its largest value."""
    rho = run.state("rho")
    return float(abs(rho - rho[:, :, ::-1]).max() / rho.max())


def density_error(flux: str, case: str) -> float:
    """L1 error of the density at the end of a bundled case, relative to its mean."""
    return robustness_runs.density_error(CompletedRun(CheckRun(case, None, (f'scheme.flux="{flux}"',)), "cpu"))


def oblique_contact(flux: str) -> float:
    """Mean error of the density, after 40 units of time over the sound speed and spacing, of gas twice as dense at rest
    in a square whose sides are diagonals of the grid."""
    everywhere, time = [{"faces": "all", "type": "periodic"}], {"cfl": 0.5, "end": 40.0}
    run = Simulation(
        box((32, 32, 1), everywhere, "xy", scheme={"flux": flux}, time=time),
        "cpu",
        initial=(lambda x, y, z: (1.0 + (abs(x - 15.5) + abs(y - 15.5) < 10), 0.0, 0.0, 0.0, P)),
    )
    before = run.blocks[0].state("rho").copy()
    run.run(progress=False)
    return float(abs(run.blocks[0].state("rho") - before).mean())


def measured(flux: str) -> dict[str, float]:
    """The rows of the table for one flux."""
    found = {
        "shock of Mach 6 that moves along 12 rows of nodes, noise of .001 in the density: largest velocity across the "
        "rows": quirk(flux),
        "the same between slip walls, 13 rows without noise, nodes of the middle row displaced by .001 of the "
        "spacing": quirk(flux, odd_even=True),
    }
    for nodes in (33, 25, 17):
        run = cylinder(flux, nodes)
        error = abs(robustness_runs.pitot_error(run))
        found[f"Mach 20 cylinder, 129 x {nodes} nodes: stagnation pressure off by"] = error
        found[f"the same, 129 x {nodes}: asymmetry of the density"] = asymmetry(run)
    found["Noh: error of the density"] = density_error(flux, "noh")
    found["Sod, 200 points: error of the density"] = density_error(flux, "sod")
    return found | {"contact at rest at 45 degrees: error of the density": oblique_contact(flux)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python docs/make/carbuncle.py", description="Carbuncles and their cures.")
    parser.add_argument("--flux", nargs="+", default=FLUXES, help="(default: %(default)s)")
    fluxes = parser.parse_args(arguments).flux
    found = [measured(flux) for flux in fluxes]
    rows = [[name, *(f"{column[name]:.2g}" for column in found)] for name in found[0]]
    print(markdown_tables.table(["", *(f"`{flux}`" for flux in fluxes)], rows), end="")


if __name__ == "__main__":
    main()
