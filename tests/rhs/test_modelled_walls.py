"""Walls with an equilibrium wall model: the layer alone, laminar flow, what enters the gas, plans, ranks, restarts."""

from itertools import pairwise

import numpy as np
import pytest
from kernels_alone import GAMMA, PRANDTL, program, sutherland
from oblique_grids import strip
from same_everywhere import same_everywhere
from wholes import whole

from hiresx import Case, HiresxError, Simulation, cli
from hiresx.output.watch import history

KAPPA, DAMPING, TURBULENT_PRANDTL = 0.41, 17.0, 0.9
HEADERS = ("half_point.h", "metrics.h", "viscous.h", "boundary/modelled_wall.h")


def layer(speed, height, t=1.0, temperature=0.0, inverse_reynolds=1e-4, normal=(0.0, 2.0, 0.0), law="sutherland"):
    """Stress (3,), along x, y, z, and heat flux by the kernel below a flow of the density 1, along x and with a part
    normal to the wall, past a wall that moves with 0.3 along x."""
    q, p = np.zeros((5, 3)), t / GAMMA
    normal = np.array(normal)
    tangent = np.cross(normal, [0.0, 0.0, 1.0])
    velocity = np.array([0.3, 0, 0]) + speed * tangent / np.linalg.norm(tangent) + 0.02 * normal
    q[:, 2] = [1.0, *velocity, p / (GAMMA - 1) + 0.5 * velocity @ velocity]
    m, flow, modelled = np.repeat(normal[:, None], 3, axis=1), np.zeros((6, 1)), np.zeros((4, 1))
    there = program("emulated", HEADERS, viscosity=law)
    there.launch(
        "exchange_flow", (1, 1, 1), o=0, s1=0, s2=0, sn=1, sv=3, n1=1, count=1, u=0.3, v=0.0, w=0.0,
        exchange=np.array([2], np.int32), m=m, q=q, flow=flow,
    )  # fmt: skip
    there.launch(
        "modelled_wall", (1, 1, 1), count=1, temperature=temperature, inverse_reynolds=inverse_reynolds,
        heights=np.array([height]), flow=flow, modelled=modelled,
    )  # fmt: skip
    return modelled[:3, 0], modelled[3, 0], tangent / np.linalg.norm(tangent)


def at_height(height, stress, heat, wall, isobar, inverse_reynolds, nodes=20_000):
    """u and T at `height` above a wall of this stress, heat flux into the gas and temperature: the equations of the
    layer, by Runge and Kutta's midpoint rule on nodes that grow from the wall."""
    u, t = 0.0, wall
    y = height * np.linspace(0, 1, nodes + 1) ** 4

    def slopes(y, u, t):
        mu = sutherland(t) * inverse_reynolds
        root = np.sqrt(isobar / t * stress)
        eddies = KAPPA * y * root * (1 - np.exp(-y * root / (DAMPING * mu))) ** 2
        conductivity = (mu / PRANDTL + eddies / TURBULENT_PRANDTL) / (GAMMA - 1)
        return stress / (mu + eddies), -(heat + stress * u) / conductivity

    for a, b in pairwise(y):
        du, dt = slopes(a, u, t)
        du, dt = slopes(0.5 * (a + b), u + 0.5 * (b - a) * du, t + 0.5 * (b - a) * dt)
        u, t = u + (b - a) * du, t + (b - a) * dt
    return u, t


@pytest.mark.slow
@pytest.mark.parametrize(("speed", "temperature", "off"), [(0.2, 1.3, 8e-3), (1.5, 0.8, 8e-3), (0.2, 0.0, 2e-3)])
def test_the_layer_has_its_equations(speed, temperature, off):
    """With its stress and heat flux they give the speed and the temperature at the exchange height; the stress points
    along the flow."""
    for inverse_reynolds in (1e-2, 1e-4, 3e-6):
        stress, heat, along = layer(speed, 0.1, 1.0, temperature, inverse_reynolds, normal=(1.0, 2.0, 0.0))
        found = stress @ along
        np.testing.assert_allclose(stress, found * along, rtol=0, atol=1e-12 * found)
        assert temperature or heat == 0
        # an adiabatic wall has about the temperature of gas that is stopped, which the model does not tell
        wall = temperature or 1 + 0.5 * (GAMMA - 1) * PRANDTL**0.5 * speed**2
        u, t = at_height(0.1, found, heat, wall, 1.0, inverse_reynolds)
        assert u == pytest.approx(speed, rel=off)
        if temperature:
            assert t == pytest.approx(1.0, abs=2 * off * max(abs(wall - 1), speed**2))


