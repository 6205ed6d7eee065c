"""Synthetic turbulence at inflows: its stresses and lengths, and that place, time and seed alone say what it is."""

from contextlib import nullcontext

import numpy as np
import pytest
from kernels_alone import Numpy, program
from same_everywhere import same_everywhere
from wholes import whole

from hiresx import Case, HiresxError, Simulation
from hiresx.case.synthetic_turbulence import STRESSES
from hiresx.cli.check_inflow import notes_of_turbulence
from hiresx.decomposition import decompose
from hiresx.device import backend
from hiresx.grid import build
from hiresx.rhs.boundary import Prescribe
from hiresx.rhs.synthetic_inflow import SyntheticTurbulence, axes, cholesky, integral_length
from hiresx.solver import Solver

ASKED = {"xx": 0.02, "xy": -0.006, "yy": 0.01, "xz": 0.004, "yz": 0.002, "zz": 0.008}
LENGTHS = [0.2, 0.12, 0.15]
TURBULENCE = {"stresses": ASKED, "length": LENGTHS, "seed": 3}
EDDIES = TURBULENCE | {"method": "synthetic-eddies"}
BOTH = pytest.mark.parametrize("turbulence", [TURBULENCE, EDDIES], ids=["digital filter", "synthetic eddies"])


def case(n=(16, 24, 16), turbulence=TURBULENCE, width=1.0, **tables):
    sides = {"faces": ["jmin", "jmax"], "type": "slip-wall"}
    around = {"faces": ["kmin", "kmax"], "type": "periodic"}
    state = {"rho": 1.2, "u": 1.6, "p": 0.7}
    given = {
        "grid": {"generator": "box", "n": list(n), "lower": [0, 0, 0], "upper": [1, width, width], "periodic": ["z"]},
        "time": {"steps": 30, "cfl": 0.5},
        "initial": {"state": state},
        "boundary": [
            {"faces": ["imin"], "type": "supersonic-inflow", "state": state, "turbulence": turbulence},
            {"faces": ["imax"], "type": "supersonic-outflow"},
            sides,
            around,
        ],
    }
    return Case.from_dict(given | tables)


def samples(solver, times):
    """Velocities less their means at the nodes of the inflow, (times, 3, n2, n1)."""
    (inflow,) = [c for c in solver.conditions if isinstance(c, Prescribe)]
    found = []
    for t in times:
        solver.time = float(t)
        solver.complete_state()
        q = solver.backend.to_host(inflow._target)[:, 0]
        found.append(q[1:4] / q[0] - np.array([1.6, 0, 0])[:, None, None])
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["cpu", "emulated"])
@BOTH
def test_stresses_and_lengths_are_those_asked_for(turbulence, where):
    """Of the field itself, over 4 by 4 lengths and many passages of it, within 5 %."""
    n = (7, 41, 41)
    solver = Solver(case(n, turbulence, width=3.0), backend(where))
    solver.initialize()
    step = 0.025
    number = 6000 if where == "cpu" else 300
    found = samples(solver, step / 1.6 * np.arange(number))
    if where == "emulated":
        other = Solver(case(n, turbulence, width=3.0), backend("cpu"))
        other.initialize()
        np.testing.assert_allclose(found, samples(other, step / 1.6 * np.arange(number)), rtol=0, atol=1e-13)
        return
    stresses = np.einsum("taij,tbij->ab", found, found) / found[:, 0].size
    wanted = np.array([[ASKED["".join(sorted(a + b))] for a in "xyz"] for b in "xyz"])
    np.testing.assert_allclose(stresses, wanted, rtol=0, atol=0.05 * wanted.diagonal().min())
    np.testing.assert_allclose(stresses.diagonal(), wanted.diagonal(), rtol=0.05)
    assert abs(found.mean(axis=(0, 2, 3))).max() < 0.02 * np.sqrt(0.02)
    for axis, spacing, length in ((0, step, 0.2), (3, 0.075, 0.12), (2, 0.075, 0.15)):
        u = np.moveaxis(found, axis, 0)
        reach = min(len(u) - 1, int(5 * length / spacing))
        correlation = [np.mean(u[: len(u) - m] * u[m:]) for m in range(reach)]
        measured = spacing * (np.sum(correlation) / correlation[0] - 0.5)
        assert measured == pytest.approx(length, rel=0.05), (axis, measured)


