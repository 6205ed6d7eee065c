"""Grids that close on themselves: O-grid, C-grid, H-grid, whole and cut into blocks, and the cases on them."""

import numpy as np
import pytest

from hiresx import Case, Simulation, load
from hiresx.case.grids import AirfoilC, ChannelBump, Cone, CylinderO, Sphere
from hiresx.decomposition import decompose, extended_coordinates
from hiresx.errors import HiresxError
from hiresx.grid import build, check_jacobian, matched_connections, quality
from hiresx.grid.cutting import even_starts
from hiresx.grid.diffusion import diffuse
from hiresx.grid.generators import cylinder_o
from hiresx.grid.generators.airfoil_c import Section

STATE = {"rho": 1.0, "u": 0.4, "v": 0.2, "w": 0.1, "p": 1 / 1.4}


def o_grid(**keys) -> CylinderO:
    return CylinderO(**{"outer_radius": 4.0, "n_around": 40, "n_normal": 17, "first_spacing": 0.05, **keys})


def c_grid(**keys) -> AirfoilC:
    small = {"naca": "0012", "n_airfoil": 41, "n_wake": 16, "n_normal": 17, "wake": 3.0, "far_field": 3.0}
    return AirfoilC(**{**small, "first_spacing": 0.02, "trailing_edge_spacing": 0.02, **keys})


def h_grid(**keys) -> ChannelBump:
    return ChannelBump(**{"cells": (12, 16, 12), "n_normal": 17, **keys})


SPAN = {"n_span": 7, "span": 0.6}
# Name -> spec of each grid, whole; and the numbers of blocks that it is cut into.
WHOLE = {
    "o": (o_grid(), (1, 2, 5)),
    "o, extruded": (o_grid(n_around=28, n_normal=9, **SPAN), (3,)),
    "c": (c_grid(), (1, 2, 3, 4, 10)),
    "c, cambered": (c_grid(naca="4412"), (5,)),
    "c, extruded": (c_grid(naca="2412", n_airfoil=30, n_wake=9, n_normal=9, **SPAN), (1, 3)),
    "h": (h_grid(), (1, 3)),
    "h, arc": (h_grid(shape="circular-arc", first_spacing=0.02), (3,)),
    "h, extruded": (h_grid(cells=(8, 10, 8), n_normal=9, nk=7, width=0.5), (3,)),
}
EVERY = [(name, blocks) for name, (_, counts) in WHOLE.items() for blocks in counts]
REGIONS = {
    "o": {"wall", "far-field"},
    "c": {"wall", "far-field", "outflow"},
    "h": {"inlet", "outlet", "lower-wall", "upper-wall"},
}


def spec(name: str, blocks: int = 1):
    return WHOLE[name][0].model_copy(update={"blocks": blocks})


def case(grid, *conditions, **tables) -> Case:
    extruded = getattr(grid, "nk", 1) * getattr(grid, "n_span", 1) > 1
    ends = [{"faces": ["kmin", "kmax"], "type": "periodic"}] if extruded else []
    return Case.from_dict(
        {
            "grid": {key: value for key, value in grid.model_dump(mode="json").items() if value is not None},
            "time": {"steps": 20},
            "initial": {"state": STATE},
            "boundary": [*conditions, *ends, {"faces": "all", "type": "far-field", "state": STATE}],
            **tables,
        }
    )


def joined(arrays) -> np.ndarray:
    """Arrays of the blocks, one behind the other along i."""
    return np.concatenate(list(arrays), axis=-1)


# --- every grid, whole and cut


@pytest.mark.parametrize(("name", "blocks"), EVERY)
def test_volumes_are_positive(name, blocks):
    grid = build(spec(name, blocks))
    check_jacobian(grid)
    assert len(grid.blocks) == blocks


