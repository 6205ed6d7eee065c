"""Flows by the split form of the inviscid terms and by the hybrid of it with AFWENO."""

import numpy as np
import pytest
from arrangements import shaken
from ranks import run_ranks
from wall_sums import total
from wholes import off_on_ranks, whole

from hiresx import Case, HiresxError, Simulation, load
from hiresx.grid.blocks import FACES
from hiresx.rhs import split
from hiresx.rhs.inviscid import face_nodes
from hiresx.rhs.repeated import repeat_at_faces

HYBRID = 'scheme.inviscid="hybrid"'
STATE = {"rho": 1.0, "u": 0.5, "v": 0.2, "w": 0.1, "p": 1 / 1.4}
# That by default, and one that reads two nodes to each side and scheme.cutoff; it has kernels of its own.
SENSORS = pytest.mark.parametrize("sensor", ["jump", pytest.param("teno", marks=pytest.mark.slow)])


def box(inviscid: str, n: int, **tables) -> Case:
    """A periodic cube, inviscid."""
    grid = {"generator": "box", "n": [n] * 3, "lower": [0, 0, 0], "upper": [2 * np.pi] * 3, "periodic": [*"xyz"]}
    given = {"time": {"steps": 30, "cfl": 0.5}, "scheme": {"inviscid": inviscid}, "initial": {"state": STATE}}
    return Case.from_dict({"grid": grid, "boundary": [{"faces": "all", "type": "periodic"}]} | given | tables)


def scattered(x, y, z):
    """Waves of random phases up to a fourth of the nodes' wave number, Mach .2, without divergence."""
    rng = np.random.default_rng(7)
    velocity = np.zeros((3, *x.shape))
    for _ in range(40):
        k = rng.integers(-6, 7, 3)
        a = np.cross(rng.normal(size=3), k) / max(1, np.linalg.norm(k))
        velocity += a[:, None, None, None] * np.cos(k[0] * x + k[1] * y + k[2] * z + rng.uniform(0, 2 * np.pi))
    velocity *= 0.2 / np.sqrt((velocity**2).sum(0).mean())
    return 1.0 + 0 * x, *velocity, 1 / 1.4 + 0 * x


def kinetic_energy(simulation: Simulation) -> float:
    rho, u, v, w = (simulation.blocks[0].state(name) for name in ("rho", "u", "v", "w"))
    return float(np.mean(0.5 * rho * (u * u + v * v + w * w)))


@pytest.mark.slow
def test_kinetic_energy_stays():
    """In a box that is full of waves which the grid hardly resolves; what pressure does to the energy is of the order
    of the square of the Mach number."""
    lost = {}
    for inviscid in ("afweno", "split"):
        run = Simulation(box(inviscid, 24, time={"steps": 200, "cfl": 0.5}), "cpu", initial=scattered)
        before = kinetic_energy(run)
        run.run(progress=False)
        lost[inviscid] = abs(kinetic_energy(run) / before - 1)
    assert lost["afweno"] > 0.2
    assert lost["split"] < 0.02 * lost["afweno"]


def test_convection_does_not_change_kinetic_energy():
    """Where the pressure is uniform, the sum of the rates of rho |u|^2 / 2 is 0 on a bent periodic grid. AFWENO loses
    as much as its rates change."""
    grid = {"generator": "wavy", "n": [12, 13, 14], "lower": [0, 0, 0], "upper": [2 * np.pi] * 3}
    grid |= {"amplitude": [0.3, 0.2, 0.25], "periodic": [*"xyz"]}
    lost = {}
    for inviscid in ("afweno", "split"):
        run = Simulation(box(inviscid, 12, grid=grid), "cpu", initial=scattered)
        run.solver.choose_dt()
        run.solver.right_hand_side()
        (state,) = run.solver.states
        rate = np.array(state.interior(run.backend.to_host(state.r)))
        velocity = np.array([run.blocks[0].state(name) for name in "uvw"])
        work = (velocity * rate[1:4]).sum(0) - 0.5 * (velocity**2).sum(0) * rate[0]
        lost[inviscid] = -work.sum() / np.abs(work).sum()
    assert lost["afweno"] > 0.9
    assert abs(lost["split"]) < 1e-14


