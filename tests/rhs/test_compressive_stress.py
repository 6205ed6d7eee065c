"""Flows by the regularised inviscid terms with a compressive stress, and the stress itself."""

from types import SimpleNamespace

import numpy as np
import pytest
from arrangements import shaken
from same_everywhere import same_everywhere
from scipy.spatial.transform import Rotation
from test_regularised import STATE, bump, channel, conserved_sums, field, rough
from test_regularised import box as isotropic_box

from hiresx import Case, HiresxError, Simulation, load
from hiresx.device.configuration import Configuration
from hiresx.estimate.resources import layout
from hiresx.grid import Block, Grid
from hiresx.solver.case_configuration import check_stress

COMPRESSIVE = {"inviscid": "regularised", "regularised": {"stress": "compressive"}}
KEYS = ['scheme.inviscid="regularised"', 'scheme.regularised.stress="compressive"']
STILL = STATE | {"u": 0.0, "v": 0.0, "w": 0.0}
TUBE = [
    {"faces": ["imin", "imax"], "type": "far-field", "state": STILL},
    {"faces": ["jmin", "jmax"], "type": "periodic"},
]
PAIRS = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
# Any direction, and one along a grid line.
DIRECTIONS = [(1.0, 0.0, 0.0), (0.6, 0.8, 0.0), (1 / 3, -2 / 3, 2 / 3)]


def box(n, **given) -> Case:
    return isotropic_box(n, **({"scheme": COMPRESSIVE} | given))


def started(case: Case, flow, **options) -> Simulation:
    run = Simulation(case, "cpu", initial=flow, **options)
    run.solver.choose_dt()
    run.solver.right_hand_side()
    return run


def stress(run: Simulation) -> np.ndarray:
    """Of every node, xx, yy, zz, xy, xz, yz."""
    (state,) = run.solver.states
    return state.interior(run.backend.to_host(state.array("entropic_stress")))


def linear(gradient, rho=1.3):
    return lambda x, y, z: (rho, *(a[0] * x + a[1] * y + a[2] * z for a in gradient), 0.7)