@pytest.mark.parametrize(("name", "blocks"), EVERY)
def test_the_cut_changes_no_ghost_node(name, blocks):
    """Ghost coordinates of a cut grid, edges and corners included, are nodes and ghosts of the whole one."""
    whole, grid = build(spec(name)), build(spec(name, blocks))
    assert spec(name).nodes == whole.blocks[0].x.size
    (wanted,) = extended_coordinates(decompose(case(spec(name)), whole))
    found = extended_coordinates(decompose(case(spec(name, blocks)), grid))
    first = 0
    for block, coordinates in zip(grid.blocks, found, strict=True):
        part = slice(first, first + block.size[0] + 6)
        for own, other in zip(coordinates, wanted, strict=True):
            np.testing.assert_array_equal(own, other[..., part])
        first += block.size[0]
    assert first == whole.blocks[0].size[0]


@pytest.mark.parametrize(("name", "blocks"), EVERY)
def test_regions_cover_every_face_that_is_not_connected(name, blocks):
    grid_spec = spec(name, blocks)
    grid = build(grid_spec)
    names = REGIONS[name[0]]
    conditions = [{"faces": "all", "range": region, "type": "slip-wall"} for region in sorted(names)]
    covered = case(grid_spec, *conditions)
    covered = covered.model_copy(update={"boundary": covered.boundary[:-1]})  # nothing is left for the far field
    patches = decompose(covered, grid).patches
    assert {p.condition.range for p in patches} == names
    assert {name for block in grid.blocks for name in block.regions} - {"bump"} == names


@pytest.mark.parametrize("name", ["o, extruded", "c, extruded", "h, extruded"])
def test_the_span_is_periodic(name):
    grid = build(spec(name, 3))
    period = 0.5 if name[0] == "h" else 0.6
    assert all(p == {"k": (0.0, 0.0, period)} for p in grid.period)
    for block in grid.blocks:
        np.testing.assert_allclose(np.diff(block.z, axis=0), period / 7)
        np.testing.assert_array_equal(block.x, np.broadcast_to(block.x[0], block.x.shape))


# With and without viscosity: kernels that other tests compile too.
SCHEME = {None: {"flux": "hllc"}, 100.0: {}}


@pytest.mark.parametrize("reynolds", SCHEME)
@pytest.mark.parametrize(("name", "blocks"), [(name, counts[-1]) for name, (_, counts) in WHOLE.items()])
def test_free_stream(name, blocks, reynolds):
    gas = {} if reynolds is None else {"reynolds": reynolds}
    outlet = {"o": "jmin", "c": "jmax", "h": "imax"}[name[0]]
    simulation = Simulation(
        case(spec(name, blocks), {"faces": [outlet], "type": "supersonic-outflow"}, gas=gas, scheme=SCHEME[reynolds]),
        backend="cpu",
    )
    simulation.run()
    for block in simulation.blocks:
        for variable, value in STATE.items():
            assert np.abs(block.state(variable) - value).max() < 1e-12


def blob(x, y, z):
    """A hot, swirling spot on the trailing edge, the lee of the cylinder and the end of the bump."""
    a = 0.3 * np.exp(-((x - 1) ** 2 + (y - 0.05) ** 2) / 0.1)
    return 1 + a, 0.4 - y * a, 0.1 + (x - 1) * a, 0.1 * a, (1 + a) / 1.4


@pytest.mark.parametrize("reynolds", SCHEME)
@pytest.mark.parametrize(("name", "blocks"), [("o", 5), ("c, cambered", 5), ("h, arc", 3)])
def test_blocks_do_not_change_the_flow(name, blocks, reynolds):
    states = []
    for count in (1, blocks):
        wall = {"faces": ["jmin"], "range": "lower-wall" if name[0] == "h" else "wall", "type": "no-slip-wall"}
        gas = {} if reynolds is None else {"reynolds": reynolds}
        small = case(spec(name, count), wall, gas=gas, scheme=SCHEME[reynolds])
        simulation = Simulation(small, backend="cpu", initial=blob)
        simulation.run()
        states.append([joined(b.state(v) for b in simulation.blocks) for v in STATE])
    whole, parts = np.array(states)
    assert np.abs(whole[0] - 1).max() > 0.05
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-13)