@pytest.mark.parametrize("inviscid", ["split", "hybrid"])
def test_order_and_pressure_of_a_density_wave(inviscid):
    """Sixth order on a bent grid; on a straight one velocity and pressure stay what they are."""
    errors = []
    for n in (16, 32):
        run = wave(inviscid, n, [0.03, 0.03, 0.0])
        errors.append(float(np.abs(run.blocks[0].state("rho") - density(run)).mean()))
    assert np.log2(errors[0] / errors[1]) > 5.5
    run = wave(inviscid, 16, [0.0, 0.0, 0.0])
    for name in ("u", "v", "p"):
        assert np.ptp(run.blocks[0].state(name)) < 1e-13


def density(run: Simulation) -> np.ndarray:
    block = run.blocks[0]
    return 1 + 0.1 * np.sin(2 * np.pi * (block.x + block.y - 0.7 * run.time))


def wave(inviscid: str, n: int, amplitude: list[float]) -> Simulation:
    grid = {"generator": "wavy", "n": [n, n, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "amplitude": amplitude}
    grid |= {"periodic": ["x", "y"]}
    case = box(inviscid, 8, grid=grid, time={"end": 0.1, "dt": 0.04 / n**2 * 16})
    run = Simulation(case, "cpu", initial=lambda x, y, z: (1 + 0.1 * np.sin(2 * np.pi * (x + y)), 0.5, 0.2, 0, 0.7))
    run.run(progress=False)
    return run


def gap(**tables) -> Case:
    """Between walls, viscous, on any grid."""
    walls = [
        {"faces": ["jmin", "kmin", "kmax"], "type": "no-slip-wall", "temperature": 1.1},
        {"faces": ["jmax", "imin", "imax"], "type": "slip-wall"},
    ]
    given = {"time": {"steps": 8, "cfl": 0.4}, "initial": {"state": STATE | {"u": 0.0, "v": 0.0, "w": 0.0}}}
    given |= {"gas": {"reynolds": 200.0}, "scheme": {"inviscid": "hybrid"}}
    return Case.from_dict({"grid": {"file": "none"}, "boundary": walls} | given | tables)


def blast(x, y, z):
    p = (1 + 3 * np.exp(-20 * ((x - 0.5) ** 2 + (y - 0.4) ** 2 + (z - 0.5) ** 2))) / 1.4
    return 1 + 0.3 * np.sin(3 * x) * np.cos(2 * z), 0.3 * np.sin(3 * y), 0.1 * np.cos(x), 0.2 * np.sin(2 * x), p


GRID = shaken((11, 12, 13))


def test_ghosts_of_the_sensor_behind_conditions_alone():
    """Launches repeat the nodes of faces with conditions. Those of connected faces come by the exchange."""
    for case, grid, wanted in ((gap(), GRID, [*FACES]), (box("hybrid", 12), None, [])):
        solver = Simulation(case, "cpu", grid=grid).solver
        (state,) = solver.states
        calls = list(repeat_at_faces(solver.program, state, "shock_sensor", solver.cut.patches))
        found = {call.arguments["o"] for call in calls}
        assert found == {face_nodes(state, face)[1]["o"] for face in wanted} and len(calls) == len(wanted)


def rates(case: Case, backend: str, plan: str) -> np.ndarray:
    run = Simulation(case.model_copy(update={"plan": plan}), backend, grid=GRID, initial=blast)
    run.solver.choose_dt()
    run.solver.right_hand_side()
    (state,) = run.solver.states
    if case.scheme.inviscid == "hybrid":
        sensor = run.solver.field(0, "shock_sensor")
        assert sensor.min() == 0.0 and sensor.max() == 1.0
    return np.array(state.interior(run.backend.to_host(state.r)))


def kept(backend: str, plan: str, scheme: dict) -> float:
    """How far a uniform flow comes off itself in some steps, in which the sensor sees nothing."""
    far = [{"faces": "all", "type": "far-field", "state": STATE}]
    case = gap(boundary=far, initial={"state": STATE}, plan=plan, scheme=scheme)
    run = Simulation(case, backend, grid=GRID)
    run.run(progress=False)
    assert run.solver.field(0, "shock_sensor").max() == 0.0
    return max(float(np.abs(run.blocks[0].state(name) - value).max()) for name, value in STATE.items())


@SENSORS
def test_plans_of_the_cpu(sensor):
    """A blast between walls on a grid that is nowhere uniform has the same rates by both, and a uniform flow stays."""
    scheme = {"inviscid": "hybrid", "hybrid": {"sensor": sensor}}
    case = gap(scheme=scheme)
    first = rates(case, "cpu", "pencils")
    assert np.abs(first - rates(case, "cpu", "decomposed")).max() < 1e-13 * np.abs(first).max()
    assert max(kept("cpu", plan, scheme) for plan in ("pencils", "decomposed")) < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheme",
    [
        {"inviscid": "split"},
        {"inviscid": "split", "interpolation": "modified7", "weights": "z"},
        {"inviscid": "hybrid"},
        {"inviscid": "hybrid", "hybrid": {"sensor": "teno"}},
        {"inviscid": "hybrid", "interpolation": "original"},
    ],
    ids=["split", "eighth-order", "hybrid", "teno", "original"],
)
def test_plans_of_gpus(scheme):
    """The same by the CUDA form of the kernels."""
    case = gap(scheme=scheme)
    first = rates(case, "cpu", "pencils")
    for plan in ("fused", "decomposed", "compact"):
        assert np.abs(first - rates(case, "emulated", plan)).max() < 1e-13 * np.abs(first).max()
    if scheme["inviscid"] == "hybrid" and "interpolation" not in scheme:
        assert kept("emulated", "fused", scheme) < 1e-13


