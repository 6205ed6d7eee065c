"""The damping of what viscous terms do not see, beside a NumPy evaluation of its formula."""

import numpy as np
import pytest
from arrangements import saved
from multiblock import Arrangement

from hiresx import Case
from hiresx.decomposition import domain
from hiresx.device import backend
from hiresx.grid import Block, Grid
from hiresx.rhs.terms.viscous_damping import FIELD
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import random_parts

HEIGHT, WIDTH, NORMAL = 1.0, 2.0, 28
REYNOLDS, PRANDTL, GAMMA = 50.0, 0.72, 1.4
TERMS = {3: [1, -3, 3, -1], 4: [1, -4, 6, -4, 1]}


def case(strength, along=10, boundary="no-slip-wall", **tables):
    lines = {"n": [along, NORMAL, 1], "lower": [0, 0, 0], "upper": [WIDTH, HEIGHT, 0], "periodic": ["x"]}
    sides = {"faces": ["jmin", "jmax"], "type": boundary}
    if boundary == "periodic":
        lines["periodic"] = ["x", "y"]
    return Case.from_dict(
        {
            "gas": {"reynolds": REYNOLDS, "viscosity": {"law": "constant"}},
            "grid": {"generator": "box"} | lines,
            "time": {"integrator": "bdf2", "dt": 0.1, "end": 1.0},
            "implicit": {"viscous_damping": strength},
            "initial": {"function": "flow"},
            "boundary": [{"faces": ["imin", "imax"], "type": "periodic"}, sides],
        }
        | tables
    )


def change(flow, where="cpu", **given):
    """What the damping of the strength 1 adds to the rates of momentum and energy, (4, nj, ni), and u, v, w, T at the
    nodes, as the solver has them."""
    found = []
    for strength in (0.0, 1.0):
        solver = Solver(case(strength, **given), backend(where))
        solver.initialize(flow)
        solver.choose_dt()
        solver.right_hand_side()
        (state,) = solver.states
        found.append(state.interior(solver.backend.to_host(state.r))[1:5, 0])
    fields = solver.primitives(0)
    temperature = GAMMA * fields["p"] / fields["rho"]
    return found[1] - found[0], np.stack([fields["u"], fields["v"], fields["w"], temperature])[:, 0]


def rough(x, y, z):
    rng = np.random.default_rng(3)
    u, v, w, rho, p = rng.uniform(-1, 1, (5, *x.shape))
    return 1 + 0.1 * rho, 0.1 * u, 0.1 * v, 0.1 * w, (1 + 0.1 * p) / GAMMA


def rows(count, width, periodic):
    """(rows, nodes): differences of `width` + 1 nodes in a row, without those that would leave a line with ends."""
    found = np.zeros((count, count))
    for first in range(count if periodic else count - width):
        for n, weight in enumerate(TERMS[width]):
            found[first, (first + n) % count] += weight
    return found[: count if periodic else count - width]