def test_too_many_blocks():
    assert even_starts(40, 5) == [0, 8, 16, 24, 32]
    with pytest.raises(HiresxError, match=r"grid\.blocks = 6: 40 nodes") as error:
        build(o_grid(blocks=6))
    assert "at most 5 blocks" in error.value.hint
    with pytest.raises(HiresxError, match="6, 17 and 12 nodes"):
        build(h_grid(cells=(6, 16, 12), blocks=3))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError("no memory for the nodes"), HiresxError),
        (ValueError("Maximum allowed dimension exceeded"), HiresxError),
        (ValueError("of another kind"), ValueError),
    ],
    ids=["memory", "addresses", "another"],
)
def test_a_grid_that_memory_does_not_hold_is_refused_and_other_errors_stay(monkeypatch, error, told):
    def fail(spec):
        raise error

    monkeypatch.setattr(cylinder_o, "generate", fail)
    with pytest.raises(told, match=str(error)) as caught:
        build(o_grid())
    assert type(caught.value) is told and (told is ValueError or "ask for fewer nodes" in caught.value.hint)


# --- O-grid


def test_cylinder_all_around():
    (block,) = build(o_grid(radius=0.7)).blocks
    radius = np.hypot(block.x[0], block.y[0])
    np.testing.assert_allclose(radius, np.broadcast_to(radius[:, :1], radius.shape), rtol=1e-14)
    np.testing.assert_allclose(radius[[0, 1, -1], 0], [0.7, 0.75, 4.0], rtol=1e-12)
    assert block.x[0, 0, 0] == 0.7 and block.y[0, 0, 1] < 0
    angle = np.unwrap(np.arctan2(block.y[0, 3], block.x[0, 3]))
    np.testing.assert_allclose(np.diff(angle), -2 * np.pi / 40)


def test_outer_circle_within_the_cylinder_is_refused():
    with pytest.raises(ValueError, match="larger than the radius"):
        o_grid(radius=5.0)


# --- C-grid


@pytest.mark.parametrize("digits", ["0012", "2412", "4415", "0006", "0024", "6409"])
@pytest.mark.parametrize("first_spacing", [1e-5, 1e-3])
def test_airfoils(digits, first_spacing):
    wanted = c_grid(
        naca=digits, n_airfoil=129, n_wake=48, n_normal=97, wake=20.0, far_field=20.0, first_spacing=first_spacing,
        trailing_edge_spacing=5e-3,
    )  # fmt: skip
    grid = build(wanted)
    check_jacobian(grid)
    (record,) = quality(grid)
    assert record["skewness"]["value"] < 40 and record["stretching"]["value"] < 1.4
    (block,) = grid.blocks
    x, y = block.x[0], block.y[0]
    edge = slice(48, -48)
    assert (x[0, 48], y[0, 48], x[0, -49], y[0, -49]) == (1.0, 0.0, 1.0, 0.0)
    np.testing.assert_array_equal(x[0, :48], x[0, :-49:-1])
    np.testing.assert_array_equal(y[0, :48], y[0, :-49:-1])
    assert x[0, 0] == pytest.approx(21, abs=1e-9) and x.min() == pytest.approx(-20, rel=0.02)
    # Shoelace formula: the area of the section is 0.685 of chord times thickness.
    area = 0.5 * np.sum(x[0, edge] * np.roll(y[0, edge], -1) - y[0, edge] * np.roll(x[0, edge], -1))
    assert -area == pytest.approx(0.685 * int(digits[2:]) / 100, rel=0.01)
    spacing = np.hypot(x[1] - x[0], y[1] - y[0])[edge] / first_spacing
    assert spacing[0] == pytest.approx(1, abs=0.2) and spacing.min() == pytest.approx(0.02 * int(digits[2:]), rel=0.3)
    along = np.hypot(np.diff(x[0]), np.diff(y[0]))
    np.testing.assert_allclose(along[47:49], 5e-3, rtol=0.05)