def test_log_law():
    """The stress below a log law within 1 %, at y+ of 100 to 10,000."""
    root = 0.01  # u_tau
    for height_plus in (100.0, 300.0, 1000.0, 3000.0, 10_000.0):
        inverse_reynolds = root * 0.1 / height_plus
        speed = root * (np.log(height_plus) / KAPPA + 5.2)
        stress, _, along = layer(speed, 0.1, 1.0, 0.0, inverse_reynolds, law="constant")
        assert stress @ along == pytest.approx(root**2, rel=0.01), height_plus


def test_sublayer_and_rest():
    """u+ = y+ near the wall, conduction below gas at rest."""
    stress, _, along = layer(1e-3, 0.1, 1.0, 0.0, 1e-2, law="constant")
    assert stress @ along == pytest.approx(1e-4, rel=2e-5)
    stress, heat, _ = layer(0.0, 0.1, 1.0, 1.1, 1e-2, law="constant")
    assert not stress.any()
    assert heat == pytest.approx(1e-2 / PRANDTL / (GAMMA - 1) * 0.1 / 0.1, rel=1e-5)


def between_walls(n=(9, 17, 1), reynolds=20.0, speed=0.2, temperature=1.0, **keys) -> Case:
    """Between walls at y = 0 and 1, of which the upper one moves."""
    wall = {"type": "modelled-wall", "temperature": temperature}
    across = n[2] > 1
    sides = ["imin", "imax", *(["kmin", "kmax"] if across else [])]
    return Case.from_dict(
        {
            "grid": {
                "generator": "box", "n": list(n), "lower": [0, 0, 0], "upper": [1, 1, int(across)],
                "periodic": ["x", *(["z"] if across else [])],
            },
            "gas": {"reynolds": reynolds},
            "scheme": {"flux": "hllc"},
            "time": {"steps": 400},
            "boundary": [
                {"faces": ["jmin"], **wall},
                {"faces": ["jmax"], "velocity": [speed, 0.0, 0.0], **wall},
                {"faces": sides, "type": "periodic"},
            ],
            "force": [{"name": "lower", "faces": ["jmin"], "every": 400}],
            **keys,
        }
    )  # fmt: skip


def test_laminar_couette_flow_stays(tmp_path):
    """A resolved layer: the flow sticks to the walls, which have their temperature, by the model alone. What is off is
    the eddy viscosity at y+ = 0.5."""
    warm = 0.5 * 0.4 * 0.72 * 0.2**2

    def start(x, y, z):
        t = 1 + warm * y * (1 - y)
        return 1 / t, 0.2 * y, 0 * y, 0 * y, 1 / 1.4 + 0 * y

    run = Simulation(between_walls(), "cpu", initial=start, out=tmp_path / "run")
    run.run(progress=False)
    block = run.blocks[0]
    assert run.solver.time > 5  # u diffuses over 2 of the 17 nodes in 0.3
    assert abs(block.state("u") - 0.2 * block.y).max() < 5e-5 * 0.2
    t = 1.4 * block.state("p") / block.state("rho")
    assert abs(t / t[0, 0, 0] - start(0, block.y, 0)[0] ** -1).max() < 0.01 * warm
    force = history.read(history.histories(tmp_path / "run")["lower"]).data
    assert force["friction_x"][-1] == pytest.approx(0.2 / 20, rel=1e-4)
    assert force["heat"][-1] == pytest.approx(0.2**2 / 20 / 2, rel=1e-2)


def shear(lower, upper):
    return lambda x, y, z: (1 + 0 * x, lower + (upper - lower) * y + 0 * x, 0 * x, 0 * x, 1 / 1.4 + 0 * x)


def test_oblique_lines():
    """Grid lines that meet the walls at 31 degrees off the normal: uniform flow that moves with the walls stays, and
    Couette flow has the error that it has on orthogonal lines."""
    still = between_walls(force=[]).model_dump(mode="json", exclude_unset=True) | {"grid": {"file": "none"}}
    for lower, upper, off in ((0.2, 0.2, 1e-14), (0.0, 0.2, 5e-5)):
        for n, speed in enumerate((lower, upper)):
            still["boundary"][n]["velocity"] = [speed, 0.0, 0.0]
        run = Simulation(
            Case.from_dict(still | {"time": {"steps": 100}}), "cpu", grid=strip(17, 0.6),
            initial=shear(lower, upper),
        )  # fmt: skip
        run.run(progress=False)
        wanted = lower + (upper - lower) * run.blocks[0].y
        assert abs(run.blocks[0].state("u") - wanted).max() < off * 0.2 + 1e-15


