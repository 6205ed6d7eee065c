"""Blocks that meet without sharing nodes, and cases on them."""

import math
from itertools import pairwise

import numpy as np

from hiresx.case import Case
from hiresx.grid import Block

P0 = 1 / 1.4


def beside(cells, across, ends, ys=(0.0, 1.0), offset=False, curve=0.0, n_span=(1, 1)):
    """Blocks side by side along x from ends[n] to ends[n + 1], with cells[n] there and across[n] along y; their faces
    bend by `curve`. `offset`: the last nodes along y are left out, for periodic grids. n_span: nodes along z."""
    blocks = []
    for n, (a, b) in enumerate(pairwise(ends)):
        x, y = np.linspace(a, b, cells[n] + 1), np.linspace(*ys, across[n] + 1)
        z = np.linspace(0, 1, n_span[n]) if n_span[n] > 1 else np.zeros(1)
        z, y, x = np.meshgrid(z, y[:-1] if offset else y, x, indexing="ij")
        bend = np.sin(math.pi * (x - ends[0]) / (ends[-1] - ends[0]))
        x = x + curve * bend * np.sin(2 * math.pi * (y - ys[0]) / (ys[1] - ys[0])) * (1 + 0.5 * np.sin(3 * z))
        blocks.append(Block(f"b{n}", x, y, z))
    return tuple(blocks)


def case(boundary, time, state=None, **tables):
    state = {"rho": 1.0, "p": P0} if state is None else state
    walls = boundary[-1:] if boundary and boundary[-1].get("faces") == "all" else []
    rest = boundary[: len(boundary) - len(walls)]
    last = walls or [{"faces": "all", "type": "far-field", "state": state}]
    return Case.from_dict(
        {
            "grid": {"file": "none"},
            "time": time,
            "initial": {"state": state},
            "boundary": [*PATCHED, *rest, *last],
            **tables,
        }
    )


PATCHED = [
    {"block": "b0", "faces": ["imax"], "type": "patched"},
    {"block": "b1", "faces": ["imin"], "type": "patched"},
]
PERIODIC = {"faces": ["jmin", "jmax"], "type": "periodic"}


def errors(simulation, name, exact):
    """Largest difference of a variable to exact(x, y, z) over all blocks, and its root mean square over the area."""
    largest = total = area = 0.0
    for block, state in zip(simulation.blocks, simulation.solver.states, strict=True):
        off = block.state(name) - exact(state.block.x, state.block.y, state.block.z)
        volume = 1 / state.interior(state.jacobian)
        largest = max(largest, float(np.abs(off).max()))
        total, area = total + float(np.sum(off**2 * volume)), area + float(volume.sum())
    return largest, math.sqrt(total / area)


def waves(x, y, z):
    s = 1e-3 * np.sin(3 * x) * np.cos(4 * y)
    return 1 + s, 0.3 + 0.1 * np.sin(2 * y), 0.1 * np.cos(3 * x), 0 * x, P0 + s