def test_section():
    """NACA 4412: 12 % thick about a mean line 4 % high at 40 % of the chord; closed at the trailing edge."""
    section = Section("4412")
    s = np.sqrt(np.linspace(0, 1, 2001))
    upper, lower = section.outline(s), section.outline(-s)
    middle = 0.5 * (upper + lower)
    assert middle.imag.max() == pytest.approx(0.04) and middle.real[middle.imag.argmax()] == pytest.approx(0.4)
    assert np.abs(upper - lower).max() == pytest.approx(0.12, rel=2e-3)
    assert upper[-1] == lower[-1] == 1.0
    nose = np.abs(upper - lower)[1] / 2
    assert nose**2 / (2 * s[1] ** 2) == pytest.approx(1.1019 * 0.12**2, rel=0.05)
    # The cut leaves along the mean line and turns into the direction of the chord.
    cut = section.outline(np.sqrt([1.0, 1.001, 30.0, 31.0]))
    slope = np.diff(cut)[[0, 2]]
    assert slope[0].imag / slope[0].real == pytest.approx(-2 * 0.04 / 0.6, rel=1e-2)
    assert slope[1].imag == pytest.approx(0, abs=1e-9)


def test_sections_between_those_of_digits():
    """Thickness and camber that are given in chords; the digits 00 say no place of the camber."""
    (block,) = build(c_grid(naca="4412")).blocks
    for naca, given in (
        ("0012", {"camber": 0.04}),
        ("4430", {"thickness": 0.12}),
        ("2430", {"thickness": 0.12, "camber": 0.04}),
    ):
        (other,) = build(c_grid(naca=naca, **given)).blocks
        np.testing.assert_array_equal(other.y, block.y)
    (flat,) = build(c_grid(naca="0012", camber=0.0)).blocks
    np.testing.assert_array_equal(flat.y, build(c_grid(naca="0012")).blocks[0].y)


def test_a_section_extended_to_its_sharp_edge():
    """That of NASA's Turbulence Modeling Resource: extended to x = 1.008930411, and shrunk to the chord."""
    (block,) = build(c_grid(trailing_edge="extended")).blocks
    x, y = block.x[0, 0, 16:-16], block.y[0, 0, 16:-16]
    wanted = 0.298222773 * np.sqrt(x) - 0.127125232 * x - 0.357907906 * x**2 + 0.291984971 * x**3 - 0.105174606 * x**4
    np.testing.assert_allclose(np.abs(y), 0.594689181 * wanted, rtol=0, atol=2e-10)


def test_the_first_distance_grows_behind_the_trailing_edge():
    """And on the airfoil nothing changes."""
    (block,) = build(c_grid(first_spacing=1e-5)).blocks
    (other,) = build(c_grid(first_spacing=1e-5, first_spacing_doubles=0.5)).blocks
    ratio = np.hypot(other.x[0, 1] - other.x[0, 0], other.y[0, 1] - other.y[0, 0]) / np.hypot(
        block.x[0, 1] - block.x[0, 0], block.y[0, 1] - block.y[0, 0]
    )
    np.testing.assert_allclose(ratio, 1 + (2 * np.maximum(block.x[0, 0] - 1, 0)) ** 2, rtol=1e-6)


def test_the_grid_turns_about_the_centre_of_the_nose():
    """Half of its radius, 1.1019 t^2 (NACA Report 460), behind the leading edge along the mean line of 4412, whose
    slope there is 2 m/p = 0.2."""
    focus = Section("4412").focus
    assert abs(focus) == pytest.approx(0.5 * 1.1019 * 0.12**2) and focus.imag == pytest.approx(0.2 * focus.real)


def test_symmetric_airfoil_has_a_symmetric_grid():
    (block,) = build(c_grid()).blocks
    np.testing.assert_allclose(block.x, block.x[..., ::-1], atol=1e-13)
    np.testing.assert_allclose(block.y, -block.y[..., ::-1], atol=1e-13)