def stirred(x, y, z):
    """Unlike everywhere, and through no wall."""
    rho = 1 + 0.1 * np.sin(2 * np.pi * (x + z)) * np.cos(2 * y)
    u, w = 0.3 + 0.1 * np.sin(2 * np.pi * z + y), 0.1 * np.cos(2 * np.pi * x) * (1 + y)
    v = 0.1 * np.sin(np.pi * y) * np.sin(2 * np.pi * x)
    return rho, u, v, w, (1 + 0.05 * np.cos(2 * np.pi * (x - z) + y)) / 1.4


MODEL = {"turbulence": {"model": "dynamic_smagorinsky"}, "time": {"steps": 4}}


def test_what_leaves_the_gas_is_the_model(tmp_path):
    """The rates of momentum and energy, summed with half weights at the walls, are minus what [[force]] measures, to
    round-off, and the mass stays."""
    both = [{"name": name, "faces": [face], "every": 1} for name, face in (("lower", "jmin"), ("upper", "jmax"))]
    case = between_walls((8, 11, 8), 5e4, force=both, **MODEL)
    run = Simulation(case, "cpu", initial=stirred, out=tmp_path / "run")
    run.solver.choose_dt()
    run.solver.right_hand_side()
    (state,) = run.solver.states
    weights = np.r_[0.5, np.ones(9), 0.5][:, None]
    sums = np.sum(state.interior(run.backend.to_host(state.r)) * weights, axis=(1, 2, 3))
    run.run(steps=1, progress=False)
    lower, upper = (history.read(history.histories(tmp_path / "run")[name]).data for name in ("lower", "upper"))
    total = {name: lower[name][0] + upper[name][0] for name in ("friction_x", "friction_z", "heat")}
    assert lower["friction_x"][0] > 2e-4  # of laminar flow 0.3/0.4/5e4 = 1.5e-5
    np.testing.assert_allclose(sums[[1, 3]], [-total["friction_x"], -total["friction_z"]], rtol=1e-10)
    assert sums[4] == pytest.approx(-total["heat"] - 0.2 * upper["friction_x"][0], rel=1e-10)
    assert abs(sums[0]) < 1e-15


def run_between(comm=None, where="cpu", plan=None, out=None) -> Simulation:
    keys = MODEL | ({"plan": plan} if plan else {})
    return Simulation(between_walls((8, 14, 8), 5e4, force=[], **keys), where, comm=comm, initial=stirred, out=out)


def on_two_ranks(comm) -> list[np.ndarray]:
    run = run_between(comm)
    run.run(progress=False)
    return whole(run.solver)


@pytest.mark.slow
def test_the_same_everywhere(tmp_path):
    same_everywhere(run_between, tmp_path / "run", 2, plans=("decomposed", "compact"), on_ranks=on_two_ranks)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"gas": {}}, 'boundary.0: type = "modelled-wall" needs viscosity'),
        ({"exchange_height": 0.05}, "too few nodes"),
        ({"exchange_height": 1.5}, "lies beyond the 17 nodes"),
        ({"exchange_nodes": 17}, "lies beyond the 17 nodes"),
        ({"exchange_nodes": 3, "exchange_height": 0.2}, "exchange_nodes or exchange_height, not both"),
        ({"exchange_nodes": 1}, "greater than or equal to 2"),
    ],
)
def test_what_cannot_be_is_refused(keys, said):
    case = between_walls().model_dump(mode="json", exclude_unset=True)
    for key, value in keys.items():
        if key == "gas":
            case["gas"] = value
        else:
            case["boundary"][0][key] = value
    with pytest.raises(HiresxError, match=said):
        Simulation(Case.from_dict(case), "cpu", initial=stirred)


def test_check_knows_them(capfd):
    assert cli.execute(["check", "channel", "--preset", "wmles"]) == 0
    assert "wall model" in capfd.readouterr().out
    assert cli.execute(["check", "channel", "--preset", "wmles", "--set", "boundary.0.exchange_height=2.5"]) == 2
    assert "its exchange height lies beyond the 33 nodes" in capfd.readouterr().err


def test_a_rank_that_lacks_the_exchange_node_is_named_before_a_run(capfd):
    """By `check` and by `launch --dry-run`, as the run itself does; with the whole layer on a rank nothing is said."""
    case = ("channel", "--preset", "wmles", "--set", "boundary.0.exchange_height=0.9")
    assert cli.execute(["check", *case, "--ranks", "2"]) == 0
    capfd.readouterr()
    for words in (["check", *case, "--ranks", "16"], ["launch", "-n", "16", *case, "--dry-run", "--oversubscribe"]):
        assert cli.execute(words) == 2
        said = capfd.readouterr().err
        assert "its exchange height lies beyond the" in said and "fewer ranks" in said
