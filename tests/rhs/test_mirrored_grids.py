"""The grid behind a plane in which a wall with friction and its mirror image make an edge is the mirror image."""

import numpy as np
import pytest
from oblique_grids import REST, P, case

from hiresx import Simulation
from hiresx.decomposition import oblique_walls, patches
from hiresx.decomposition.domain import domain
from hiresx.grid import Block, Grid, matched_connections
from hiresx.grid.cutting import cut_along_i
from hiresx.rhs.terms.viscous_damping import _layered
from hiresx.verify.turned_blocks import turn_blocks

CHORD, SPAN, LAYERS = 15, 8, 9
FAR = {"faces": "all", "type": "far-field", "state": REST}
SYMMETRY = {"faces": ["kmin"], "type": "symmetry"}


def block(bend=1.0, lean=1.0, halves=1):
    """Nodes above the arc y = -`bend` s^2/2 that leans by `lean` dz along x from plane to plane of z; `halves` 2: with
    the mirror image in z = 0."""
    k = np.arange(SPAN * 1.0) if halves == 1 else np.arange(1.0 - SPAN, SPAN)
    z, h, s = np.meshgrid(0.1 * k, 0.02 * (1.3 ** np.arange(LAYERS) - 1), np.linspace(-1, 1, CHORD), indexing="ij")
    return Block("wing", s + lean * abs(z), h - 0.5 * bend * s * s, z)


def whole_of(grid, wall="no-slip-wall"):
    return domain(case([{"faces": ["jmin"], "type": wall}, SYMMETRY, FAR], {"local": True, "steps": 1},
                       gas={"reynolds": 1e3}), grid=grid)  # fmt: skip


@pytest.mark.parametrize(("bend", "lean", "wall", "mirrored"), [
    (1.0, 1.0, "no-slip-wall", True),
    (1.0, -0.3, "no-slip-wall", True),
    (1.0, 1.0, "slip-wall", False),  # lines go on straight, the ghosts of which take the flow at mirrored places
    (0.0, 1.0, "no-slip-wall", False),  # a plane wall is its own image
    (1.0, 0.0, "no-slip-wall", False),  # and so is any wall normal to the plane
])  # fmt: skip
def test_where_the_grid_is_mirrored(bend, lean, wall, mirrored):
    of = whole_of(Grid((block(bend, lean),)), wall)
    x, y, z = (c[:7, 3:-3, 3:-3] for c in of.extended[0])  # three ghosts, the plane and three nodes
    assert np.allclose(z[::-1], -z, rtol=0, atol=1e-12) and np.allclose(y[::-1], y, rtol=0, atol=1e-12)
    assert np.allclose(x[::-1], x, rtol=0, atol=1e-12) == (mirrored or lean == 0)
    (plane,) = (n for n, patch in enumerate(of.whole.patches) if patch.condition.type == "symmetry")
    assert (plane in oblique_walls.mirrored_places(of.whole)) == (not mirrored and lean != 0)


