"""The grid of a round jet: a butterfly around the axis, drawn out along it."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from hiresx import Case, Simulation
from hiresx.case.grids import RoundJet
from hiresx.decomposition import decompose
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid, build, check_jacobian, quality
from hiresx.grid.butterfly import butterfly
from hiresx.grid.connectivity_check import check_connections
from hiresx.grid.generators import round_jet

SMALL = {
    "points_around": 32, "points_per_diameter": 22, "boundary_layer_thickness": 0.1, "boundary_layer_points": 2,
    "lip_thickness": 0.1, "exit_spacing": 0.1, "length": 1.0, "radius": 1.2, "nozzle_length": 0.7, "upstream": 0.8,
    "stretching": (1.05, 1.1), "sponge_length": 0.5, "sponge_height": 0.5, "sponge_stretching": 1.15,
}  # fmt: skip
STATE = {"rho": 1.0, "u": 0.4, "v": 0.2, "w": 0.1, "p": 1 / 1.4}
REGIONS = {"walls", "inlet", "upstream", "outlet", "sides"}


@cache
def grid(**keys):
    return build(RoundJet(**{**SMALL, **keys}))


def case(conditions=(), **tables) -> Case:
    return Case.from_dict(
        {
            "grid": {"generator": "round-jet", **{k: list(v) if isinstance(v, tuple) else v for k, v in SMALL.items()}},
            "time": {"steps": 5},
            "initial": {"state": STATE},
            "boundary": [*conditions, {"faces": "all", "type": "far-field", "state": STATE}],
            **tables,
        }
    )


@pytest.mark.parametrize("keys", [{}, {"points_around": 96, "points_per_diameter": 46, "boundary_layer_points": 4}])
def test_every_connection_joins_what_lies_beside_each_other(keys):
    made = grid(**keys)
    found = check_connections(made.blocks, made.connections)  # raises where a line does not go on, or no way leads back
    assert {p.layout for p in found} == {"offset"}
    nodes = np.concatenate([np.stack([b.x, b.y, b.z]).reshape(3, -1) for b in made.blocks], axis=1).T
    assert len(np.unique(nodes.round(9), axis=0)) == made.points  # none is there twice


def test_regions_cover_every_face_that_is_not_connected():
    named = case([{"faces": "all", "range": name, "type": "slip-wall"} for name in sorted(REGIONS)])
    covered = named.model_copy(update={"boundary": named.boundary[:-1]})
    assert {p.condition.range for p in decompose(covered, grid()).patches} == REGIONS
    walls = [(b, *part) for b in grid().blocks for part in b.regions.get("walls", ())]
    assert [(b.name, face) for b, face, _ in walls] == [("jet", "imin"), ("nozzle", "jmax"), ("outside", "jmin")]
    for block, _, ((i, _), (j0, j1), _) in walls:
        r = np.hypot(block.y, block.z)[:, j0:j1, i]
        least, most = {"jet": (0.5, 0.6), "nozzle": (0.5, 0.5), "outside": (0.6, 0.6)}[block.name]
        assert np.allclose([r.min(), r.max()], [least, most], atol=1e-12)


@pytest.mark.parametrize("keys", [{}, {"points_around": 64, "points_per_diameter": 36, "boundary_layer_points": 3}])
def test_quality(keys):
    """Corners where three squares meet bend lines by 30 degrees at most; nothing else is crooked, and cells at the
    corners stay near the size of the others."""
    made = grid(**keys)
    check_jacobian(made)
    for record in quality(made):
        assert record["stretching"]["value"] < 1.25, record["block"]
        assert record["skewness"]["value"] < (31 if record["block"] == "core" else 10)
    core = made.blocks[0]
    y, z = core.y[:, :, 0], core.z[:, :, 0]
    sides = np.concatenate([np.hypot(np.diff(y, axis=a), np.diff(z, axis=a)).ravel() for a in (0, 1)])
    assert sides.min() > 0.5 * sides.max()


def test_section_is_its_own_mirror_image_and_polar_from_the_layer_on():
    core, jet, nozzle, outside = grid().blocks
    for block in (core, nozzle, outside):
        assert (block.x < 0).any() and np.ptp(block.y, axis=2).max() == 0 and np.ptp(block.z, axis=2).max() == 0
    assert core.x.min() <= -0.7 and jet.x.min() == 0 and jet.x.max() >= 1.5
    np.testing.assert_allclose(core.y, -core.y[:, ::-1], atol=1e-14)
    np.testing.assert_allclose(core.z, core.y.swapaxes(0, 1), atol=1e-14)
    r, angle = np.hypot(jet.y, jet.z)[:, :, 0], np.arctan2(jet.z, jet.y)[:, :, 0]
    wall = nozzle.size[1] - 1
    assert np.ptp(r[:, wall - 1 :], axis=0).max() < 1e-13 and np.ptp(r[:, 0]) > 1e-3
    assert np.abs(np.diff(np.unwrap(angle[:, wall - 1], period=2 * np.pi)) - 2 * np.pi / 32).max() < 1e-12
    np.testing.assert_allclose(np.diff(r[0, wall - 2 : wall + 3]), 0.05, rtol=1e-9)  # layer and lip: one spacing


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("reynolds", [None, 100.0])
def test_free_stream(where, reynolds):
    gas = {} if reynolds is None else {"reynolds": reynolds}
    simulation = Simulation(case(gas=gas), backend=where)
    simulation.run()
    for block in simulation.blocks:
        for variable, value in STATE.items():
            assert np.abs(block.state(variable) - value).max() < 1e-13


def section(m: int) -> Grid:
    """The butterfly alone, a plane grid: the planes x = 0 of the blocks core and jet, their y, z as x, y."""
    layers = int(1.5 * m)
    square, ring = butterfly(m, 0.3 * np.exp(2 * np.pi / (4 * m) * np.arange(layers + 1)), (2, layers - 4))
    solid = (round_jet._block("core", np.arange(7.0), square.T), round_jet._block("jet", np.arange(7.0), ring))
    flat = [Block(b.name, *(c[:, :, 0][None] for c in (b.y, b.z, 0 * b.x))) for b in solid]
    last = (0, 1)
    joined = []
    for c in [*round_jet._around(solid, 1, 0, m), *round_jet._self_connections(solid, 1)]:
        matrix = np.roll(np.array(c.matrix), (-1, -1), (0, 1))
        face = {"j": "i", "k": "j"}[c.face[0]] + c.face[1:]
        joined.append(
            replace(c, face=face, range=(*c.range[1:], last), matrix=tuple(map(tuple, matrix.tolist())),
                    offset=(*c.offset[1:], 0))
        )  # fmt: skip
    return Grid(flat, joined)


def vortex(time, x, y, z):
    """A swirl that the flow carries along x right over two corners of the core."""
    a, b = (x + 0.45 - 0.5 * time) / 0.15, (y - 0.26) / 0.15
    f = 0.3 * np.exp(0.5 * (1 - a * a - b * b))
    temperature = 1 - 0.2 * f * f
    return temperature**2.5, 0.5 - f * b, f * a, 0 * x, temperature**3.5 / 1.4


def loss(m: int) -> float:
    """Largest error of density, of a depth of .12, after the passage."""
    state = {"rho": 1.0, "u": 0.5, "p": 1 / 1.4}
    far = {"faces": "all", "type": "far-field", "state": state}
    time = {"end": 1.8, "cfl": 0.5}
    tables = {"grid": {"file": "none"}, "time": time, "initial": {"state": state}, "boundary": [far]}
    spec = Case.from_dict(tables)
    simulation = Simulation(spec, backend="cpu", grid=section(m), initial=partial(vortex, 0.0))
    simulation.run()
    off = [b.state("rho") - vortex(1.8, s.block.x, s.block.y, 0)[0]
           for b, s in zip(simulation.blocks, simulation.solver.states, strict=True)]  # fmt: skip
    return max(float(np.abs(o).max()) for o in off)


def test_a_vortex_passes_over_the_corners():
    """Lines break at the corners alone: what a vortex loses there falls with the spacing, at the second order."""
    coarse, fine = loss(12), loss(24)
    assert fine < 0.004 and coarse / fine > 3


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"radius": 0.55}, "does not reach beyond the lip"),
        (
            {"points_per_diameter": 19},
            "with 8 across .* and 2 in each layer of 0.1 D\n  .*keys 22, 24, 26 fit",
        ),
        ({"points_per_diameter": 20}, "keys 22, 24, 26 fit"),
        ({"points_per_diameter": 80}, "do not fit"),
        ({"points_around": 400, "points_per_diameter": 30}, "do not fit"),
    ],
)
def test_refusals(keys, message):
    with pytest.raises(HiresxError, match=message) as error:
        grid(**keys)
    assert error.value.hint
