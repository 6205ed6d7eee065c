"""Monitors on several ranks: what they see does not depend on how the grid is cut, nor on who computes what."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from netCDF4 import Dataset
from ranks import run_ranks

from hiresx import Case, HiresxError, Simulation
from hiresx.decomposition import Part
from hiresx.device.averaging import BUDGETS
from hiresx.grid import Block, Connection, Grid, build
from hiresx.grid.blocks import face_range
from hiresx.output.watch import history

P = 1 / 1.4
STEPS = 20
# Relative to the largest value in a history: sums are added in another order, and the run itself rounds.
TOLERANCE = 1e-12
# Of second moments: states differ by 1.5e-15, and moments by twice that over the fluctuations, .006 and larger here.
MOMENTS = 1e-13

WATCHED = {
    "probe": [
        {"name": "middle", "x": 1.0, "y": 0.5, "z": 0.5, "every": 3},
        {"name": "row", "line": {"start": [0.02, 0.5, 0.4], "end": [1.98, 0.45, 0.6], "n": 9}, "every_time": 0.05},
    ],
    "force": [{"name": "walls", "every": 4}, {"name": "low", "faces": ["jmin"], "every": 5}],
    "extrema": {"every": 5},
    "conservation": {"every": 5},
    "kinetic_energy": {"every": 7},  # when nothing else has waited for ghosts
}
NAMES = {"middle", "row", "walls", "low", "extrema", "conservation", "kinetic_energy", "residual", "own"}


def flow(x, y, z):
    """Smooth, and alike nowhere, so that extremes have one place each."""
    p = P * (1 + 0.1 * np.exp(-8 * ((x - 0.83) ** 2 + (y - 0.41) ** 2)))
    wave = np.sin(2.1 * x + 1.3 * y + 0.4) * np.cos(0.9 * z + 0.2)
    return (1.4 * p) ** P, 0.1 * wave, 0.07 * np.cos(1.7 * x - 0.6 * y), 0.03 * wave * np.sin(z + 0.3), p


def plane() -> tuple[Case, Grid]:
    """Two blocks side by side with walls, an open end and a sponge."""
    case = Case.from_dict(
        {
            "grid": {"generator": "wavy", "n": [33, 25, 1], "lower": [0.0] * 3, "upper": [2.0, 1.0, 0.0],
                     "periodic": [], "amplitude": [0.04, 0.04, 0.0]},
            "time": {"steps": STEPS, "cfl": 0.5},
            "gas": {"reynolds": 60.0},
            "monitor": {"every": 5},
            "initial": {"state": {"rho": 1.0, "p": P}},
            "boundary": [
                {"faces": ["imin"], "type": "slip-wall"},
                {"faces": ["imax"], "type": "characteristic-outflow", "pressure": P},
                {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.02},
            ],
            "sponge": [{"axis": "x", "start": 1.4, "end": 2.0, "strength": 1.0, "state": {"rho": 1.0, "p": P}}],
            "average": {"every": 2, "stress_budgets": True},
            **WATCHED,
        }
    )  # fmt: skip
    whole = build(case.grid, None).blocks[0]
    halves = [
        Block(name, *(c[:, :, half] for c in (whole.x, whole.y, whole.z)))
        for name, half in (("left", slice(0, 15)), ("right", slice(15, None)))
    ]
    left, right = halves
    joined = [
        Connection(0, "imax", face_range("imax", left.size), 1, offset=(-15, 0, 0)),
        Connection(1, "imin", face_range("imin", right.size), 0, offset=(15, 0, 0)),
    ]
    return case, Grid(halves, joined)


def solid() -> tuple[Case, None]:
    """A box of three dimensions, periodic along x, that holds the same nodes at both ends of its period."""
    case = Case.from_dict(
        {
            "grid": {"generator": "wavy", "n": [16, 15, 15], "lower": [0.0] * 3, "upper": [2.0, 1.0, 1.0],
                     "periodic": ["x"], "amplitude": [0.03, 0.03, 0.03]},
            "time": {"steps": STEPS, "cfl": 0.5},
            "gas": {"reynolds": 100.0},
            "monitor": {"every": 5},
            "initial": {"state": {"rho": 1.0, "p": P}},
            "boundary": [
                {"faces": ["imin", "imax"], "type": "periodic"},
                {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.02},
                {"faces": ["kmin", "kmax"], "type": "slip-wall"},
            ],
            "average": {"every": 2, "budget": True},
            **WATCHED,
        }
    )  # fmt: skip
    return case, None


CASES = {"plane": plane, "solid": solid}


def own(simulation):
    """A monitor as a user writes it."""
    peak = max(block.state("p").max() for block in simulation.blocks)
    return {"peak": simulation.comm.max(peak), "blocks": simulation.comm.sum(len(simulation.blocks)) > 0}


def scattered(count: int, ranks: int, seed: int):
    """Cuts every block at random places into `count` parts or so, and gives the parts to the ranks in turn."""
    chance = np.random.default_rng(seed)

    def parts(decomposition) -> list[Part]:
        boxes = [(b, tuple((0, n) for n in block.size)) for b, block in enumerate(decomposition.blocks)]
        while len(boxes) < count:
            able = [n for n, (_, box) in enumerate(boxes) if any(hi - lo >= 14 for lo, hi in box)]
            if not able:
                break
            b, box = boxes.pop(chance.choice(able))
            d = chance.choice([d for d, (lo, hi) in enumerate(box) if hi - lo >= 14])
            at = int(chance.integers(box[d][0] + 7, box[d][1] - 6))
            for piece in ((box[d][0], at), (at, box[d][1])):
                boxes.append((b, tuple(piece if e == d else range_ for e, range_ in enumerate(box))))
        return [Part(b, box, n % ranks) for n, (b, box) in enumerate(boxes)]

    return parts


def simulation(name: str, count: int = 1, ranks: int = 1, seed: int = 0, **arguments) -> Simulation:
    case, grid = CASES[name]()
    parts = scattered(count, ranks, seed) if count > 1 else None
    return Simulation(case, backend="cpu", initial=flow, grid=grid, monitors=[own], parts=parts, **arguments)


def histories(run: Simulation) -> dict[str, dict[str, np.ndarray]]:
    """By name and column."""
    return {a.history.name: a.history.table().flat() for a in run.attachments if hasattr(a, "history")}


def compare(found: dict[str, dict[str, np.ndarray]], expected: dict[str, dict[str, np.ndarray]]) -> None:
    assert found.keys() == expected.keys()
    for name, table in expected.items():
        places = [column for column in table if column == "step" or column.endswith(("_block", "_i", "_j", "_k"))]
        scale = max(np.nanmax(np.abs(values)) for column, values in table.items() if column not in places)
        for column, values in table.items():
            tolerance = 0 if column in places else TOLERANCE * scale
            np.testing.assert_allclose(found[name][column], values, rtol=0, atol=tolerance, err_msg=f"{name} {column}")


def averages(run: Simulation) -> dict[tuple[str, str, str], np.ndarray]:
    """Over whole blocks, by (block, "reynolds" or "favre", name)."""
    average = next(a for a in run.attachments if a.name == "averages")
    found = {}
    for n, part in enumerate(run.blocks):
        shape = next(block.x.shape for block in run.solver.grid.blocks if block.name == part.whole)
        box = tuple(slice(first, first + m) for first, m in zip(part.first[::-1], part.x.shape, strict=True))
        for kind, arrays in average.fields(n).items():
            for name, values in arrays.items():
                found.setdefault((part.whole, kind, name), np.full(shape, np.nan))[box] = values
    return found


IN_ORDER = ("xx", "yy", "zz", "xy", "xz", "yz")
# Quantities of the budgets that have the rounding of each other: the components of a tensor or a vector.
ALIKE = [
    *([f"d{u}_d{x}" for x in "xyz"] for u in "uvw"),
    *([f"{name}_{ij}" for ij in IN_ORDER] for name in ("tau", "p_strain", "tau_gradient")),
    [f"{u}_tau_{ij}" for u in "uvw" for ij in IN_ORDER],
    *([f"{name}_{x}" for x in axes] for name, axes in (("p", "uvw"), ("u_tau", "xyz"), ("k", "uvw"))),
    ["_".join(abc) for abc in combinations_with_replacement("uvw", 3)],
]


def terms_of(name: str, largest: dict[str, float]) -> float:
    """The size of the terms that a budget's quantity is the sum of. By the metrics, du_i/dx_j is a sum over the index
    directions, whose terms are as large as the largest of du_i/dx, du_i/dy and du_i/dz and may cancel to a component
    that is far smaller, dv_dz here: what rounding leaves follows the terms. So do stresses, sums of such derivatives,
    and covariances: states differ alike in all components, however small one is."""
    return max(largest[n] for n in next((names for names in ALIKE if name in names), [name]))


def compare_averages(found, expected) -> None:
    """Means relative to the largest of them, moments to the largest fluctuations of both, and what is of the budget to
    the terms that it is the sum of."""
    assert found.keys() == expected.keys()
    largest = {name: max(np.abs(v).max() for (_, _, n), v in expected.items() if n == name) for _, _, name in expected}
    for key, values in expected.items():
        a, _, b = key[2].partition("_")
        if key[1] in BUDGETS:
            tolerance = MOMENTS * terms_of(key[2], largest)
        else:
            tolerance = MOMENTS * np.sqrt(largest[f"{a}_{a}"] * largest[f"{b}_{b}"]) if b else TOLERANCE * largest[a]
        np.testing.assert_allclose(found[key], values, rtol=0, atol=tolerance, err_msg=str(key))


@pytest.fixture(scope="module")
def alone():
    """The histories and averages of the runs on one rank that nothing cuts."""
    found = {}
    for name in CASES:
        run = simulation(name)
        run.run(progress=False)
        found[name] = histories(run), averages(run)
        assert found[name][0].keys() == NAMES
    return found


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize(
    ("count", "seed"), [pytest.param(4, 1, marks=pytest.mark.slow), (7, 2), pytest.param(12, 3, marks=pytest.mark.slow)]
)
def test_cuts_are_not_seen_in_histories(name, count, seed, alone):
    run = simulation(name, count, seed=seed)
    assert len(run.blocks) > len(run.solver.grid.blocks)
    run.run(progress=False)
    compare(histories(run), alone[name][0])
    compare_averages(averages(run), alone[name][1])


def watched(comm, name: str, count: int, seed: int) -> dict:
    run = simulation(name, count, comm.size, seed, comm=comm)
    run.run(progress=False)
    return histories(run)


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "name", "count"), [(2, "plane", 3), (3, "solid", 5), (4, "plane", 8)])
def test_all_ranks_have_the_histories_of_one(ranks, name, count, alone):
    by_rank = run_ranks(ranks, watched, name, count, ranks, timeout=120)
    compare(by_rank[0], alone[name][0])
    for found in by_rank[1:]:
        for history_name, table in by_rank[0].items():
            for column, values in table.items():
                assert found[history_name][column].tobytes() == values.tobytes(), (history_name, column)


def begun(comm, name: str, count: int, folder, steps: int) -> None:
    simulation(name, count, comm.size, 4, comm=comm, out=folder).run(steps=steps, progress=False)


def gone_on(comm, name: str, count: int, folder) -> None:
    simulation(name, count, comm.size, 5, comm=comm, restart=folder).run(progress=False)


def leaves(group, prefix: str = ""):
    """All variables of a netCDF file."""
    for name, variable in group.variables.items():
        yield prefix + name, np.asarray(variable[...])
    for name, inner in group.groups.items():
        yield from leaves(inner, f"{prefix}{name}/")


@pytest.mark.slow
def test_histories_and_averages_go_on_with_other_ranks_and_cuts(tmp_path, alone):
    simulation("plane", out=tmp_path / "whole").run(progress=False)
    run_ranks(3, begun, "plane", 5, tmp_path / "parts", 9, timeout=120)
    run_ranks(2, gone_on, "plane", 4, tmp_path / "parts", timeout=120)
    tables = {name: history.read(path).flat() for name, path in history.histories(tmp_path / "parts").items()}
    compare(tables, alone["plane"][0])
    with Dataset(tmp_path / "whole/averages.nc") as whole, Dataset(tmp_path / "parts/averages.nc") as parts:
        expected, found = dict(leaves(whole)), dict(leaves(parts))
    assert found.keys() == expected.keys() and len(found) == 3 + 2 * (3 + 6 + 15 + 15 + 58)
    assert found["averaged_over"] > 0.1 and np.abs(found["left/favre/u_v"]).max() > 1e-4
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


def told(make) -> str:
    """The error that `make` raises on this rank."""
    try:
        make()
    except HiresxError as error:
        return error.message
    return ""


def faults(comm, folder) -> dict[str, str]:
    """What is told on this rank, by fault."""

    def case(**changes) -> Case:
        tables = CASES["plane"]()[0].model_dump(mode="json")
        return Case.from_dict(
            tables | {"sponge": [], "probe": [], "force": [], "time": {"steps": 4, "cfl": 0.5}} | changes
        )

    def run(*monitors, out=None, **changes):
        return Simulation(case(**changes), backend="cpu", initial=flow, monitors=monitors, comm=comm, out=out)

    def first(simulation):
        return {"peak": simulation.blocks[0].state("p").max()}

    def only_root(simulation):
        return {"a": 1.0} if simulation.comm.root else None

    def fails(simulation):
        return {"a": 1.0 / simulation.comm.rank}

    def full(step, time, values):
        raise HiresxError("the disk is full")

    def unwritable() -> None:
        simulation = run()
        residual = next(a for a in simulation.attachments if a.name == "history.residual")
        residual.history.path = folder / "residual.nc"
        residual.begin(simulation.solver, False)
        if comm.root:
            residual.history.add = full
        simulation.step()
        simulation.solver.steps = 10
        residual.after_step(simulation.solver)

    return {
        "outside": told(lambda: run(probe=[{"name": "far", "x": 9.0}])),
        "no wall": told(lambda: run(force=[{"name": "open", "faces": ["imax"]}])),
        "one rank's": told(lambda: run(first).run(progress=False)),
        "names": told(lambda: run(only_root).run(progress=False)),
        "fails": told(lambda: run(fails).run(progress=False)),
        "full": told(unwritable),
    }


@pytest.mark.slow
def test_a_fault_is_the_same_on_all_ranks(tmp_path):
    by_rank = run_ranks(2, faults, tmp_path, timeout=120)
    assert by_rank[0] == by_rank[1]
    found = by_rank[0]
    assert found["outside"].startswith('probe.0 "far": the place (9, 0, 0) lies outside the grid')
    assert found["no wall"].startswith('force.0 "open": there is no wall')
    assert 'monitor "first" returned peak = 0.7' in found["one rank's"] and "on rank 1: each has" in found["one rank's"]
    assert found["names"] == 'monitor "only_root" returned a on rank 0 and nothing on rank 1'
    assert found["fails"].startswith("rank 0: ") and "ZeroDivisionError" in found["fails"]
    assert found["full"] == "the disk is full"