@pytest.mark.parametrize("digits", ["0012", "4412"])
def test_grid_lines_cross_the_cut_smoothly(digits):
    """The node on the cut lies where three nodes to each side, across the cut, say: to a thousandth of the spacing."""
    grid = build(c_grid(naca=digits, n_airfoil=129, n_wake=48, n_normal=49, wake=10.0, far_field=10.0))
    (x, y, _) = extended_coordinates(decompose(case(c_grid()), grid))[0]
    for own in (slice(3, 3 + 44), slice(-3 - 44, -3)):  # up to four nodes behind the trailing edge
        lines = np.array([x[3, :7, own], y[3, :7, own]])
        middle = np.tensordot(np.array([1, -6, 15, 0, 15, -6, 1]) / 20, lines, axes=([0], [1]))
        error = np.hypot(*(middle - lines[:, 3])) / np.hypot(*(lines[:, 4] - lines[:, 3]))
        assert error.max() < 1e-3


def test_the_cut_is_found_from_its_nodes():
    """As in a grid file; the trailing edge, which is a wall here, is then part of it."""
    grid = build(c_grid())
    found = {c.range[0]: c for c in matched_connections(grid.blocks)}
    (lower, upper) = grid.connections
    assert set(found) == {(0, 17), (56, 73)}
    for given, nodes in ((lower, (0, 17)), (upper, (56, 73))):
        assert (given.matrix, given.offset) == (found[nodes].matrix, found[nodes].offset)
    ((_, (wall, _, _)),) = grid.blocks[0].regions["wall"]
    assert wall == (16, 57) and lower.range[0] == (0, 16) and upper.range[0] == (57, 73)


def test_airfoil_refusals():
    for digits in ("0000", "012", "00125", "0041", "abcd"):
        with pytest.raises(ValueError, match="naca"):
            c_grid(naca=digits)
    with pytest.raises(HiresxError, match="too large for 41 nodes"):
        build(c_grid(trailing_edge_spacing=0.3))
    with pytest.raises(HiresxError, match=r"grid\.first_spacing = 1 "):
        build(c_grid(first_spacing=1.0))


# --- H-grid


@pytest.mark.parametrize("shape", ["sine-squared", "circular-arc"])
def test_channel(shape):
    grid = build(h_grid(shape=shape, cells=(20, 32, 24), upstream=2.0, downstream=3.0, height=1.5, blocks=3))
    assert [b.name for b in grid.blocks] == ["upstream", "bump", "downstream"]
    assert [b.size[0] for b in grid.blocks] == [20, 33, 24]
    x, y = (joined(getattr(b, c)[0] for b in grid.blocks) for c in "xy")
    assert (x[0, 0], x[0, -1]) == (-2.0, 4.0)
    np.testing.assert_allclose(np.diff(x[0])[19:53], 1 / 32, rtol=0.03)
    np.testing.assert_allclose(y[-1], 1.5)
    wall = np.interp(x[0], [0, 1], [0, 1])
    radius = (0.25 + 0.01) / 0.2
    arc = np.sqrt(radius**2 - (wall - 0.5) ** 2) - radius + 0.1
    np.testing.assert_allclose(y[0], 0.1 * np.sin(np.pi * wall) ** 2 if shape == "sine-squared" else arc, atol=1e-15)
    ((face, nodes),) = grid.blocks[1].regions["bump"]
    assert (face, nodes) == ("jmin", ((0, 33), (0, 1), (0, 1)))
    assert "bump" not in grid.blocks[0].regions and "inlet" not in grid.blocks[1].regions