def compressive_part(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The negative part of symmetric matrices (..., 3, 3), and their least eigenvalues, by their eigenvectors."""
    values, vectors = np.linalg.eigh(s)
    return np.einsum("...ik,...k,...jk->...ij", vectors, np.minimum(values, 0), vectors), values[..., 0]


def wanted(gradient: np.ndarray, sigma: np.ndarray) -> tuple[float, np.ndarray]:
    """The right-hand side over alpha rho, and the stress, of a linear velocity by `linear` in cells of 1/8."""
    s = (gradient + gradient.T) / 2 / 8
    part, least = compressive_part(s)
    gate = min(1.0, max(0.0, np.trace(s) / least))
    limit = 1.3 * -least * (np.sqrt(1.4 * 0.7 / 1.3) - 2 * least)
    source = gate * (np.trace(part @ part) + np.trace(part) ** 2)
    return source, np.multiply.outer(part / least, np.minimum(sigma, limit))


turned = Rotation.from_euler("xyz", [0.3, 1.1, -0.7]).as_matrix()
RANDOM = np.random.default_rng(2)
GRADIENTS = {
    "three": turned @ np.diag([-0.3, -0.5, -0.1]) @ turned.T,
    "two": turned @ np.diag([-0.3, -0.5, 0.4]) @ turned.T,
    "one, gate half open": turned @ np.diag([0.1, -0.5, 0.15]) @ turned.T,
    "equal pair": turned @ np.diag([-0.3, -0.3, 0.1]) @ turned.T,
    "equal pair above": turned @ np.diag([0.1, -0.3, 0.1]) @ turned.T,
    "nearly equal": turned @ np.diag([-0.3, -0.3 - 1e-9, 0.1]) @ turned.T,
    "sphere": -0.3 * np.eye(3),
    "plane": turned @ np.diag([-0.3, 0.0, 0.0]) @ turned.T,
    "with rotation": RANDOM.uniform(-0.5, 0.5, (3, 3)) - 0.3 * np.eye(3),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_stress_and_source_are_those_of_the_eigenvectors(name):
    """To round-off, whether eigenvalues are equal or 0 or not; of three equal ones the source is that of Sigma."""
    gradient = GRADIENTS[name]
    run = started(box((9, 9, 9), periodic=""), linear(gradient))
    at = (slice(2, -2),) * 3
    sigma = field(run, "entropic_pressure")[at]
    source, pi = wanted(gradient, sigma)
    np.testing.assert_allclose(field(run, "entropic_source")[at], 1.3 * source, rtol=1e-12)
    assert sigma.min() > 0
    for entry, (a, b) in zip(stress(run)[(slice(None), *at)], PAIRS, strict=True):
        np.testing.assert_allclose(entry, pi[a, b], rtol=0, atol=1e-12 * sigma.max())


def test_on_a_grid_that_is_nowhere_uniform():
    """The right-hand side and the stress of all inner nodes, from metrics and states, in NumPy."""
    scheme = {"inviscid": "regularised", "regularised": {"stress": "compressive", "sweeps": 20}}
    run = started(box((12, 11, 9), periodic="", scheme=scheme), bent, grid=shaken((12, 11, 9)))
    (state,) = run.solver.states
    q, m = (state.interior(run.backend.to_host(a)) for a in (state.q, state.metrics))
    velocity, s, b, lengths = q[1:4] / q[0], 0, 0, 0
    for d in range(3):
        normal = np.moveaxis(m[3 * d : 3 * d + 3], 0, -1)
        change = np.moveaxis((np.roll(velocity, -1, 3 - d) - np.roll(velocity, 1, 3 - d)) / 2, 0, -1)
        pair = np.einsum("...i,...j->...ij", normal, change)
        s = s + (pair + np.swapaxes(pair, -1, -2)) / 2
        length = np.linalg.norm(normal, axis=-1)[..., None, None]
        b, lengths = b + np.einsum("...i,...j->...ij", normal, normal) / length**3, lengths + length
    part, least = compressive_part(s)
    rate = part @ b
    trace, squares = (np.trace(a, axis1=-1, axis2=-2) for a in (rate, rate @ rate))
    gate = np.clip(np.trace(s, axis1=-1, axis2=-2) / least, 0, 1)
    at = (slice(2, -2),) * 3
    source = q[0] * gate * (squares + trace**2)
    np.testing.assert_allclose(field(run, "entropic_source")[at], source[at], rtol=1e-10, atol=1e-16)
    assert (gate[at] == 0).any() and (gate[at] == 1).any() and ((gate[at] > 0) & (gate[at] < 1)).any()
    strength = -least * trace / np.minimum(np.trace(part, axis1=-1, axis2=-2), -1e-30)
    pressure = 0.4 * (q[4] - (q[1:4] ** 2).sum(0) / 2 / q[0])
    limit = q[0] * strength * (np.sqrt(1.4 * pressure / q[0]) + 2 * strength)
    sigma = field(run, "entropic_pressure")
    assert (sigma > limit)[at].any() and (sigma < limit)[at].any()
    for entry, (a, c) in zip(stress(run), PAIRS, strict=True):
        wanted = np.minimum(sigma, limit) * part[..., a, c] / least
        np.testing.assert_allclose(entry[at], wanted[at], rtol=0, atol=1e-12 * sigma.max())


def bent(x, y, z):
    return (
        1 + 0.3 * np.sin(5 * x), 0.3 * np.sin(6 * x + y), 0.2 * np.cos(5 * y - z), 0.2 * np.sin(4 * z + x * y), 0.7
    )  # fmt: skip


@pytest.mark.parametrize("stretched", [False, True])
def test_uniform_flow_stays(stretched):
    """On a grid that is nowhere uniform, and in cells of which some are a thousand times as wide as others."""
    across = {"cluster": "lower", "ratio": 2000.0}
    case = box((12, 11, 9), periodic="", grid={"stretch": {"x": across, "y": across}} if stretched else None)
    run = Simulation(case, "cpu", **({} if stretched else {"grid": shaken((12, 11, 9))}))
    run.run(progress=False)
    assert max(np.abs(run.blocks[0].state(name) - value).max() for name, value in STATE.items()) < 1e-12
    assert np.abs(stress(run)).max() < 1e-20


FREE = {
    "expansion": linear(np.diag([0.3, 0.1, 0.2])),
    "rotation": linear([[0, -0.4, 0.1], [0.4, 0, -0.3], [-0.1, 0.3, 0]]),
    "shear": linear([[0, 0.7, 0], [0, 0, 0], [0, 0, 0]]),
    "strain without divergence": linear(turned @ np.diag([0.3, -0.2, -0.1]) @ turned.T),
    "contact": lambda x, y, z: (np.where(x + y + z < 1.5, 1.0, 5.0), 0.3, 0.2, -0.1, 0.7),
}


@pytest.mark.parametrize("height", [1.0, 0.001])
@pytest.mark.parametrize("name", FREE)
def test_no_stress_without_compression(name, height):
    """Also in cells that are a thousand times as long as high. The entropic pressure of the first two is not 0."""
    size = {"upper": [1.0, height, 1.0]}
    run = started(box((9, 9, 9), periodic="", grid=size), FREE[name])
    assert np.abs(stress(run)[:, 2:-2, 2:-2, 2:-2]).max() < 1e-15
    if name in ("expansion", "rotation"):
        other = started(isotropic_box((9, 9, 9), periodic="", grid=size), FREE[name])
        assert np.abs(field(other, "entropic_pressure")[2:-2, 2:-2, 2:-2]).max() > 1e-5


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_plane_compression_is_one_dimensional(direction):
    """In any direction: 2 alpha rho (du/dn)^2, and n n^T, in cubic cells."""
    n, slope = np.array(direction), -0.4
    run = started(box((9, 9, 9), periodic=""), linear(slope * np.outer(n, n)))
    at = (slice(2, -2),) * 3
    np.testing.assert_allclose(field(run, "entropic_source")[at], 2 * 1.3 * (slope / 8) ** 2, rtol=1e-12)
    sigma = field(run, "entropic_pressure")[at]
    for entry, (a, b) in zip(stress(run)[(slice(None), *at)], PAIRS, strict=True):
        np.testing.assert_allclose(entry / sigma, n[a] * n[b], rtol=0, atol=1e-12)


def test_turned_tube_has_the_same_shocks():
    """A tube between slip walls that lies obliquely in space has the density of a line along x. Fewer sweeps would come
    closer to the solution on a line."""
    walls = [{"faces": ["jmin", "jmax", "kmin", "kmax"], "type": "slip-wall"}]
    p = 1 + 4 * np.exp(-200 * (np.linspace(0, 1, 60) - 0.4) ** 2)
    x, y, z = np.meshgrid(np.linspace(0, 1, 60), np.arange(7) / 59, np.arange(7) / 59, indexing="ij")
    nodes = np.einsum("ab,bijk->akji", turned, np.stack([x, y, z]))
    time = {"steps": 30, "dt": 0.002}
    many = {"inviscid": "regularised", "regularised": {"stress": "compressive", "alpha": 0.5, "sweeps": 100}}
    line = box((60, 1, 1), periodic="", boundary=TUBE[:1], time=time, scheme=many)
    tube = box((60, 7, 7), periodic="", boundary=[TUBE[0], *walls], time=time, scheme=many)
    straight = Simulation(line, "cpu", initial=lambda x, y, z: (1, 0, 0, 0, p))
    oblique = Simulation(
        tube, "cpu", grid=Grid((Block("tube", *nodes),)), initial=lambda x, y, z: (1, 0, 0, 0, p + 0 * x)
    )  # fmt: skip
    for run in (straight, oblique):
        run.run(progress=False)
    assert np.abs(stress(oblique)[3:]).max() > 1e-3
    density = oblique.blocks[0].state("rho")
    np.testing.assert_allclose(density, straight.blocks[0].state("rho") + 0 * density, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", ["sod", "shu-osher"])
def test_in_one_dimension_it_is_the_entropic_pressure_in_compression(case):
    """Of the same flow: the same source where the gas is compressed, and 0 elsewhere; in shocks Sigma is the stress."""
    run = Simulation(load(case, overrides=KEYS), "cpu")
    run.run(progress=False)
    start = {name: run.blocks[0].state(name) for name in ("rho", "u", "v", "w", "p")}
    again, other = (
        started(load(case, overrides=keys), lambda x, y, z: tuple(start.values())) for keys in (KEYS, KEYS[:1])
    )
    u = start["u"].ravel()
    change = np.gradient(u)[1:-1]
    source, isotropic = (field(r, "entropic_source").ravel()[1:-1] for r in (again, other))
    sigma, along = field(again, "entropic_pressure").ravel()[1:-1], stress(again)[0].ravel()[1:-1]
    compressed, expanded = change < -1e-4, change > 1e-9
    assert compressed.sum() > 20 and expanded.sum() > 20 and isotropic[expanded].max() > 1e-6
    np.testing.assert_allclose(source[compressed], isotropic[compressed], rtol=1e-12)
    at_most = sigma[compressed] * (1 + 1e-12)
    assert (along[compressed] <= at_most).all() and (along >= 0).all()
    shocks = compressed & (sigma > 0.1 * sigma.max())
    np.testing.assert_allclose(along[shocks], sigma[shocks], rtol=1e-12)
    assert np.abs(source[expanded]).max() == 0 and np.abs(along[expanded]).max() == 0


def test_sums_stay():
    """Of all conserved variables, through shocks, in a periodic box with bent cells."""
    run = Simulation(box((16, 12, 10), grid={"generator": "wavy", "amplitude": [0.03] * 3}), "cpu", initial=rough)
    before = conserved_sums(run)
    run.run(progress=False)
    assert np.abs(stress(run)[3]).max() > 0.01
    assert np.abs(conserved_sums(run) - before).max() < 1e-14 * np.abs(before).max()


def test_stress_does_work():
    """A uniform stress in a linear velocity leaves momentum as it is, and changes energy by -Pi_ij du_i/dx_j."""
    gradient = turned @ np.diag([-0.4, -0.2, 0.1]) @ turned.T

    def rates(alpha):
        scheme = COMPRESSIVE | {"regularised": {"stress": "compressive", "alpha": alpha}}
        run = started(box((13, 13, 13), periodic="", scheme=scheme), linear(gradient))
        (state,) = run.solver.states
        middle = (slice(None), *(slice(5, -5),) * 3)
        return state.interior(run.backend.to_host(state.r))[middle], stress(run)[middle]

    (rate, pi), (without, _) = rates(1.0), rates(1e-30)
    work = sum((1 if a == b else 2) * pi[n] * gradient[a, b] for n, (a, b) in enumerate(PAIRS))
    assert np.abs(work).min() > 1e-5
    change = (rate - without) * 12**3
    np.testing.assert_allclose(change[:4], 0, atol=1e-12)
    np.testing.assert_allclose(change[4], -work, rtol=1e-9)


def test_beside_a_plane_of_symmetry_is_half_of_a_symmetric_flow():
    """To round-off: the stress between the normal of the plane and its tangents is odd there. A blast runs obliquely
    into the plane, and away from it."""

    def ended(n, lower):
        far = {"type": "far-field", "state": STILL}
        sides = [far | {"faces": ["imin", "imax", "jmin"]}, {"faces": ["jmax"], "type": "symmetry"}]
        if lower == 0:
            sides = [far | {"faces": ["imax", "jmin"]}, {"faces": ["imin"], "type": "symmetry"}, sides[1]]
        run = Simulation(
            box((n, 31, 1), grid={"lower": [lower, 0, 0]}, periodic="", boundary=sides), "cpu",
            initial=lambda x, y, z: (1, 0, 0, 0, 1 + 4 * np.exp(-60 * ((np.abs(x) - 0.3) ** 2 + (y - 0.4) ** 2))),
        )  # fmt: skip
        run.run(progress=False)
        return run.blocks[0].state("p")[0], stress(run)[:, 0]

    half, whole = ended(31, 0.0), ended(61, -1.0)
    assert np.abs(half[1][3, :, 1]).max() > 1e-5
    np.testing.assert_allclose(half[0], whole[0][:, 30:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(half[1], whole[1][..., 30:], rtol=0, atol=1e-12)


def make(where="cpu", out=None, plan="auto", comm=None):
    ground = {} if comm is None else {"comm": comm}
    return Simulation(channel(plan=plan, scheme=COMPRESSIVE), where, initial=bump, out=out, **ground)


@pytest.mark.slow
def test_ranks_backends_plans_and_restart(tmp_path):
    same_everywhere(make, tmp_path / "run", 3, plans=("decomposed", "compact"))


def test_fields_take_seven_more_numbers_of_a_node():
    more, without = (layout(load("sod", overrides=keys), "fused").numbers_per_point for keys in (KEYS, KEYS[:1]))
    assert more == without + 7


def test_noise_beside_a_shock_stays_noise():
    """Sigma spreads to where the gas is hardly compressed. Without a bound of the stress, disturbances of a plane flow
    grow a hundredfold in a step there."""
    case = box(
        (60, 8, 1), periodic="y", boundary=TUBE, grid={"upper": [1.0, 7 / 59, 0.0]}, time={"steps": 30, "dt": 0.002}
    )
    run = Simulation(
        case, "cpu", initial=lambda x, y, z: (1, 0, 0, 0, 1 + 4 * np.exp(-200 * (x - 0.4) ** 2) + 1e-13 * y)
    )
    run.run(progress=False)
    assert stress(run).max() > 0.1
    assert np.abs(run.blocks[0].state("v")).max() < 1e-11


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (KEYS[1:], 'regularised.stress has no effect without scheme.inviscid = "regularised"'),
        ([KEYS[0], 'scheme.regularised.stress="directional"'], "scheme.regularised.stress"),
    ],
)
def test_keys_that_do_not_go_with_it_are_refused(keys, said):
    with pytest.raises(HiresxError, match=said):
        load("sod", overrides=keys)


def test_faces_over_which_the_stress_is_not_transferred_are_refused():
    def cut(rotation=None, kind="slip-wall"):
        patch = SimpleNamespace(condition=SimpleNamespace(type=kind))
        return SimpleNamespace(connections=[SimpleNamespace(rotation=rotation)], patches=[patch])

    chosen = Configuration(inviscid="regularised", stress="compressive")
    check_stress(chosen, cut())
    check_stress(Configuration(), cut(np.eye(3), "patched"))
    for other, said in ((cut(np.eye(3)), "connected by a rotation"), (cut(kind="patched"), "patched")):
        with pytest.raises(HiresxError, match=said):
            check_stress(chosen, other)
