"""Grids that many tests use: shaken, bent and cut, read back from files, and where their nodes must lie."""

from itertools import product
from types import SimpleNamespace

import numpy as np
from multiblock import Arrangement

from hiresx.case import toml
from hiresx.case.boundaries import FarField
from hiresx.case.grid_file import GridFile
from hiresx.case.grids import Wavy
from hiresx.case.model import State
from hiresx.decomposition import decompose, extended_coordinates
from hiresx.equations.stencil import CENTRAL_DIFFERENCE, Stencil
from hiresx.grid import Block, Grid, build, write_plot3d

FAR = FarField(faces="all", state=State(rho=1.0, p=0.7))


def decomposed(grid, *conditions):
    return decompose(SimpleNamespace(boundary=conditions, stencil=Stencil(), filter=None), grid)


def shaken(n, periodic=(), seed=3) -> Grid:
    """A wavy box with a random displacement of a tenth of the spacing on top, periodic where it may be made so."""
    amplitude = tuple(0.05 * (m > 1) for m in n)
    spec = Wavy(n=n, lower=(0.0, 0.0, 0.0), upper=tuple(1.0 * (m > 1) for m in n), amplitude=amplitude,
                periodic=periodic)  # fmt: skip
    grid = build(spec)
    random = np.random.default_rng(seed)
    nodes = []
    for d, c in enumerate((grid.blocks[0].x, grid.blocks[0].y, grid.blocks[0].z)):
        noise = random.uniform(-0.1, 0.1, c.shape) / max(n) * (n[d] > 1)
        for e in range(3):  # nodes held at both ends stay images of each other
            if n[e] > 1 and "xyz"[e] not in periodic:
                last = [slice(None)] * 3
                last[2 - e] = slice(-1, None)
                noise[tuple(last)] = np.take(noise, [0], axis=2 - e)
        nodes.append(c + noise)
    return Grid((Block("shaken", *nodes),), period=grid.period)


def derivative(a, d):
    axis = 2 - d
    n = a.shape[axis] - 6
    return sum(c * np.take(a, range(m, m + n), axis) for m, c in enumerate(CENTRAL_DIFFERENCE))


def inner(a, *directions):
    for d in directions:
        a = np.take(a, range(3, a.shape[2 - d] - 3), 2 - d)
    return a


def metrics(nodes):
    """(grad xi_d)/J, component c, symmetric-conservative (paper eq. (7)), with three ghost layers in direction d."""
    result = np.empty((3, 3), dtype=object)
    for d, c in product(range(3), repeat=2):
        e, f = (d + 1) % 3, (d + 2) % 3
        p, q = nodes[(c + 1) % 3], nodes[(c + 2) % 3]
        result[d, c] = 0.5 * (
            derivative(derivative(p, e) * inner(q, e), f)
            - derivative(derivative(p, f) * inner(q, f), e)
            + derivative(inner(p, f) * derivative(q, f), e)
            - derivative(inner(p, e) * derivative(q, e), f)
        )
    return result


def free_stream_residual(nodes):
    m = metrics(nodes)
    scale = max(np.abs(a).max() for a in m.flat)
    return max(np.abs(sum(derivative(m[d, c], d) for d in range(3))).max() for c in range(3)) / scale


def saved(folder, blocks, tables=None, name="grid", **keys):
    """The grid of a Plot3D file of `blocks` and a connectivity file of `tables`, if any."""
    write_plot3d(folder / f"{name}.xyz", Grid(tuple(blocks)), precision=keys.pop("precision", "fp64"))
    if tables is not None:
        (folder / f"{name}.toml").write_text(toml.dumps(tables))
        keys["connectivity"] = f"{name}.toml"
    return build(GridFile(file=f"{name}.xyz", **keys), folder)


def same_nodes(grid: Grid, arrangement: Arrangement, **tolerance) -> None:
    """Every part, three ghost layers, edges and corners included, lies where the block that was cut has those nodes."""
    whole = arrangement.whole
    (wanted,) = extended_coordinates(decomposed(Grid((whole,)), FAR))
    for n, nodes in enumerate(extended_coordinates(decomposed(grid, FAR))):
        lines = [
            np.arange(lo - 3, hi + 3) if e in whole.active else np.arange(1)
            for e, (lo, hi) in enumerate(arrangement.held[n])
        ]
        index = np.stack(np.meshgrid(*lines, indexing="ij"))
        (a, b, c), (i, j, k) = arrangement.index(n, index) + 3, index + 3
        for got, all_ in zip(nodes, wanted, strict=True):
            np.testing.assert_allclose(got[c, b, a], all_[k, j, i], rtol=0, **(tolerance or {"atol": 1e-14}))
        assert free_stream_residual(nodes) < 1e-14


def ring(n_around: int, n_normal: int = 17, angle: float = 360.0, ends: bool = True, nk: int = 1, axis: str = "z"):
    """x, y, z of a sector of an annulus, r from 1 to 2 along i, the angle along j, `ends`: nodes at both."""
    t = np.radians(angle) * np.arange(n_around) / (n_around - 1 if ends else n_around)
    z, t, r = np.meshgrid(0.1 * np.arange(nk), t, np.linspace(1, 2, n_normal), indexing="ij")
    turned = {"z": (r * np.cos(t), r * np.sin(t), z), "x": (z, r * np.cos(t), r * np.sin(t))}
    return turned[axis]