@pytest.mark.parametrize("axis", range(3))
@BOTH
def test_stresses_and_lengths_along_many_lines(turbulence, axis):
    """Along 20,000 lines at random places, each of nine nodes at a third of the integral length. The standard deviation
    of their mean squares is 1.2 %, and that of the correlations on which the integral length depends is smaller."""
    lines, nodes, spacing = 20_000, 9, LENGTHS[axis] / 3
    start = np.random.default_rng(5).uniform(-60, 60, (lines, 3)) * LENGTHS
    places = np.tile(start.T[:, None, :, None], (1, 2, 1, nodes))
    places[axis] += spacing * np.arange(nodes)
    places[0, 1] -= 1.0
    mean = np.zeros((5, *places.shape[1:]))
    mean[0], target = 1.0, np.zeros(mean.shape)
    given = case(turbulence=turbulence)
    field = SyntheticTurbulence(
        Numpy, given, given.boundary[0].turbulence, (1.6, 0.0, 0.0), mean, places, target, "lines"
    )  # fmt: skip
    field.launch(program("cpu", ("synthetic_turbulence.h",)).launch, np.zeros(8), 0.0)
    u = target[1:4, 0]
    wanted = np.array([[ASKED["".join(sorted(a + b))] for a in "xyz"] for b in "xyz"])
    stresses = np.einsum("alm,blm->ab", u, u) / u[0].size
    sizes = np.sqrt(wanted.diagonal())
    np.testing.assert_allclose(stresses / np.outer(sizes, sizes), wanted / np.outer(sizes, sizes), rtol=0, atol=0.03)
    correlation = np.einsum("alm,al->m", u, u[..., 0])
    assert spacing * (correlation.sum() / correlation[0] - 0.5) == pytest.approx(LENGTHS[axis], rel=0.05)


# Many planes of the lattice come by in few steps.
FAST = TURBULENCE | {"velocity": [16.0, 0.0, 0.0]}


def flow(where="cpu", **tables):
    run = Simulation(case(**tables), where)
    run.run(progress=False)
    return run


def on_ranks(comm, method="digital-filter"):
    run = Simulation(case(turbulence=FAST | {"method": method}), "cpu", comm=comm)
    run.run(progress=False)
    return whole(run.solver)


def eddies_on_ranks(comm):
    return on_ranks(comm, "synthetic-eddies")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "on_ranks"),
    [("digital-filter", on_ranks), ("synthetic-eddies", eddies_on_ranks)],
    ids=["filter", "eddies"],
)
def test_plans_ranks_backends_and_restart(tmp_path, method, on_ranks):
    def make(where="cpu", out=None, **tables):
        return Simulation(case(turbulence=FAST | {"method": method}, **tables), where, out=out)

    alone = same_everywhere(make, tmp_path / "run", 17, ("decomposed", "compact"), on_ranks=on_ranks)
    assert np.ptp(alone[0][1]) > 0.2


@BOTH
def test_a_part_of_a_face_has_the_field_of_the_whole(turbulence):
    """Bit for bit, at a late time and after other times."""
    given, one, clock = case(turbulence=turbulence), backend("cpu"), np.zeros(32)
    solver = Solver(given, one)
    solver.initialize()
    (inflow,) = [c for c in solver.conditions if isinstance(c, Prescribe)]
    spec, places = given.boundary[0].turbulence, inflow._places
    mean = np.broadcast_to(np.reshape([1.2, 1.6, 0.0, 0.0, 0.7], (5, 1, 1, 1)), (5, *places.shape[1:]))
    found = []
    for part, times in ((np.s_[:, :, :, :], (0.0, 99.0, 1234.5)), (np.s_[:, :, 5:, 9:14], (1234.5,))):
        target = np.zeros(mean[part].shape)
        field = SyntheticTurbulence(one, given, spec, (1.6, 0.0, 0.0), mean[part], places[part], target, "a part")
        for clock[0] in times:
            field.launch(inflow._launch, clock, 0.0)
        found.append(target)
    assert np.array_equal(found[0][:, :, 5:, 9:14], found[1]) and np.ptp(found[1][1]) > 0.1


@BOTH
def test_the_field_is_frozen_periodic_and_another_by_another_seed(turbulence):
    """At a later time it is the field of places farther upstream."""
    found = {}
    for seed in (3, 4):
        turbulence = turbulence | {"seed": seed, "velocity": [0.8, 0.0, 0.0], "period": [0.0, 1.0], "length": 0.2}
        solver = Solver(case((11, 12, 12), turbulence, width=2.0), backend("cpu"))  # two periods
        solver.initialize()
        (inflow,) = [c for c in solver.conditions if isinstance(c, Prescribe)]
        layers = []
        for share in (0.0, 0.5):  # of a step, in which a ghost layer, 0.1 upstream, comes to the face
            solver._conditions.nodes(0.0, 0.25, share)
            layers.append(solver.backend.to_host(inflow._target).copy())
        np.testing.assert_allclose(layers[1][:, 0], layers[0][:, 1], rtol=0, atol=1e-13)
        np.testing.assert_allclose(layers[0][:, :, :6], layers[0][:, :, 6:], rtol=0, atol=1e-12)
        found[seed] = layers[0]
    assert abs(found[3] - found[4]).max() > 0.1