def reference(primitives, width, periodic, along, left=0):
    """The same by NumPy: -4^(1 - m) D^T K D w along both directions, K being uniform. The lines between walls end
    `left` nodes from them, and their ends see nothing; where nothing is left of them, they see nothing."""
    h = np.array([WIDTH / along, HEIGHT / (NORMAL if periodic else NORMAL - 1)])
    heat = 1 / (PRANDTL * (GAMMA - 1))
    total = np.zeros(primitives.shape)
    for axis, (nodes, closed, ratio) in enumerate(((along, True, h[1] / h[0]), (NORMAL, periodic, h[0] / h[1]))):
        w = np.moveaxis(primitives, 2 - axis, 1)
        if not closed and 2 * left == nodes:
            continue
        if not closed:
            w, nodes = w[:, left : nodes - left], nodes - 2 * left
        d = rows(nodes, width, closed)
        of_rows = np.einsum("rn,vn...->vr...", d, w)
        middles = [np.arange(len(d)) + (width + odd) // 2 for odd in (0, width % 2)]
        velocity = sum(w[:3].take(middle % nodes, axis=1) for middle in middles) / 2
        energy = heat * of_rows[3] + np.sum(velocity * of_rows[:3], axis=0)
        flux = np.concatenate([of_rows[:3], energy[None]]) * ratio / REYNOLDS
        found = 4.0 ** (1 - width) * np.einsum("rn,vr...->vn...", d, flux)
        if not closed:
            found[:, [0, -1]] = 0.0
            found = np.pad(found, ((0, 0), (left, left), (0, 0)))
        total -= np.moveaxis(found, 1, 2 - axis)
    if not periodic:
        total[:, [0, -1]] = 0.0
    return total


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize(("interpolation", "width"), [("modified", 3), ("modified7", 4)])
@pytest.mark.parametrize(("boundary", "left"), [("no-slip-wall", NORMAL // 2), ("slip-wall", 0)])
def test_it_is_that_of_the_formula(boundary, left, interpolation, width, where):
    """Between walls, whose nodes it leaves alone, and with friction the lines that end there; and across a periodic
    connection."""
    scheme = {"scheme": {"interpolation": interpolation, "weights": "js", "positivity": "none"}}
    found, primitives = change(rough, where, boundary=boundary, **scheme)
    wanted = reference(primitives, width, False, 10, left)
    assert np.abs(wanted).max() > 1e-3
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13)


def test_lines_to_walls_are_damped_where_the_case_asks_for_it():
    """As those to walls without friction."""
    reach = []
    for boundary, at_walls in (("slip-wall", False), ("no-slip-wall", True), ("no-slip-wall", False)):
        made = case(0.25, boundary=boundary, implicit={"viscous_damping": 0.25, "damping_at_walls": at_walls})
        (state,) = Solver(made, backend("cpu")).states
        reach.append(state.interior(state.array(FIELD)))
    np.testing.assert_array_equal(reach[1], reach[0])
    assert np.abs(reach[1] - reach[2]).max() > 0


@pytest.mark.parametrize(("wall", "along", "damped"), [
    ("no-slip-wall", 80, True),
    ("no-slip-wall", 10, False),  # cells are longer along the slip wall than across
    ("slip-wall", 80, False),
])  # fmt: skip
def test_slip_walls_that_a_wall_with_friction_meets_are_damped_along_thin_cells(wall, along, damped):
    sides = {"faces": ["jmin", "imax", "jmax"], "type": "slip-wall"}
    given = case(0.25, along, implicit={"viscous_damping": 0.25, "damping_at_walls": True})
    box = {"generator": "box", "n": [along, NORMAL, 1], "lower": [0, 0, 0], "upper": [WIDTH, HEIGHT, 0]}
    tables = {"grid": box, "boundary": [{"faces": ["imin"], "type": wall}, sides]}
    made = Case.from_dict(given.model_dump(mode="json", exclude_none=True) | tables)
    (state,) = Solver(made, backend("cpu")).states
    i, j = state.interior(state.array(FIELD))[:2, 0]
    assert not i[:, [0, -1]].any() and not j[[0, -1]].any()
    assert np.array_equal(i[0, 1:-1], i[1, 1:-1]) if damped else not i[0].any()


def rates(axis, half, where="cpu", strength=1.0):
    """The rates of a flow that is symmetric about the plane 0 of the coordinate `axis`, in a box that is stretched away
    from this plane. `half`: the plane is a face."""
    lines = [np.linspace(0, 1, 9), np.linspace(0, 1, 10), np.linspace(0, 1, 8) if axis == 2 else np.zeros(1)]
    lines[axis] = lines[axis] ** 1.5
    if not half:
        lines[axis] = np.r_[-lines[axis][:0:-1], lines[axis]]
    z, y, x = np.meshgrid(*lines[::-1], indexing="ij")
    plane = [{"faces": [["imin", "jmin", "kmin"][axis]], "type": "symmetry"}] if half else []
    made = case(strength, boundary="slip-wall").model_dump(mode="json", exclude_none=True)
    made["boundary"] = [*plane, {"faces": "all", "type": "slip-wall"}]
    solver = Solver(Case.from_dict(made), backend(where), grid=Grid((Block("box", x, y, z),)))

    def flow(*places):
        even = np.cos(40 * sum(n * np.abs(c) for n, c in enumerate(places, 1)))
        odd = np.sign(places[axis]) * np.sin(30 * places[axis] ** 2 + places[(axis + 1) % 2])
        velocity = [0.1 * (odd if d == axis else even) for d in range(2 + (axis == 2))] + [0.0] * (axis < 2)
        return 1 + 0.1 * even, *velocity, (1 - 0.1 * even) / GAMMA

    solver.initialize(flow)
    solver.choose_dt()
    solver.right_hand_side()
    (state,) = solver.states
    found = np.moveaxis(state.interior(solver.backend.to_host(state.r)), 3 - axis, 0)
    return found if half else found[len(found) // 2 :]


@pytest.mark.parametrize(("axis", "where"), [(0, "cpu"), (1, "emulated"), (2, "cpu")])
def test_rows_continue_behind_a_plane_of_symmetry(axis, where):
    half, whole, undamped = rates(axis, True, where), rates(axis, False, where), rates(axis, True, where, 0.0)
    np.testing.assert_allclose(half, whole, rtol=0, atol=1e-13)
    assert np.abs(half - undamped)[:2].max() > 1e-3


@pytest.mark.parametrize("boundary", ["no-slip-wall", "slip-wall"])
def test_parts_of_a_block_reach_as_far_as_the_whole(boundary):
    """Also a part that has no wall of its own."""
    made = case(0.25, boundary=boundary)
    whole = Solver(made, backend("cpu"))
    chance = np.random.default_rng(1)
    parts = Solver(made, backend("cpu"), domain=domain(made, parts=lambda blocks: random_parts(blocks, 5, chance)))
    (one,) = whole.states
    wanted = one.interior(one.array(FIELD))
    assert len(parts.states) > 3
    for s in parts.states:
        box = tuple(slice(lo, lo + n) for lo, n in zip(reversed(s.first), reversed(s.size), strict=True))
        np.testing.assert_array_equal(s.interior(s.array(FIELD)), wanted[(slice(None), *box)])


def reaches(grid):
    """How far the damping reaches in each block above a wall at y = 0, (3, ni, nj, nk)."""
    faces = {"imin": np.s_[..., 0], "imax": np.s_[..., -1], "jmin": np.s_[:, 0], "jmax": np.s_[:, -1]}
    wall = [
        {"faces": [face], "block": block.name, "type": "no-slip-wall"}
        for block in grid.blocks
        for face, nodes in faces.items()
        if not block.y[nodes].any()
    ]
    far = {"faces": "all", "type": "far-field", "state": {"rho": 1.0, "p": 1 / GAMMA}}
    made = Case.from_dict(case(0.25).model_dump(mode="json", exclude_none=True) | {"boundary": [*wall, far]})
    solver = Solver(made, backend("cpu"), grid=grid)
    return [np.abs(s.interior(s.array(FIELD))).transpose(0, 3, 2, 1) for s in solver.states]


@pytest.mark.parametrize(("seed", "shared"), [(0, False), (1, True)])
def test_turned_blocks_reach_as_far_as_one(seed, shared, tmp_path):
    """Also those that lines from the wall enter later."""
    y, x = np.meshgrid(np.linspace(0, HEIGHT, NORMAL), np.linspace(0, WIDTH, 31), indexing="ij")
    parts = Arrangement(Block("whole", x[None], y[None], 0 * x[None]), 5, seed, shared)
    assert any(lo > 0 for _, (lo, _), _ in parts.boxes)
    tables = {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
    (whole,) = reaches(Grid((parts.whole,)))
    assert whole[0].any() and not whole[1].any()
    for n, found in enumerate(reaches(saved(tmp_path, parts.blocks, tables))):
        node = np.stack(np.meshgrid(*(np.arange(*r) for r in parts.held[n]), indexing="ij"))
        for d in (0, 1):
            e = int(np.flatnonzero(parts.turns[n][:, d])[0])
            np.testing.assert_array_equal(found[e][*parts.index(n, node)], whole[d][*node])


def test_an_alternating_part_decays_as_by_the_compact_difference_and_nothing_is_lost():
    def alternating(x, y, z):
        return 1.0, 0.0 * x, 1e-3 * (-1.0) ** np.round(x / (WIDTH / 10)), 0.0, 1 / GAMMA

    found, primitives = change(alternating, boundary="periodic")
    h = WIDTH / 10
    volume = h * HEIGHT / NORMAL
    np.testing.assert_allclose(found[1], -4 / (REYNOLDS * h**2) * volume * primitives[1], rtol=1e-12)
    found, _ = change(rough, boundary="periodic")
    assert np.abs(found.sum(axis=(1, 2))).max() < 1e-14 * NORMAL * 10


def test_a_smooth_flow_sees_little_of_it():
    """Of fourth order: the share of the viscous terms is k^4 h^4/16."""
    shares = []
    for along in (16, 32):

        def wave(x, y, z):
            return 1.0, 0.0, 1e-3 * np.sin(2 * np.pi * x / WIDTH), 0.0, 1 / GAMMA

        found, primitives = change(wave, along=along, boundary="periodic")
        viscous = (2 * np.pi / WIDTH) ** 2 / REYNOLDS * (WIDTH / along) * HEIGHT / NORMAL
        shares.append(np.abs(found[1]).max() / (viscous * np.abs(primitives[1]).max()))
    assert shares[1] == pytest.approx((2 * np.pi / 32) ** 4 / 16, rel=0.02)
    assert shares[0] / shares[1] == pytest.approx(16, rel=0.1)
