"""Means over a face of outflow are integrals by area, those of a face in one block if blocks share nodes, and those of
the face with its images at planes of symmetry and over rotational periods."""

import numpy as np
import pytest
from test_outflow import OUTFLOW, P, case, far, vortex

from hiresx import Case, Simulation
from hiresx.decomposition import decompose
from hiresx.grid import Block, Connection, Grid, build, matched_connections
from hiresx.grid.blocks import face_range
from hiresx.grid.motions import motion, rotation_about
from hiresx.grid.shared_nodes import coincident_nodes
from hiresx.rhs import outflow
from hiresx.verify.turned_blocks import turn_blocks


@pytest.mark.parametrize(
    "condition", [OUTFLOW, {"type": "pressure-outflow", "mass_flux": 0.4}], ids=["characteristic", "mass-flux"]
)
def test_shared_nodes_on_an_outflow_count_once(condition):
    spec = case([25, 21, 1], [-4, -4, 0], [4, 4, 0], 1.0, {"imin": far(0.4), "imax": condition, "jmin,jmax": OUTFLOW})
    whole = build(spec.grid).blocks[0]
    pieces = [
        Block(f"{lo[0]}-{lo[1]}", *(c[:, lo[1] : hi[1], lo[0] : hi[0]] for c in (whole.x, whole.y, whole.z)))
        for lo, hi in (((0, 0), (13, 8)), ((12, 0), (25, 8)), ((0, 7), (13, 21)), ((12, 7), (25, 21)))
    ]
    found = []
    for grid in (Grid([whole]), Grid(pieces, matched_connections(pieces))):
        simulation = Simulation(spec, "cpu", initial=vortex(0.3, y0=3.0), grid=grid)
        simulation.run(steps=20, progress=False, write_last=False)
        values = {}
        for block in simulation.blocks:
            places = zip(block.x.ravel(), block.y.ravel(), block.state("p").ravel(), strict=True)
            values |= {(x, y): p for x, y, p in places}
        found.append(np.array([values[at] for at in sorted(values)]))
    assert abs(found[0] - P).max() > 1e-2
    assert abs(found[0] - found[1]).max() < 1e-13


def test_shared_nodes_are_found_once(monkeypatch):
    spec = case([25, 21, 1], [-4, -4, 0], [4, 4, 0], 1.0, {"imin": far(0.4), "imax,jmin,jmax": OUTFLOW})
    whole = build(spec.grid).blocks[0]
    pieces = [Block(f"{n}", *(c[:, :, s] for c in (whole.x, whole.y, whole.z)))
              for n, s in enumerate((np.s_[:13], np.s_[12:]))]  # fmt: skip
    calls = []
    monkeypatch.setattr(outflow, "coincident_nodes", lambda *given: calls.append(coincident_nodes(*given)) or calls[-1])
    Simulation(spec, "cpu", initial=vortex(0.3, y0=3.0), grid=Grid(pieces, matched_connections(pieces)))
    assert len(calls) == 1 and len(calls[0][0]) == 2 * len(set(calls[0][1])) == 42


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize("axisymmetric", [False, True])
def test_the_mean_mass_flux_is_an_integral(axisymmetric, backend):
    """With the weight 1 at all nodes, and without the radius, it is 8/9 and 1.21 of the given one."""
    wall = {"faces": ["jmin"], "type": "axis"} if axisymmetric else {"faces": ["jmin"], "type": "no-slip-wall"}
    spec = Case.from_dict({
        "axisymmetric": axisymmetric,
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},
        "gas": {"reynolds": 100.0},
        "time": {"steps": 1},
        "initial": {"state": {"rho": 1.0, "p": P}},
        "boundary": [
            {"faces": ["imin"], "type": "total-pressure-inflow", "total_pressure": 0.72},
            {"faces": ["imax"], "type": "pressure-outflow", "mass_flux": 0.1},
            {"faces": ["jmax"], "type": "no-slip-wall"},
            wall,
        ],
    })  # fmt: skip

    def profile(x, y, z):
        u = 0.2 * (1 - y * y) if axisymmetric else 0.6 * y * (1 - y)
        return 1.0, u, 0.0, 0.0, P

    simulation = Simulation(spec, backend, initial=profile)
    simulation.solver.right_hand_side()
    given = simulation.solver.backend.to_host(simulation.solver._conditions.outflow.given)
    assert given[0, outflow.GIVEN + outflow.MEANS - 1] == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize("kind", ["characteristic-outflow", "pressure-outflow"])
def test_half_of_a_flow_has_the_outflow_of_the_whole(kind):
    """Gas enters through the outflow, and its mean velocity along the face vanishes by symmetry. With that of the half
    alone the velocity was off by 4e-3."""

    def flow(x, y, z):
        bump = np.exp(-4 * x * x)
        return 1 + 0.1 * bump, 0.2 * x * (1 + y), 0.2 + 0.1 * bump * y, 0 * x, P * (1 + 0.1 * bump * np.cos(y))

    found = []
    for first, n, mirror in ((0.0, 13, {"type": "symmetry"}), (-1.0, 25, far(0.0))):
        beyond = {"jmin": {"type": kind, "pressure": P}, "imax,jmax": far(0.0)}
        spec = case([n, 11, 1], [first, 0, 0], [1, 1, 0], 1.0, {"imin": mirror} | beyond)
        simulation = Simulation(spec, "cpu", initial=flow)
        for _ in range(3):
            simulation.step()
        block = simulation.blocks[0]
        found.append(np.stack([block.state(name)[0, :, -13:] for name in ("rho", "u", "v", "p")]))
    assert abs(found[0] - found[1]).max() < 1e-6