def test_formulas_of_stresses_and_a_wall():
    """Stresses that vanish at walls, by a parameter: the fluctuations do so too."""
    stresses = {"xx": "top * y * (1 - y)", "yy": "0.5 * top * y * (1 - y)", "xy": "-0.3 * top * y * (1 - y)"}
    run = flow(turbulence={"stresses": stresses, "length": 0.2}, parameters={"top": 0.04}, n=(8, 12, 8))
    u = run.blocks[0].state("u")[:, :, 0]
    assert abs(u[:, [0, -1]] - 1.6).max() < 1e-12 and np.ptp(u) > 0.05


def test_cholesky_factors():
    rng = np.random.default_rng(0)
    factors = np.tril(rng.uniform(0.1, 1, (20, 3, 3)))
    factors[:10, 2] = 0.0  # plane
    matrices = factors @ factors.transpose(0, 2, 1)
    stresses = [matrices[:, "xyz".index(a), "xyz".index(b)] for a, b in STRESSES]
    found = cholesky(stresses, str)
    wanted = np.stack([factors[:, r, c] for r in range(3) for c in range(r + 1)])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7)


def test_axes_and_the_length_of_the_lattice():
    np.testing.assert_allclose(axes([2, 0, 0]), np.eye(3))
    np.testing.assert_allclose(axes([0, 3, 0]), np.eye(3)[[1, 2, 0]])
    turned = axes([1, 2, -0.5])
    np.testing.assert_allclose(turned @ turned.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(turned) == pytest.approx(1) and integral_length() == pytest.approx(0.5 / (151 / 315), rel=0.01)


@pytest.mark.parametrize(
    ("turbulence", "said"),
    [
        (TURBULENCE | {"stresses": {"xx": 0.01, "yy": 0.01, "xy": 0.02}}, "at x, y, z = 0, 0, 0: xx = 0.01, xy = 0.02"),
        (TURBULENCE | {"stresses": {"xx": "0.1 - y", "yy": 0.01}}, "not positive definite"),
        (TURBULENCE | {"stresses": {"xx": "1 / y", "yy": 0.01}}, 'xx = "1 / y" is inf'),
        (TURBULENCE | {"stresses": {"xx": "t", "yy": 0.01}}, "stresses do not change in time"),
        (TURBULENCE | {"stresses": {"xx": "q", "yy": 0.01}}, 'boundary.0.turbulence.stresses.xx: "q"'),
        (TURBULENCE | {"velocity": [-1.0, 0.0, 0.0]}, "does not lead into the block"),
        (TURBULENCE | {"velocity": [0.0, 0.0, 0.0]}, "turbulence.velocity is zero"),
        (TURBULENCE | {"length": 0.0}, "length"),
        (TURBULENCE | {"stresses": {"xx": 0.1}}, "turbulence.stresses: yy is required"),
        (TURBULENCE | {"stresses": {"xx": 0.1, "yy": 0.1, "zx": 0.1}}, "turbulence.stresses"),
        (TURBULENCE | {"period": [-1.0, 0.0]}, "turbulence.period"),
        (TURBULENCE | {"method": "eddies"}, "turbulence.method"),
        (EDDIES | {"length": 0.001}, "imin of block 'box': its length 0.001 makes 1.62e+08 eddies"),
    ],
)
def test_what_cannot_be_is_refused(turbulence, said):
    with pytest.raises(HiresxError) as error:
        Simulation(case((8, 8, 8), turbulence), "cpu")
    assert said in str(error.value)


def test_a_face_that_is_no_inflow_and_an_unsteady_profile_are_refused():
    wall = {"faces": ["imin"], "type": "slip-wall", "turbulence": TURBULENCE}
    profile = {"faces": ["imin"], "type": "profile-inflow", "function": "f", "turbulence": TURBULENCE}
    for boundary, said in (
        (wall, "turbulence"),
        (profile, "a profile has many velocities"),
        (profile | {"steady": False}, "added to a steady flow"),
    ):
        with pytest.raises(HiresxError) as error:
            case(boundary=[boundary])
        assert said in str(error.value)


def test_check_tells_of_lengths_that_the_grid_does_not_carry():
    for length, told in ((0.05, 1), (0.2, 0)):
        solver = Solver(case((11, 12, 11), TURBULENCE | {"length": length}), backend("cpu"))
        notes = list(notes_of_turbulence(solver.case, solver.decomposition))
        assert len(notes) == told
        assert not told or "its integral length 0.05 is below the distance of nodes there, 0.1" in notes[0]


@pytest.mark.parametrize(("xx", "refused"), [("0.1 - y", True), ("1.1 - y", False)])
def test_check_refuses_stresses_as_a_run_does(xx, refused):
    """xx is negative from y = 0.1 on; in the other case it is positive at all nodes, which lie between 0 and 1."""
    spec = case((8, 8, 8), TURBULENCE | {"stresses": {"xx": xx, "yy": 0.01}})
    with pytest.raises(HiresxError, match="not positive definite") if refused else nullcontext():
        list(notes_of_turbulence(spec, decompose(spec, build(spec.grid))))