def test_a_bump_on_a_plate():
    """That of NASA's Turbulence Modeling Resource, whose plate is 1.5 long and begins at 0; drawn together at its ends,
    to both sides alike, with a first distance that grows beyond them."""
    wanted = h_grid(
        shape="sine-fourth", thickness=0.05 / 1.5, cells=(20, 60, 20), n_normal=33, upstream=10.0, downstream=10.0,
        height=3.0, first_spacing=1e-5, first_spacing_doubles=0.5, end_spacing=5e-3,
    )  # fmt: skip
    grid = build(wanted)
    check_jacobian(grid)
    x, y = grid.blocks[0].x[0, 0], grid.blocks[0].y[0, :2]
    own = 1.5 * x
    bump = np.where((own > 0.3) & (own < 1.2), 0.05 * np.sin(np.pi * own / 0.9 - np.pi / 3) ** 4, 0.0)
    np.testing.assert_allclose(1.5 * y[0], bump, rtol=0, atol=1e-15)
    along = np.diff(x)
    np.testing.assert_allclose(along[[19, 20, 79, 80]], 5e-3, rtol=0.06)
    np.testing.assert_allclose(along, along[::-1], rtol=1e-9)
    assert (np.diff(along[20:50]) > 0).all()
    beyond = np.maximum(np.maximum(-x, x - 1), 0)
    np.testing.assert_allclose(y[1] - y[0], 1e-5 * (1 + 4 * beyond**2), rtol=0.02)
    with pytest.raises(HiresxError, match=r"grid\.end_spacing = 0\.1 is larger than the uniform"):
        build(h_grid(end_spacing=0.1))


@pytest.mark.parametrize(("keys", "spacing", "count"), [
    ({"cells": (40, 8, 12)}, "1 over the second of grid.cells", "the first of grid.cells"),
    ({"cells": (8, 12, 40), "end_spacing": 0.08}, "grid.end_spacing", "the last of grid.cells"),
    ({"first_spacing": 0.9}, "grid.first_spacing", "grid.n_normal"),
])  # fmt: skip
def test_a_spacing_that_does_not_fit_is_refused_with_its_keys(keys, spacing, count):
    with pytest.raises(HiresxError, match=f"{spacing} = .* is larger than the uniform spacing") as error:
        build(h_grid(**keys))
    assert error.value.hint == f"lower {spacing} or {count}"


def test_a_corner_of_the_wall_stays_there():
    """The bend of the lines j = const at the end of a circular arc, in degrees: the arc's own at the wall, a small part
    of it at the height of the bump."""
    (block,) = build(h_grid(shape="circular-arc", cells=(32, 64, 32), n_normal=41)).blocks
    angle = np.degrees(np.arctan2(np.diff(block.y[0], axis=1), np.diff(block.x[0], axis=1)))
    bend = np.abs(np.diff(angle, axis=1)[:, 31])
    height = np.searchsorted(block.y[0, :, 32], 0.1)
    assert bend[0] > 20 and bend[height] < 4 and bend[-1] < 1e-9


def test_diffusion():
    x = np.sort(np.concatenate([np.linspace(-10, 10, 801), np.linspace(-1, 1, 201) + 0.001]))
    widths = np.broadcast_to(np.linspace(0, 1, 41)[:, None], (41, len(x)))
    kink = diffuse(x, np.abs(x), widths)
    np.testing.assert_array_equal(kink[0], np.abs(x))
    # |x| smoothed by a Gaussian of width s is s sqrt(2/pi) at 0.
    np.testing.assert_allclose(kink[1:, np.argmin(np.abs(x))], widths[1:, 0] * np.sqrt(2 / np.pi), rtol=0.03, atol=3e-3)
    np.testing.assert_allclose(kink[:, [0, -1]], 10.0)
    np.testing.assert_allclose(diffuse(x, 3 - 2 * x, widths), np.broadcast_to(3 - 2 * x, widths.shape), atol=1e-12)


# --- the bundled cases on them


def entropy(block) -> np.ndarray:
    """Relative excess over the free stream's."""
    return 1.4 * block.state("p") / block.state("rho") ** 1.4 - 1


def coefficients(block, mach: float, edge: slice) -> tuple[float, float]:
    """Drag and lift of the pressure on the nodes `edge` of jmin, per chord, by trapezoids."""
    x, y = block.x[0, 0, edge], block.y[0, 0, edge]
    cp = (block.state("p")[0, 0, edge] - 1 / 1.4) / (0.5 * mach**2)
    cp = 0.5 * (cp[1:] + cp[:-1])
    return float(np.sum(cp * np.diff(y))), float(-np.sum(cp * np.diff(x)))


