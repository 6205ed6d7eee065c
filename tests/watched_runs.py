"""Small runs with monitors, for the tests of all that watches a run."""

import numpy as np

from hiresx import Case, Simulation
from hiresx.grid import Block, Grid
from hiresx.grid.matching import matched_connections
from hiresx.output.watch import monitors

P = 1 / 1.4
SLIP = {"type": "slip-wall"}


def tables(n=(24, 12, 1), upper=(2.0, 1.0, 0.0), amplitude=0.0, periodic=(), **changes) -> dict:
    """A box, or a wavy one, between slip walls or periodic."""
    grid = {"generator": "box", "n": list(n), "lower": [0.0, 0.0, 0.0], "upper": list(upper)}
    grid["periodic"] = list(periodic)
    if amplitude:
        grid |= {"generator": "wavy", "amplitude": [amplitude * (m > 1) for m in n]}
    axes = [f"{'ijk'['xyz'.index(axis)]}{end}" for axis in periodic for end in ("min", "max")]
    others = [f"{d}{end}" for d, m in zip("ijk", n, strict=True) for end in ("min", "max") if m > 1]
    boundary = [{"faces": axes, "type": "periodic"}] if axes else []
    walls = [face for face in others if face not in axes]
    boundary += [{"faces": walls, "type": "slip-wall"}] if walls else []
    return {
        "grid": grid,
        "time": {"steps": 40, "cfl": 0.5},
        "initial": {"state": {"rho": 1.0, "p": P}},
        "boundary": boundary,
    } | changes


def bang(x, y, z):
    p = P * (1 + 0.2 * np.exp(-20 * ((x - 0.8) ** 2 + (y - 0.4) ** 2)))
    return (1.4 * p) ** P, 0.0, 0.0, 0.0, p


def pulse(x, y, z):
    rho, _, v, w, p = bang(x, y, z)
    return rho, 0.1 * np.cos(np.pi * y), v, w, p


def watched(case: Case, **arguments) -> tuple[Simulation, dict]:
    """A simulation and its monitors by name, to be measured by hand."""
    simulation = Simulation(case, backend=arguments.pop("backend", "cpu"), **arguments)
    return simulation, {m.name.removeprefix("history."): m for m in monitors.build(case, simulation)}


def flux_sums(solver, surface) -> np.ndarray:
    """Fluxes of mass, momentum x, y, z and energy out of the nodes of each group of a `WatchedSurface`: (groups, 5)."""
    numbers = solver.backend.zeros((5 * surface.chunks,), "float64")
    solver.program.prepare(surface.sum_calls("face_flux_sums", numbers))()
    return surface.by_group(solver.backend.to_host(numbers), 5)


def ran(case: Case, **arguments) -> tuple[Simulation, dict[str, dict]]:
    """A finished run without a directory, and the histories it kept in memory."""
    simulation = Simulation(case, backend=arguments.pop("backend", "cpu"), **arguments)
    simulation.run(progress=False)
    found = {a.history.name: a.history.table().flat() for a in simulation.attachments if hasattr(a, "history")}
    return simulation, found


def cut(block: Block, at: int, shared: bool) -> Grid:
    """A block in two along i; with `shared` both hold the nodes of the cut."""
    parts = (slice(0, at + 1), slice(at if shared else at + 1, None))
    blocks = [
        Block(name, block.x[:, :, s], block.y[:, :, s], block.z[:, :, s]) for name, s in zip("ab", parts, strict=True)
    ]
    if shared:
        return Grid(blocks, matched_connections(blocks))
    from hiresx.grid import Connection
    from hiresx.grid.blocks import face_range

    a, b = blocks
    n = a.size[0]
    return Grid(
        blocks,
        [
            Connection(0, "imax", face_range("imax", a.size), 1, offset=(-n, 0, 0)),
            Connection(1, "imin", face_range("imin", b.size), 0, offset=(n, 0, 0)),
        ],
    )