@pytest.mark.slow
def test_shares_of_stencils_enlarge_round_off():
    """States that differ by round-off, of the CUDA form and the CPU, have values of the sensor `teno` that differ by
    up to 1e-9, as its shares are quotients of powers of small differences. A node so close to the threshold is marked
    by one of them alone. Steep weights enlarge round-off as well: here in step 40. The two forms differ by no more than
    runs of the CPU that begin with states one unit of the last digit apart."""
    case = gap(scheme={"inviscid": "hybrid", "hybrid": {"sensor": "teno"}}, time={"steps": 40, "cfl": 0.4})
    one, other, disturbed = (Simulation(case, where, grid=GRID, initial=blast) for where in ("cpu", "emulated", "cpu"))
    state = {name: disturbed.blocks[0].state(name) for name in STATE}
    state["p"] *= 1 + np.finfo(float).eps * np.random.default_rng(0).integers(-1, 2, state["p"].shape)
    disturbed.blocks[0].set_state(**state)
    off = np.zeros(2)
    for _ in range(40):
        for run in (one, other, disturbed):
            run.step()
        marks, others = (run.solver.field(0, "shock_sensor")[0] for run in (one, other))
        np.testing.assert_allclose(marks, others, rtol=0, atol=1e-9)
        assert np.array_equal(marks >= 0.5, others >= 0.5) and (marks >= 0.5).any()
        for n, run in enumerate((other, disturbed)):
            off[n] = max(off[n], *(np.abs(run.blocks[0].state(v) - one.blocks[0].state(v)).max() for v in STATE))
    assert 0 < off[0] < 10 * off[1] < 1e-11


def test_mass_between_walls_and_restart(tmp_path):
    """The sum of rho/J of a vessel of no-slip walls stays, and a restart goes on to the last bit."""
    case = gap(boundary=[{"faces": "all", "type": "no-slip-wall"}])
    through = Simulation(case, "cpu", grid=GRID, initial=blast)
    before = total(through.solver)
    through.run(progress=False)
    assert abs(total(through.solver) / before - 1) < 1e-14
    first = Simulation(case, "cpu", grid=GRID, initial=blast, out=tmp_path / "run")
    first.run(steps=4, progress=False)
    rest = Simulation(restart=tmp_path / "run", backend="cpu", grid=GRID)
    rest.run(progress=False)
    assert all(np.array_equal(a, b) for a, b in zip(whole(through.solver), whole(rest.solver), strict=True))