COARSE = (
    "grid.n_airfoil=65", "grid.n_wake=16", "grid.n_normal=25", "grid.wake=6.0", "grid.far_field=6.0",
    "grid.first_spacing=0.015", "grid.trailing_edge_spacing=0.02", "time.steps=1500", "force=[]", "output.subset=[]",
)  # fmt: skip


@pytest.mark.slow
def test_subsonic_airfoil_has_no_drag():
    simulation = Simulation(load("naca0012", "subsonic", COARSE), backend="cpu")
    simulation.run()
    (block,) = simulation.blocks
    wall = slice(16, -16)
    drag, lift = coefficients(block, 0.5, wall)
    assert abs(drag) < 1e-3 and abs(lift) < 1e-9
    # All of the wall has the entropy of the stagnation line: 1.1 % here, 0.1 % with half the spacing.
    assert np.sqrt(np.mean(entropy(block)[0, 0, wall] ** 2)) < 0.0125
    cp = (block.state("p")[0, 0, wall] - 1 / 1.4) / 0.125
    assert cp.argmax() == 32 and cp.max() == pytest.approx(1.064, abs=0.04)  # the isentropic stagnation point
    assert cp.min() == pytest.approx(-0.47, abs=0.03)


def test_subsonic_bump_has_no_drag():
    simulation = Simulation(load("bump", "subsonic", ["grid.cells=[16,32,16]", "time.steps=1500", "force=[]"]), "cpu")
    simulation.run()
    (block,) = simulation.blocks
    drag, _ = coefficients(block, 0.5, slice(16, 49))
    assert abs(drag) < 5e-3
    assert np.abs(entropy(block)).max() < 2e-3


@pytest.mark.slow
def test_cylinder_starts_as_it_should():
    """Attached flow at the front, stagnation pressure there, and a pair of vortices that grow behind."""
    simulation = Simulation(load("cylinder-o", "quick", ["grid.n_around=48", "grid.n_normal=33", "force=[]"]), "cpu")
    simulation.run()
    (block,) = simulation.blocks
    cp = (block.state("p")[0, 0] - 1 / 1.4) / (0.5 * 0.2**2)
    # More than 1.01, that of an inviscid flow: by viscosity, and the flow is still being accelerated.
    assert cp.argmax() == 24 and 1.02 < cp.max() < 1.25
    assert np.abs(block.state("u")[0, 0]).max() < 1e-12
    behind = block.state("u")[0, :, 0]
    assert behind.min() < -0.01 and behind[-1] == pytest.approx(0.2, abs=0.01)


def test_the_seam_of_a_sphere_joins_its_block_with_itself():
    grid = build(Sphere(n_meridian=9, n_normal=9, n_around=8, standoff_axis=1.0, standoff_side=1.5))
    assert [(c.block, c.face, c.donor) for c in grid.connections] == [(0, "kmin", 0), (0, "kmax", 0)]


@pytest.mark.parametrize(("angle", "end"), [(180.0, "downstream-pole"), (120.0, "outlet")])
def test_a_sphere_ends_at_its_other_pole_or_with_an_outlet(angle, end):
    spec = Sphere(n_meridian=9, n_normal=9, n_around=8, standoff_axis=1.0, standoff_side=1.5, angle=angle)
    assert set(build(spec).blocks[0].regions) == {"wall", "outer", "upstream-pole", end}


def test_a_cone_has_the_cells_of_a_stencil():
    keys = {"half_angle": 20.0, "upstream": 0.5, "height": 1.0, "end_height": 1.5, "n_normal": 9}
    assert build(Cone(cells=(2, 4), **keys)).blocks[0].size[0] == 7
    with pytest.raises(ValueError, match="6 or more in all"):
        Cone(cells=(2, 3), **keys)
