"""What levels that follow the flow cost: the tables of docs/refinement.md.

    OMP_NUM_THREADS=1 python docs/make/levels.py blast
    OMP_NUM_THREADS=1 python docs/make/levels.py shock-diffraction
    OMP_NUM_THREADS=1 python docs/make/levels.py turns
    OMP_NUM_THREADS=1 python docs/make/levels.py turns double-mach levels 1 time.end=0.02
    OMP_NUM_THREADS=1 python docs/make/levels.py case double-mach levels-quick
    OMP_NUM_THREADS=1 python docs/make/levels.py jet levels-quick runs/jets

Prints a table: nodes of all levels (the mean over the steps, in shares of the finest grid throughout), blocks at the
end, processor seconds of the whole run without its set-up, of which those of looks and changes, and the mean difference
of density to the finest grid throughout at the nodes of the coarsest grid, in shares of the mean density. With `turns`
the case shock-diffraction, or another one and its preset, and the finest grid throughout are timed in turns, for
machines that do other work meanwhile and for grids on which a whole run would take too long; behind the preset follow
the number of steps without levels at each look, and overrides. `case` takes the name of a case, a preset of it with
levels ("-": none), and overrides; "alone" behind these leaves the grids without levels away. `jet` takes a preset of
planar-jet with levels, a folder for the runs, a backend ("cpu") and overrides.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hiresx import Simulation, load
from hiresx.case import Case
from hiresx.decomposition import decompose
from hiresx.decomposition.levels import finer, refined_extended
from hiresx.grid import Grid, build
from hiresx.post import jet

# A quarter of a cylindrical shock tube: the two states of Sod's tube inside and outside of the radius 0.3.
RADIUS, END = 0.3, 0.25
BLAST: dict[str, dict[str, Any]] = {
    "the default thresholds, tiles of 32": {"tile": 32, "every": 25, "margin": 16},
    "`refine` 0.3, tiles of 16": {"tile": 16, "every": 25, "margin": 16, "refine": 0.3, "coarsen": 0.18},
    "`refine` 0.3, tiles of 32": {"tile": 32, "every": 25, "margin": 16, "refine": 0.3, "coarsen": 0.18},
}
Densities = dict[tuple[float, ...], float]


@dataclass
class Run:
    """What a run took: mean nodes, blocks at its end, changes of tiles, processor seconds; `rho` by place."""

    nodes: float
    blocks: int
    changes: int
    seconds: float
    changing: float
    rho: Densities


def measured(case: Case, initial: Callable[..., Any] | None = None, grid: Grid | None = None) -> Run:
    simulation = Simulation(case, initial=initial, backend="cpu", grid=grid)
    adapt, changing = simulation.adapt, 0.0

    def timed() -> bool:
        nonlocal changing
        began = time.process_time()
        try:
            return adapt()
        finally:
            changing += time.process_time() - began

    simulation.adapt = timed  # type: ignore[method-assign]
    began = time.process_time()
    simulation.run(progress=False)
    seconds = time.process_time() - began
    found = simulation.adaptations
    rho: Densities = {}
    for block in simulation.blocks:  # finer levels come last
        places = zip(*(np.round(np.asarray(c).ravel(), 9).tolist() for c in (block.x, block.y, block.z)), strict=True)
        rho |= dict(zip(places, block.state("rho").ravel().tolist(), strict=True))
    nodes = simulation.solver.points if found is None else found.node_steps / found.steps
    return Run(nodes, len(simulation.blocks), 0 if found is None else found.changes, seconds, changing, rho)


def blast(n: int, refine: dict[str, Any] | None = None) -> Run:
    def initial(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[Any, ...]:
        inside = x * x + y * y < RADIUS**2
        return np.where(inside, 1.0, 0.125), 0 * x, 0 * x, 0 * x, np.where(inside, 1.0, 0.1) / 1.4

    table = {} if refine is None else {"refine": {"criterion": "density-curvature", "levels": 2, **refine}}
    return measured(
        Case.from_dict(
            {
                "grid": {"generator": "box", "n": [n, n, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0]},
                "boundary": [
                    {"faces": ["imin", "jmin"], "type": "symmetry"},
                    {"faces": "all", "type": "supersonic-outflow"},
                ],
                "initial": {"state": {"rho": 1.0, "u": 0.0, "v": 0.0, "p": 0.7}},
                "time": {"end": END, "cfl": 0.5},
                **table,
            }
        ),
        initial,
    )


def load_uniform(spacing: int) -> Case:
    case = load("shock-diffraction", overrides=[f"grid.spacing={1 / spacing!r}"])
    return case.model_copy(update={"refine": None})


def diffraction(spacing: int | None, *overrides: str) -> Run:
    return measured(load("shock-diffraction", overrides=[*overrides]) if spacing is None else load_uniform(spacing))


def throughout(case: Case, level: int) -> Case:
    """The case on the grid of a level alone: its counts of nodes and the ranges of its boundaries."""

    def times(m: Any) -> Any:
        return m << level if isinstance(m, int) else m

    n = [times(count - 1) + 1 for count in case.grid.n]  # type: ignore[union-attr]
    boundary = tuple(
        b.model_copy(update={"range": {d: tuple(times(m) for m in ends) for d, ends in b.range.items()}})
        if isinstance(b.range, dict)
        else b
        for b in case.boundary
    )
    grid = case.grid.model_copy(update={"n": tuple(n)})
    return case.model_copy(update={"refine": None, "grid": grid, "boundary": boundary})


def finest_grid(case: Case, level: int | None = None) -> Grid:
    """The grid of the finest level of a case throughout, or of another level, with the regions of its boundary
    conditions."""
    assert case.refine is not None
    grid = build(case.grid, case.directory)
    made = decompose(case.model_copy(update={"refine": None}), grid)
    for _ in range(case.refine.finest if level is None else level):
        made = finer(made, refined_extended(made))
    regions: list[dict[str, tuple[Any, ...]]] = [{} for _ in made.blocks]
    for patch in made.patches:
        name = str(patch.condition.range)
        regions[patch.block][name] = (*regions[patch.block].get(name, ()), (patch.face, patch.range))
    blocks = (replace(block, regions=own) for block, own in zip(made.blocks, regions, strict=True))
    return replace(grid, blocks=tuple(blocks), connections=made.connections[: len(grid.connections)])


def of_jet(preset: str, folder: str, backend: str = "cpu", *overrides: str) -> None:
    """The rows of a planar jet with levels: its finest grid throughout, levels, the grid alone. The runs are written to
    `folder`."""
    case = load("planar-jet", preset=preset, overrides=[*overrides])
    alone = case.model_copy(update={"refine": None})
    print("| | nodes | blocks | steps | processor seconds | wall seconds | cell spacing, h | tone, f h / a | its St |")
    print("|---|---|---|---|---|---|---|---|---|")
    for title, one, grid in (
        ("the finest spacing throughout", alone, finest_grid(case)),
        ("with levels", case, None),
        ("the grid alone", alone, None),
    ):
        out = Path(folder) / title.split()[-1]
        simulation = Simulation(one, backend=backend, grid=grid, out=out)
        began, began_at = time.process_time(), time.monotonic()
        simulation.run(progress=False)
        seconds, wall = time.process_time() - began, time.monotonic() - began_at
        found = jet(out).summary
        tone = found["screech"]["fundamental"] or {"frequency": np.nan, "strouhal": np.nan}
        print(
            f"| {title} | {simulation.solver.points:,} | {len(simulation.blocks)} | {simulation.step_count} | "
            f"{seconds:.0f} | {wall:.0f} | {found['cell_spacing'] or np.nan:.3f} | {tone['frequency']:.4f} | "
            f"{tone['strouhal']:.4f} |",
            flush=True,
        )


def of_case(name: str, preset: str, *overrides: str) -> None:
    """The rows of a case with levels: its finest grid throughout, the next coarser one, levels, the grid alone."""
    alone = "alone" in overrides
    case = load(name, preset=None if preset == "-" else preset, overrides=[o for o in overrides if o != "alone"])
    assert case.refine is not None
    finest = case.refine.finest
    with_levels = measured(case)
    if alone:
        row(f"{finest} levels", with_levels, with_levels, {})
        return
    of_counts, without = hasattr(case.grid, "n"), case.model_copy(update={"refine": None})
    runs = {
        level: measured(throughout(case, level))
        if of_counts
        else measured(without, grid=finest_grid(case, level) if level else None)
        for level in {0, finest - 1, finest}
    }
    fine, half, coarse = runs[finest], runs[finest - 1], runs[0]
    for title, run in (("finest", fine), ("half as fine", half), (f"{finest} levels", with_levels), ("grid", coarse)):
        row(title, run, fine, coarse.rho)


def turns(name: str = "shock-diffraction", preset: str = "-", steps: int = 4, *overrides: str) -> None:
    """Time the case with levels and, at each look at its flow, so many steps on the finest grid throughout. Such
    a step costs the same at all times: it stands for as many as lead as far in time as the steps between two looks."""
    case = load(name, preset=None if preset == "-" else preset, overrides=[*overrides])
    assert case.refine is not None
    refined = Simulation(case, backend="cpu")
    fine = load_uniform(512) if name == "shock-diffraction" else throughout(case, case.refine.finest)
    uniform = Simulation(fine, backend="cpu").solver
    uniform.advance(steps)
    adapt, share, whole = refined.adapt, [], {"with levels": 0.0, "throughout": 0.0, "choosing and changing tiles": 0.0}
    began, from_ = time.process_time(), 0.0

    def timed() -> bool:
        nonlocal began, from_
        stepped, looked = time.process_time() - began, time.process_time()
        changed = adapt()
        changing, beside = time.process_time() - looked, time.process_time()
        for _ in range(steps):
            uniform.step()
        each = (time.process_time() - beside) / steps
        if refined.time > from_:
            throughout = (refined.time - from_) / uniform.dt * each
            share.append((stepped + changing) / throughout)
            for name, seconds in zip(whole, (stepped + changing, throughout, changing), strict=True):
                whole[name] += seconds
        began, from_ = time.process_time(), refined.time
        return changed

    refined.adapt = timed  # type: ignore[method-assign]
    refined.run(progress=False)
    print("processor seconds: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in whole.items()))
    print(f"{100 * whole['with levels'] / whole['throughout']:.1f} %, median {100 * float(np.median(share)):.1f} %")
    found = refined.adaptations
    assert found is not None
    nodes = f"{found.node_steps / found.steps:,.0f} of {uniform.points:,} nodes"
    print(f"{nodes}, {found.steps} steps, {found.changes} changes")


def row(name: str, run: Run, fine: Run, coarse: Densities) -> None:
    shared = [place for place in coarse or run.rho if place in run.rho and place in fine.rho]
    mean = np.mean([fine.rho[place] for place in shared])
    away = np.mean([abs(run.rho[place] - fine.rho[place]) for place in shared]) / mean
    changes = f"{run.changing:.1f}, {run.changes} changes" if run.changes else "-"
    print(
        f"| {name} | {run.nodes:,.0f} ({100 * run.nodes / fine.nodes:.0f} %) | {run.blocks} | {run.seconds:.1f} | "
        f"{changes} | {away:.1e} |",
        flush=True,
    )


def main() -> None:
    if sys.argv[1] == "jet":
        of_jet(*sys.argv[2:])
        return
    if sys.argv[1] == "turns":
        name, preset, steps, *others = [*sys.argv[2:], *("shock-diffraction", "-", "4")[len(sys.argv[2:]) :]]
        turns(name, preset, int(steps), *others)
        return
    print("| | nodes | blocks at the end | processor seconds | looks and changes | L1 |\n|---|---|---|---|---|---|")
    if sys.argv[1] == "blast":
        fine, coarse = blast(257), blast(65)
        row("257 x 257 nodes", fine, fine, coarse.rho)
        for name, refine in BLAST.items():
            row(f"two levels, {name}", blast(65, refine), fine, coarse.rho)
        row("65 x 65 nodes", coarse, fine, coarse.rho)
        return
    overrides = sys.argv[2:]
    if sys.argv[1] == "case":
        of_case(*overrides)
        return
    fine, half, coarse = diffraction(512), diffraction(256), diffraction(32)
    row("1/512 throughout", fine, fine, coarse.rho)
    row("1/256 throughout", half, fine, coarse.rho)
    row("four levels to 1/512", diffraction(None, *overrides), fine, coarse.rho)


if __name__ == "__main__":
    main()