def _off_on_ranks(comm, sensor: str) -> float:
    case = load("riemann-2d", overrides=[HYBRID, f'scheme.hybrid.sensor="{sensor}"', "grid.n=[32,32,1]"])
    return off_on_ranks(comm, case, 6)


@pytest.mark.slow
@SENSORS
def test_ranks(sensor):
    """Two ranks have what one has, sensors and their halos included."""
    assert max(run_ranks(2, _off_on_ranks, sensor)) < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("planes", [3, 9, 12])
def test_chunks_of_the_marching_kernel(planes, monkeypatch):
    """Marks are of fewer planes at the end of a chunk. Few nodes are marked here."""
    monkeypatch.setattr(split, "march_chunk", lambda n, tiles: planes)
    case = gap(scheme={"inviscid": "hybrid", "hybrid": {"threshold": 0.05, "blending": "sharp"}})
    first = rates(case, "cpu", "pencils")
    assert np.abs(first - rates(case, "emulated", "fused")).max() < 1e-13 * np.abs(first).max()


def test_where_most_segments_are_listed():
    """With a threshold that nearly all nodes exceed, all lines are swept. The limits are half of the segments along i,
    and seven eighths of them along j and k."""
    case = gap(scheme={"inviscid": "hybrid", "hybrid": {"threshold": 1e-4}})
    first, last = (
        Simulation(case.model_copy(update={"plan": plan}), where, grid=GRID, initial=blast)
        for where, plan in (("cpu", "pencils"), ("emulated", "fused"))
    )
    for run in (first, last):
        run.solver.choose_dt()
        run.solver.right_hand_side()
    (block,), (other,) = first.solver.states, last.solver.states
    sweeps = [call.arguments for call in last.solver.terms.inviscid[0].early if "limit" in call.arguments]
    assert len(sweeps) == 4 and all(given["count"][0] > given["limit"] for given in sweeps)
    wanted = block.interior(block.r)
    assert np.abs(other.interior(other.r) - wanted).max() < 1e-13 * np.abs(wanted).max()


@pytest.mark.slow
def test_stored_differences_on_gpus():
    """Where the state is stored as differences from a reference, in FP32, GPUs and CPUs differ by its round-off."""
    scheme = {"inviscid": "hybrid", "hybrid": {"sensor": "teno"}, "precision": "differences"}
    runs = [Simulation(gap(scheme=scheme), where, grid=GRID, initial=blast) for where in ("emulated", "cpu")]
    for run in runs:
        run.run(progress=False)
    for name in STATE:
        np.testing.assert_allclose(*(run.blocks[0].state(name) for run in runs), rtol=0, atol=1e-6)


def _off_on_emulated_ranks(comm, inviscid: str) -> float:
    given = [f'scheme.inviscid="{inviscid}"', "grid.n=[24,18,20]"]
    given += ["scheme.hybrid.threshold=0.0005"] if inviscid == "hybrid" else []
    return off_on_ranks(comm, load("taylor-green", overrides=given), 3, "emulated")


@pytest.mark.slow
@pytest.mark.parametrize("inviscid", ["split", "hybrid"])
def test_ranks_of_gpus(inviscid):
    """The directions that wait for another rank's ghosts add to what the others have left."""
    assert max(run_ranks(2, _off_on_emulated_ranks, inviscid, timeout=180.0)) < 1e-13


@SENSORS
def test_shock_tube_as_afweno(sensor):
    """The density of Sod's tube, and how much it goes up and down."""
    found, rise = {}, {}
    for inviscid, more in (("afweno", []), ("hybrid", [f'scheme.hybrid.sensor="{sensor}"'])):
        run = Simulation(load("sod", overrides=[f'scheme.inviscid="{inviscid}"', *more]), "cpu")
        run.run(progress=False)
        found[inviscid] = run.blocks[0].state("rho").ravel()
        rise[inviscid] = float(np.abs(np.diff(found[inviscid])).sum())
    assert rise["hybrid"] < 1.05 * rise["afweno"]
    assert np.abs(found["hybrid"] - found["afweno"]).mean() < 2e-3


def test_scalars_are_refused():
    with pytest.raises(HiresxError, match="does not carry passive scalars"):
        load("sod", overrides=[HYBRID, 'scalar=[{name="dye"}]'])