def test_planes_are_treated_alike_in_the_next_block():
    """That has no wall: its grid is mirrored, and what alternates on the plane is damped."""
    grid = cut_along_i(block(), (0, CHORD // 2), ("wing", "wake"))
    wall = {"block": "wing", "faces": ["jmin"], "type": "no-slip-wall"}
    whole = domain(case([wall, SYMMETRY, FAR], {"local": True, "steps": 1}, gas={"reynolds": 1e3}), grid=grid).whole
    planes = [n for n, patch in enumerate(whole.patches) if patch.condition.type == "symmetry"]
    assert len(planes) == 2 and _layered(whole) == set(planes)
    assert all(len(oblique_walls.mirrors(whole, whole.patches[n])) == 1 for n in planes)


def rates(halves, wall=None, **tables):
    """Rates of change of the conserved variables, by [variable, k, j, i], from a flow that is symmetric."""

    def flow(x, y, z):
        rho, p = 1 + 0.1 * np.cos(2 * x + z * z), P * (1 + 0.1 * np.sin(x + 9 * y) * np.cos(z))
        return rho, 0.3 * np.tanh(9 * y) + z * z, 0.1 * np.cos(x) + 0 * z, 0.2 * z * np.cos(x), p

    wall = {"faces": ["jmin"], **(wall or {"type": "no-slip-wall", "temperature": 1.0})}
    spec = case([wall, *([SYMMETRY] if halves == 1 else []), FAR], {"local": True, "steps": 1, "cfl": 0.5},
                gas={"reynolds": 1e2}, **tables)  # fmt: skip
    run = Simulation(spec, "cpu", grid=Grid((block(halves=halves),)), initial=flow)
    run.solver.right_hand_side()
    (state,) = run.solver.states
    return state.interior(run.backend.to_host(state.r)).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("wall", [None, {"type": "modelled-wall", "temperature": 1.1, "exchange_nodes": 3}])
def test_half_a_flow_has_the_rates_of_the_whole(wall):
    half, whole = (rates(halves, wall) for halves in (1, 2))
    off = np.abs(half - whole[:, SPAN - 1 :])
    assert off.max() < 1e-11 * np.abs(half).max()


def plane_rates(wall, lean, bend, halves=1, cut=False):
    """Rates, by [variable, j, i], of plane flow above the wall y = `lean` |x| + `bend` x^2, from a symmetric flow."""

    def flow(x, y, z):
        rho, p = 1 + 0.1 * np.cos(2 * y + x * x), P * (1 + 0.1 * np.sin(9 * y) * np.cos(x))
        return rho, 0.2 * x * np.cos(y), 0.3 * np.tanh(9 * y) + x * x, 0 * x, p

    i = np.arange(CHORD * 1.0) if halves == 1 else np.arange(1.0 - CHORD, CHORD)
    h, x = np.meshgrid(0.02 * (1.3 ** np.arange(LAYERS) - 1), 0.1 * i, indexing="ij")
    grid = Grid((Block("plane", x[None], (h + lean * abs(x) + bend * x * x)[None], 0 * x[None]),))
    if cut:
        grid = cut_along_i(grid.blocks[0], (0, CHORD // 2), ("root", "tip"))
    plane = [SYMMETRY | {"faces": ["imin"], "block": grid.blocks[0].name}] if halves == 1 else []
    spec = case([{"faces": ["jmin"], **wall}, *plane, FAR], {"local": True, "steps": 1}, gas={"reynolds": 1e2})
    run = Simulation(spec, "cpu", grid=grid, initial=flow)
    run.solver.right_hand_side()
    found = [s.interior(run.backend.to_host(s.r)).astype(float)[:, 0] for s in run.solver.states]
    return np.concatenate(found, axis=2)


@pytest.mark.parametrize("wall", [
    {"type": "no-slip-wall", "temperature": 1.0}, {"type": "no-slip-wall"},
    {"type": "modelled-wall", "temperature": 1.1, "exchange_nodes": 3}, {"type": "modelled-wall", "exchange_nodes": 3},
], ids=["isothermal", "adiabatic", "modelled isothermal", "modelled adiabatic"])  # fmt: skip
@pytest.mark.parametrize(("lean", "bend"), [(-0.3, 0.0), (1.0, 0.5)], ids=["straight", "bent"])
def test_half_a_plane_flow_has_the_rates_of_the_whole(wall, lean, bend):
    """A straight wall that leans to the plane is not plane together with its image; and one with a wall model has an
    edge there, at which ghosts mirror nodes."""
    half, whole = (plane_rates(wall, lean, bend, halves) for halves in (1, 2))
    assert np.abs(half - whole[..., CHORD - 1 :]).max() < 1e-11 * np.abs(half).max()
    assert np.abs(plane_rates(wall, lean, bend, cut=True) - half).max() < 1e-11 * np.abs(half).max()


def quarter(power=2, halves=1):
    """Lines that bend as |x|^power and |y|^power from the planes x = 0 and y = 0, in which a quarter has its sides;
    `halves` 2: with the mirror images."""
    s = 0.1 * np.arange(0 if halves == 1 else -10, 11)
    y, x = np.meshgrid(s, s, indexing="ij")
    x, y = x * (1 + 0.2 * abs(y) ** power), y * (1 + 0.3 * abs(x) ** power)
    return Grid((Block("bent", x[None], y[None], 0 * x[None]),))


def in_quarter(halves, open_face=FAR, steps=0, **tables):
    """Conservative variables after `steps`, or their rates, by [variable, j, i], in the quarter x, y >= 0."""

    def flow(x, y, z):
        rho, p = 1 + 0.1 * np.cos(2 * x) * np.cos(y), P * (1 + 0.1 * np.cos(x * y) * np.cos(3 * y))
        return rho, 0.2 * x * np.cos(y), -0.1 * y * np.cos(x), 0 * x, p

    planes = [SYMMETRY | {"faces": ["imin", "jmin"]}] if halves == 1 else []
    spec = case([*planes, open_face], {"steps": 1, "cfl": 0.4}, gas={"reynolds": 1e2}, **tables)
    run = Simulation(spec, "cpu", grid=quarter(halves=halves), initial=flow)
    for _ in range(steps):
        run.step()
    run.solver.right_hand_side()
    (state,) = run.solver.states
    found = state.interior(run.backend.to_host(state.q if steps else state.r)).astype(float)
    return found[:, 0, -11:, -11:]


@pytest.mark.parametrize("scheme", [{}, {"inviscid": "hybrid", "flux": "hllc", "hybrid": {"threshold": 0.001}}])
def test_a_quarter_of_a_flow_has_the_rates_of_the_whole(scheme):
    """Where grid lines bend before both planes of symmetry, most of all where the planes meet the far field. In the
    hybrid form the shock sensor behind the planes is that of the mirrored nodes."""
    part, whole = (in_quarter(halves, scheme=scheme) for halves in (1, 2))
    assert np.abs(part - whole).max() < 1e-11 * np.abs(whole).max()


@pytest.mark.parametrize("kind", ["pressure-outflow", "characteristic-outflow"])
def test_a_quarter_of_a_flow_leaves_as_the_whole(kind):
    """By the relaxation that a case does not give, too, which follows from the extent of the grid."""
    part, whole = (in_quarter(halves, {"faces": "all", "type": kind, "pressure": P}, steps=3) for halves in (1, 2))
    assert np.abs(part - whole).max() < 1e-13


def test_a_quarter_of_a_flow_is_filtered_as_the_whole():
    """The filter ended at planes of symmetry."""
    filtered = {"order": 6, "strength": 0.2}
    part, whole = (in_quarter(halves, steps=3, filter=filtered) for halves in (1, 2))
    assert np.abs(part - whole).max() < 1e-13
    assert np.abs(part - in_quarter(1, steps=3)).max() > 1e-4


def test_the_walls_of_a_grid_are_examined_once(monkeypatch):
    """By the ghosts, the outflows, the filter and the fields of sensors together."""
    examined = []

    def find_walls(whole, found=patches.find_walls):
        examined.append(whole)
        return found(whole)

    monkeypatch.setattr(patches, "find_walls", find_walls)
    sensing = {"inviscid": "hybrid", "flux": "hllc", "hybrid": {"threshold": 0.001}}
    in_quarter(1, {"faces": "all", "type": "pressure-outflow", "pressure": P}, scheme=sensing, filter={"order": 6})
    assert len(examined) == len(set(map(id, examined))) > 0


@pytest.mark.parametrize(("power", "smooth"), [(1, False), (2, True), (3, False), (4, True)])
def test_lines_are_mirrored_where_they_are_smooth_with_their_images(power, smooth):
    of = domain(case([SYMMETRY | {"faces": ["imin", "jmin"]}, FAR], {"steps": 1}), grid=quarter(power))
    x, y, _ = (c[3, 3:10, :7] for c in of.extended[0])
    assert np.allclose(x[:, ::-1], -x, rtol=0, atol=1e-13) and np.allclose(y[:, ::-1], y, rtol=0, atol=1e-13) == smooth
    assert {wall.imaged for wall in of.whole.walls} == {smooth}
    assert len(oblique_walls.unrefinable_places(of.whole)) == 2


RINGS = ["straight", "stretched", "strongly stretched", "displaced", "oblique ends"]
ENDS = [SYMMETRY | {"faces": ["imin", "imax"]}]


def ring(n, kind="straight", halves=1, slope=0.0):
    """A ring with n nodes around, whose last nodes are its first ones, or half of it between planes of symmetry.
    `slope`: tangent of the angle between the normal of the planes and the lines around."""
    layers = 7 if kind == "oblique ends" else 1
    z, r, angle = np.meshgrid(
        0.2 * np.arange(layers), np.linspace(1, 2, 9), 2 * np.pi / n * np.arange(halves * n // 2 + 1), indexing="ij"
    )
    angle = angle + {"stretched": 0.06, "strongly stretched": 0.5}.get(kind, 0.0) * np.sin(angle)
    r = r * (1 + slope * abs(np.sin(angle)))
    x, y = r * np.cos(angle) + 0.3 * r * (kind == "displaced"), -r * np.sin(angle)
    x[..., n:], y[..., :: n // 2] = x[..., :1], 0
    block = Block("ring", x, y, z + 0.3 * x * (kind == "oblique ends"))
    return Grid((block,), matched_connections((block,)) if halves == 2 else ())


@pytest.mark.parametrize("n", [12, 16, 24, 32])
@pytest.mark.parametrize("kind", RINGS)
def test_coarse_rings_are_mirrored_where_they_meet_planes_at_right_angles(kind, n):
    """Three nodes of a line do not tell the bend of 24 nodes around from a slope of 1e-4."""
    for slope in (0.0, 2e-3, -0.02, 0.3):
        whole = domain(case([*ENDS, FAR], {"steps": 1}), grid=ring(n, kind, slope=slope)).whole
        assert {wall.imaged for wall in whole.walls} == {slope == 0}


def smooth_flow(x, y, z):
    u, v, w = 0.2 * np.cos(x) * np.cos(y), 0.2 * y * np.cos(x), 0.1 * np.sin(z + x)
    return 1 + 0.1 * np.cos(2 * x + y * y), u, v, w * (np.ptp(z) > 0), P * (1 + 0.1 * np.sin(x + z) * np.cos(2 * y))


def around(spec, grid):
    """The blocks' primitive variables after a step."""
    run = Simulation(spec, "cpu", grid=grid, initial=smooth_flow)
    run.step()
    return [np.array(b.states("rho", "u", "v", "w", "p")) for b in run.blocks]


def with_wall(kind, reynolds, halves):
    wall = {"faces": ["jmin"], "type": kind} | ({"temperature": 1.0} if kind == "no-slip-wall" else {})
    ends = ENDS if halves == 1 else []
    return case([*ends, wall, FAR], {"steps": 1, "cfl": 0.4}, gas={"reynolds": reynolds})


@pytest.mark.parametrize(("wall", "reynolds"), [("no-slip-wall", 1e2), ("slip-wall", 1e2), ("slip-wall", None)])
@pytest.mark.parametrize("kind", RINGS)
def test_half_a_coarse_ring_has_the_flow_of_the_whole(kind, wall, reynolds):
    """Ghosts behind a slip wall were interpolated from nodes of the half alone, which changed the flow by 2e-4."""
    half, whole = (around(with_wall(wall, reynolds, n), ring(12, kind, n))[0] for n in (1, 2))
    assert np.abs(half - whole[..., :7]).max() < 1e-14


@pytest.mark.parametrize("kind", ["strongly stretched", "oblique ends"])
def test_half_a_ring_that_is_cut_and_turned_has_the_flow_of_the_whole(kind):
    spec, grid = with_wall("slip-wall", None, 1), ring(32, kind)
    turned = turn_blocks(spec, domain(spec, grid=grid).whole, 2, np.random.default_rng(2))
    (half,), (whole,) = (
        turned.wholes(around(turned.case, turned.grid)),
        around(with_wall("slip-wall", None, 2), ring(32, kind, 2)),
    )
    assert np.abs(half - whole[..., :17]).max() < 1e-14
