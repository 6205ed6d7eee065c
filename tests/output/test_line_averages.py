"""`average.over`: averages over homogeneous index directions are those of all nodes, averaged afterwards."""

import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

import scalar_cases
from ranks import run_ranks

from hiresx import Case, HiresxError, Simulation
from hiresx.base.notify import notifications_to
from hiresx.cli.check_setup import setup
from hiresx.decomposition import Part, decompose
from hiresx.decomposition.homogeneous import all_homogeneous
from hiresx.device.averaging import MOMENTS
from hiresx.estimate.resources import average_bytes
from hiresx.grid import Block, Connection, Grid, build
from hiresx.grid.blocks import face_range
from hiresx.post import profile, turbulence
from hiresx.post.budgets import HomogeneousMeans, statistics
from hiresx.results import Run

STEPS = 6
# Of the largest value: sums are added in another order.
SAME = 1e-13
N = (16, 15, 9)


def channel(n=N, periodic=("x", "z"), grid=None, **average) -> Case:
    box = {"generator": "box", "n": list(n), "lower": [0, -1, 0], "upper": [1, 1, 1], "periodic": list(periodic)}
    wall = {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.0}
    others = {"faces": ["imin", "imax", "kmin", "kmax"], "type": "periodic"}
    given = {"grid": box | (grid or {}), "boundary": [wall, others], "gas": {"reynolds": 50.0}}
    given |= {"time": {"steps": STEPS, "cfl": 0.5}, "average": {"every": 2} | average}
    return Case.from_dict(given)


def flow(x, y, z):
    """Alike nowhere, so that no moment is small by symmetry."""
    wave = np.cos(2 * np.pi * (x + z) + 0.3) + 0.6 * np.sin(4 * np.pi * x - 1.1) * np.cos(2 * np.pi * z)
    inside = 1 - y * y
    rho = 1 + 0.1 * np.sin(2 * np.pi * (x - z) + 2 * y)
    u, v = inside * (0.2 + 0.1 * wave), 0.1 * inside * (np.sin(2 * np.pi * (z + 0.2 * y)) + wave)
    return rho, u, v, 0.1 * inside * (np.cos(2 * np.pi * x + y) - wave), (1 + 0.08 * np.sin(2 * np.pi * x + y)) / 1.4