def swirl(x, y, z):
    """Four times the same around the axis."""
    r, four = np.hypot(x, y), 4 * np.arctan2(y, x)
    u, v, p = 0.1 * np.sin(four + r), 0.3 * r * (1 + 0.2 * np.sin(four)), P * (1 + 0.05 * np.cos(four - r))
    return 1 + 0.05 * np.sin(four), (u * x - v * y) / r, (u * y + v * x) / r, 0 * x, p


def test_a_quarter_of_a_ring_has_the_means_of_the_ring():
    """With the mean velocity of the quarter alone the pressure differed by 1e-2."""
    angle, r = np.meshgrid(np.pi / 2 * np.arange(32) / 8, np.linspace(1, 2, 8), indexing="ij")
    x, y = (c[None] for c in (r * np.cos(angle), r * np.sin(angle)))
    sides = {"imin,imax": OUTFLOW, "jmin,jmax": {"type": "periodic"}}
    found = []
    for n, degrees in ((32, 360.0), (8, 90.0)):
        period = motion(rotation_about((0.0, 0.0, 1.0), degrees))
        grid = Grid([Block("ring", x[:, :n], y[:, :n], 0 * x[:, :n])], period=({"j": period},))
        simulation = Simulation(case([8, 8, 1], [0] * 3, [1, 1, 0], 1.0, sides), "cpu", initial=swirl, grid=grid)
        simulation.run(steps=4, progress=False, write_last=False)
        found.append(simulation.blocks[0].states("rho", "u", "v", "p"))
    np.testing.assert_allclose(np.array(found[1]), np.array(found[0])[:, :, :8], rtol=0, atol=1e-13)


def seam(size, n, period):
    """The connections that join the last nodes of a block along j to the first."""
    return [
        Connection(0, face, face_range(face, size), 0, offset=(0, step * n, 0), translation=(0, -step * period, 0))
        for face, step in (("jmin", 1), ("jmax", -1))
    ]


def uneven_period(n=23, period=2.0):
    """x, y (n + 1, 20): a period along j with uneven spacing, whose last nodes repeat the first."""
    j, x = np.meshgrid(np.arange(n + 1) / n, np.linspace(0, 1, 20), indexing="ij")
    return x, period * (j + 0.05 * np.sin(2 * np.pi * j) + 0.005 * np.sin(4 * np.pi * j)) + 0.03 * np.sin(3 * x)


ACROSS = case([20, 24, 1], [0, 0, 0], [1, 2, 0], 1.0, {"imin": far(0.4), "imax": OUTFLOW})


def test_the_radius_knows_no_order_of_nodes():
    """One order made it smaller by 2 %."""
    x, y = uneven_period()
    found = []
    for sign in (1, -1):
        block = Block("period", x[None, ::sign], sign * y[None, ::sign], 0 * x[None])
        grid = Grid([block], seam(block.size, 23, 2.0))
        found.append(outflow.radius(grid.blocks, grid.connections))
        for seed in range(3):
            turned = turn_blocks(ACROSS, decompose(ACROSS, grid), 1 + 2 * seed, np.random.default_rng(seed)).grid
            found.append(outflow.radius(turned.blocks, turned.connections))
    assert found == pytest.approx([found[0]] * 8, rel=1e-14)


def test_a_period_of_the_grid_relaxes_as_a_connection():
    x, y = uneven_period()
    block = Block("period", x[None], y[None], 0 * x[None])
    grids = Grid([block], seam(block.size, 23, 2.0)), Grid([block], period=({"j": (0.0, 2.0, 0.0)},))
    ends = {"faces": ["jmin", "jmax"], "type": "periodic"}
    tables = ACROSS.model_dump(mode="json")
    cases = ACROSS, Case.from_dict(tables | {"boundary": [*tables["boundary"], ends]})
    runs = [Simulation(of, "cpu", grid=grid).solver for of, grid in zip(cases, grids, strict=True)]
    given = [run.backend.to_host(run._conditions.outflow.given)[0, : outflow.GIVEN] for run in runs]
    assert given[0] == pytest.approx(given[1], rel=1e-14)


def test_the_last_nodes_of_a_period_do_not_count():
    """They lie farther from the mean place than the others: with them the distance was larger by 19 %."""
    n, period = 9, 2.0
    x, y = np.meshgrid(np.linspace(0, 1, 7), np.linspace(0, period, n + 1))
    plain, repeating = (Block("period", *(c[None, :last] for c in (x, y, 0 * x))) for last in (n, n + 1))
    wanted = outflow.radius([plain], [])
    assert wanted == pytest.approx(np.hypot(period * (n - 1) / n, 1) / 2, rel=1e-14)
    assert outflow.radius([repeating], seam(repeating.size, n, period)) == pytest.approx(wanted, rel=1e-14)


def test_the_default_relaxation_does_not_depend_on_levels():
    """Nodes of tiles count for the mean place of the nodes no more than they do without a level."""
    faces, given = {"imin": far(0.4), "imax": OUTFLOW, "jmin,jmax": far(0.4)}, []
    for tables in ({}, {"refine": {"tile": 8, "region": [{"x": [-0.5, 1.0], "y": [-0.5, 1.5]}]}}):
        run = Simulation(case([25, 21, 1], [-4, -4, 0], [4, 4, 0], 1.0, faces, **tables), "cpu")
        given.append(run.solver.backend.to_host(run.solver._conditions.outflow.given))
    np.testing.assert_array_equal(*given)