def pieces(decomposition):
    """Cut along i, and one half along j: on a line of one part there are two of others."""
    ni, nj, nk = decomposition.blocks[0].size
    i, j, k = ((0, ni // 2), (ni // 2, ni)), ((0, nj // 2), (nj // 2, nj)), (0, nk)
    return [Part(0, (i[0], (0, nj), k), 0), Part(0, (i[1], j[0], k), 1), Part(0, (i[1], j[1], k), 1)]


def ran(comm, case: Case, folder, backend="cpu", cut=False, again=False, grid=None) -> Simulation | None:
    """`again`: with a restart in the middle."""
    ranks = 1 if comm is None else comm.size
    given = {"backend": backend} | ({"comm": comm} if comm else {})
    if cut:
        given["parts"] = lambda whole: [Part(p.whole, p.box, p.rank % ranks) for p in pieces(whole)]
    run = Simulation(case, initial=flow, out=folder, grid=grid, **given)
    run.run(steps=STEPS // 2 if again else STEPS, progress=False)
    if again:
        run = Simulation(restart=folder, **given)
        run.run(progress=False)
    return run if comm is None else None


def moments(folder) -> dict[str, np.ndarray]:
    """All means and moments over x and z of a run."""
    (block,) = Run(folder).averages.children.values()
    nodes = {kind: part.to_dataset() for kind, part in block.children.items()}
    place = HomogeneousMeans(
        [block[axis].values for axis in "xyz"], {0: np.array([0, 0, 1 / 9]), 2: np.array([1 / 16, 0, 0])}
    )
    found = statistics(nodes, place)
    del found["excess"]  # a difference of two of the others
    return found


def compare(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert np.abs(values).max() > 0
        np.testing.assert_allclose(found[name], values, rtol=0, atol=SAME * np.abs(values).max(), err_msg=name)


@pytest.fixture(scope="module")
def of_all_nodes(tmp_path_factory):
    """The folders of runs that keep all nodes, by the kind of budget."""
    found = {}
    for kind in ("budget", "stress_budgets"):
        found[kind] = tmp_path_factory.mktemp(kind)
        ran(None, channel(**{kind: True}), found[kind])
    return found


@pytest.mark.parametrize(
    ("backend", "over", "kind", "cut"),
    [
        ("cpu", ["i", "k"], "stress_budgets", False),
        ("cpu", ["i", "k"], "stress_budgets", True),
        ("cpu", ["k"], "budget", False),
        ("cpu", ["i"], "budget", True),
        ("emulated", ["k", "i"], "stress_budgets", False),
        pytest.param("emulated", ["i", "k"], "budget", True, marks=pytest.mark.slow),
    ],
)
def test_they_are_those_of_all_nodes(backend, over, kind, cut, of_all_nodes, tmp_path):
    ran(None, channel(**{kind: True}, over=over), tmp_path, backend, cut)
    (block,) = Run(tmp_path).averages.children.values()
    assert block["u"].shape == tuple(1 if d in over else n for d, n in zip("kji", reversed(N), strict=True))
    compare(moments(tmp_path), moments(of_all_nodes[kind]))


def test_a_restart_has_the_same_bits(tmp_path):
    case = channel(budget=True, over=["k"])
    whole, again = (ran(None, case, tmp_path / str(again), cut=True, again=again) for again in (False, True))
    for one, other in zip(averages_of(whole)._means, averages_of(again)._means, strict=True):
        np.testing.assert_array_equal(one, other)


def test_other_directions_at_a_restart_begin_anew_and_say_so(tmp_path):
    Simulation(channel(over=["i", "k"]), "cpu", initial=flow, out=tmp_path).run(steps=3, progress=False)
    lines: list[str] = []
    for over, said in ((["i", "k"], 0), (["k"], 1)):
        with notifications_to(lines.append):
            run = Simulation(channel(over=over), "cpu", restart=tmp_path, out=tmp_path / "".join(over))
            run.run(steps=1, progress=False)
        assert sum("the averages begin anew" in line for line in lines) == said


@pytest.mark.slow
def test_on_two_ranks_and_from_a_checkpoint_of_theirs(of_all_nodes, tmp_path):
    case = channel(stress_budgets=True, over=["i", "k"])
    for folder, again in (("whole", False), ("again", True)):
        run_ranks(2, ran, case, tmp_path / folder, "cpu", True, again)
    compare(moments(tmp_path / "whole"), moments(of_all_nodes["stress_budgets"]))
    whole, again = ((tmp_path / name / "averages.nc").read_bytes() for name in ("whole", "again"))
    assert whole == again


def test_a_cut_in_mid_run_goes_on(of_all_nodes, tmp_path):
    run = Simulation(channel(budget=True, over=["i", "k"]), "cpu", initial=flow, out=tmp_path)
    run.run(steps=3, progress=False)
    run.rebuild(parts=lambda whole: [Part(p.whole, p.box) for p in pieces(whole)])
    run.run(progress=False)
    compare(moments(tmp_path), moments(of_all_nodes["budget"]))
    along = profile(tmp_path, "x=0,z=0", ["u"]).data
    np.testing.assert_array_equal(along["u"], Run(tmp_path).averages["box/u"].values[0, :, 0])
    with pytest.raises(HiresxError, match="does not name a line"):
        profile(tmp_path, "y=0", ["u"])


def averages_of(run: Simulation):
    return next(a for a in run.attachments if a.name == "averages")


@pytest.mark.parametrize("kind", ["reynolds", "favre"])
def test_scalars_and_a_node_that_is_there_twice(kind):
    """Both ends of the period along x hold the same nodes: one counts."""
    other = "favre" if kind == "reynolds" else "reynolds"
    grid = {"generator": "box", "n": [9, 13, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["y"]}
    found = []
    for over in ([], ["i"]):
        average = {"every": 2, other: False, "over": over}
        run = Simulation(scalar_cases.case(grid=grid, average=average), "cpu")
        scalar_cases.start(run.solver, flow, scalar_cases.patches)
        run.run(steps=STEPS, progress=False)
        found.append(averages_of(run).fields(0)[kind])
    nodes, lines = found
    weight = nodes["rho"][:, :, :-1] if kind == "favre" else np.ones((1, 13, 8))

    def mean(values):
        return (weight * values[..., :-1]).sum(axis=2, keepdims=True) / weight.sum(axis=2, keepdims=True)

    for name in (*MOMENTS[kind], "dye_dye", "u_dye", "v_ink", "w_ink"):
        a, b = name.split("_")
        expected = mean(nodes[name] + (nodes[a] - mean(nodes[a])) * (nodes[b] - mean(nodes[b])))
        assert abs(expected).max() > 1e-6, name
        np.testing.assert_allclose(lines[name], expected, rtol=0, atol=SAME * abs(expected).max(), err_msg=name)
        np.testing.assert_allclose(lines[b], mean(nodes[b]), rtol=0, atol=SAME, err_msg=b)


def test_each_of_several_blocks_over_its_own_nodes(tmp_path):
    case = channel(over=["i"])
    whole = build(case.grid, None).blocks[0]
    halves = [
        Block(name, *(c[:, :, half] for c in whole.coordinates))
        for name, half in (("left", slice(0, 8)), ("right", slice(8, 16)))
    ]
    joined = [
        Connection(n, face, face_range(face, halves[n].size), 1 - n, offset=(8 if face == "imin" else -8, 0, 0),
                   translation=(sign if n == (face == "imax") else 0.0, 0.0, 0.0))
        for n in (0, 1) for face, sign in (("imin", -1.0), ("imax", 1.0))
    ]  # fmt: skip
    faces = {"faces": ["kmin", "kmax"], "type": "periodic"}
    case = case.model_copy(update={"boundary": (case.boundary[0], type(case.boundary[1]).model_validate(faces))})
    grid = Grid(halves, joined, period=({"k": (0.0, 0.0, 1.0)},) * 2)
    ran(None, case, tmp_path, grid=grid)
    of_lines = {name: node["reynolds"]["u"].values for name, node in Run(tmp_path).averages.children.items()}
    assert {name: u.shape for name, u in of_lines.items()} == {"left": (9, 15, 1), "right": (9, 15, 1)}
    ran(None, case.model_copy(update={"average": case.average.model_copy(update={"over": ()})}), tmp_path, grid=grid)
    for name, node in Run(tmp_path).averages.children.items():
        expected = node["reynolds"]["u"].values.mean(axis=2, keepdims=True)
        np.testing.assert_allclose(of_lines[name], expected, rtol=0, atol=SAME)


REFUSED = [
    ({"over": ["j"]}, 'not homogeneous along j: it ends at jmin with a boundary condition "no-slip-wall"'),
    ({"over": ["k"], "n": (16, 15, 1)}, "not homogeneous along k: it has one node there"),
    (
        {"over": ["i"], "periodic": (), "grid": {"stretch": {"x": {"cluster": "both", "ratio": 3.0}}}},
        "the steps between",
    ),
    ({"over": ["i", "i"]}, "average.over names a direction twice"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_what_is_not_homogeneous_is_refused(given, message):
    with pytest.raises(HiresxError, match=message):
        Simulation(channel(**given), "cpu", initial=flow)


def test_homogeneous_directions_are_found():
    case = channel()
    assert all_homogeneous(decompose(case, build(case.grid, None))) == ["i", "k"]


def test_a_check_says_which_directions_suit():
    told = {}
    for over in ([], ["k"]):
        case = channel(stress_budgets=True, over=over)
        whole = decompose(case, build(case.grid, None))
        told[len(over)] = setup(case, whole, whole, [])["warnings"]
    assert told[1] == []
    assert told[0] == [
        "average.stress_budgets keeps 87 numbers of every node, 0.0015 GB in all: "
        'average.over = ["i", "k"] keeps those of lines instead'
    ]
    case = channel(over=["j"])
    whole = decompose(case, build(case.grid, None))
    with pytest.raises(HiresxError, match="not homogeneous along j"):
        setup(case, whole, whole, [])


@pytest.mark.parametrize("over", [[], ["k"], ["i", "k"]])
def test_their_memory_is_known_before(over):
    case = channel(stress_budgets=True, over=over)
    run = Simulation(case, "cpu", initial=flow)
    assert average_bytes(case, run.solver.decomposition.blocks, "cpu") == averages_of(run).bytes
    if len(over) == 2:
        assert averages_of(run).bytes < 0.2 * 8 * 87 * np.prod(N)


def test_statistics_of_turbulence_of_lines(of_all_nodes, tmp_path):
    ran(None, channel(budget=True, over=["k"]), tmp_path)
    found, expected = (turbulence(folder) for folder in (tmp_path, of_all_nodes["budget"]))
    assert found.summary["homogeneous"] == expected.summary["homogeneous"]
    assert found.summary["nodes_averaged"] == expected.summary["nodes_averaged"] == 16 * 9
    for name in ("R_u_v", "production", "dissipation", "residual", "y_plus", "u_plus"):
        values = expected.data[name].values
        np.testing.assert_allclose(found.data[name], values, rtol=0, atol=1e-11 * abs(values).max(), err_msg=name)
    with pytest.raises(HiresxError, match="the averages are over k already"):
        turbulence(tmp_path, over="i")
