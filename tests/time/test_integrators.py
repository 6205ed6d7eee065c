"""Time integrators: their order, how far they are stable, and that they do on every backend and cut what one does."""

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from ranks import run_ranks
from vortices import taylor_green
from wholes import advanced, off_on_ranks, whole

from hiresx import Case, Simulation
from hiresx.case.model import integrators
from hiresx.cli import execute
from hiresx.device import Configuration, backend
from hiresx.device.fields import Layout
from hiresx.device.state import BlockState
from hiresx.estimate import estimate
from hiresx.grid import Block, Grid
from hiresx.simulation.blow_up_error import BlowUp
from hiresx.solver import Solver
from hiresx.solver import solver as solver_module
from hiresx.time import integrators as integrators_package
from hiresx.time.integrator import Integrator
from hiresx.time.integrators import integrator, remarks
from hiresx.time.step_recording import StepRecording
from hiresx.verify.turned_blocks import difference

# Explicit ones; the others are in test_implicit.py and test_bdf2.py.
NAMES = [name for name in integrators() if not integrator(name).implicit]
OTHERS = [name for name in NAMES if name != "ssp_rk3"]


def periodic(name: str, n: int, **tables) -> Case:
    """A line of n nodes without ends, of length 1."""
    found = {
        "title": "A wave",
        "grid": {"generator": "box", "n": [n, 1, 1], "upper": [1.0, 0.0, 0.0], "lower": [0.0, 0.0, 0.0],
                 "periodic": ["x"]},
        "time": {"integrator": name, "dt": 1e-3, "steps": 1},
        "initial": {"state": {"rho": 1.0, "u": 0.5, "p": 1 / 1.4}},
        "boundary": [{"faces": ["imin", "imax"], "type": "periodic"}],
    }  # fmt: skip
    for key, entries in tables.items():
        found[key] = found.get(key, {}) | entries
    return Case.from_dict(found)


def test_a_file_with_two_integrators_is_refused_by_name(monkeypatch):
    """The class that a file imports to derive its own from is not one of them."""
    name = "hiresx.time.integrators.doubled"
    module = ModuleType(name)
    module.Base = Integrator
    module.First = type("First", (Integrator,), {"__module__": name, "step": lambda self, system: None})
    monkeypatch.setitem(sys.modules, name, module)
    assert isinstance(integrator("doubled"), module.First)
    module.Second = type("Second", (module.First,), {"__module__": name})
    integrators_package._class.cache_clear()
    with pytest.raises(TypeError, match=f"{name} has 2 classes derived from Integrator: define one"):
        integrator("doubled")


# ---- order


def ordinary(name: str, steps: int, local: bool) -> float:
    """Error at t = 1 of a nonlinear system of five equations that know the time, in the kernels of the integrator."""
    times = {"dt": None, "cfl": 0.5, "local": True} if local else {}
    solver = Solver(periodic(name, 8, time=times), backend("cpu"))
    (state,), scheme = solver.states, solver.integrator
    updates = [solver.program.prepare([call]) for call in scheme.updates(solver.program, state)]
    ends = np.linspace(0.5, 1.0, 8) if local else np.ones(8)  # each point its own
    q, r = state.interior(state.q), state.interior(state.r)
    state.jacobian[...] = 2.0
    state.interior(state.dt if local else np.ones(state.shape))[0, 0] = ends / steps
    if not local:
        state.dt[...] = 1 / steps
    state.registers[0][...] = np.nan  # nothing may be left of what was there
    q[...] = np.array([0.0, 1.0, 1.0, 1.0, 1.0])[:, None, None, None]

    def rates(t):
        a, b, c, d, e = (q[v, 0, 0].copy() for v in range(5))
        return [b, -a, -c * c, d * np.cos(t), e * c]

    for step in range(steps):
        began = 0.0
        for stage in range(scheme.stages):
            r[:, 0, 0] = np.array(rates((step + began) * ends / steps)) / 2.0
            updates[stage]()
            began = scheme.times[stage]
        assert began == 1.0
    t = ends
    exact = [np.sin(t), np.cos(t), 1 / (1 + t), np.exp(np.sin(t)), 1 + t]
    return float(np.abs(q[:, 0, 0] - exact).max())


@pytest.mark.parametrize("local", [False, True], ids=["global", "local"])
@pytest.mark.parametrize("name", NAMES)
def test_order_on_ordinary_equations(name, local):
    errors = [ordinary(name, steps, local) for steps in (10, 20, 40)]
    orders = -np.diff(np.log2(errors))
    assert integrator(name).order - 0.15 < orders[-1] < integrator(name).order + 0.6


@pytest.mark.parametrize("name", NAMES)
def test_order_on_a_wave(name):
    """Against the same equations in space, solved with a step so small that it counts no more."""

    def advance(steps: int, by: str = name) -> np.ndarray:
        solver = Solver(periodic(by, 24, time={"dt": 0.32 / steps, "steps": steps}), backend("cpu"))
        rho = 1 + 0.1 * np.sin(2 * np.pi * solver.states[0].block.x)
        solver.set_state(0, rho, 0.5 + (rho - 1), 0.0, 0.0, rho**1.4 / 1.4)
        solver.complete_state()
        for _ in range(steps):
            solver.step()
        return solver.primitives(0)["rho"]

    exact = advance(320, "carpenter_kennedy_rk4")
    errors = [np.abs(advance(steps) - exact).max() for steps in (16, 32)]
    assert integrator(name).order - 0.25 < np.log2(errors[0] / errors[1]) < integrator(name).order + 0.6


# ---- stability


def amplification(updates: list, z: np.ndarray) -> np.ndarray:
    """What a step of these launches makes of dq/dt = z q / dt."""
    q, kept = np.ones_like(z), np.zeros_like(z)
    for call in updates:
        a, b, first = (call.arguments[name] for name in ("a", "b", "first"))
        if call.name == "update":
            kept = q if first else kept
            q = a * kept + b * (q + z * q)
        else:
            kept = a * kept + z * q
            q = q + b * kept
    return q


def largest(updates: list, rates: np.ndarray) -> float:
    """The largest step for which no wave of dq/dt = rates q grows."""

    def grows(step: float) -> bool:
        return bool((np.abs(amplification(updates, step * rates)) > 1 + 1e-9).any())

    low, high = 0.0, 0.0
    while not grows(high):
        low, high = high, high + 0.01
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if grows(middle) else (middle, high)
    return low


@pytest.mark.parametrize("name", NAMES)
def test_the_limits_are_those_of_the_schemes_in_space(name):
    """Waves exp(i theta j) under AFWENO5 with ideal weights, and under the 6th-order derivative taken twice."""
    theta = np.linspace(0, np.pi, 1001)
    shift = [np.exp(1j * s * theta) for s in range(3)]
    half = 3 / 128 / shift[2] - 5 / 32 / shift[1] + 45 / 64 + 15 / 32 * shift[1] - 5 / 128 * shift[2]
    sines = [2j * np.sin(s * theta) for s in (1, 2, 3)]
    convection = half * (1 - 1 / shift[1]) + 17 / 256 * sines[0] - 13 / 320 * sines[1] + 19 / 3840 * sines[2]
    derivative = (45 * sines[0] - 9 * sines[1] + sines[2]) / 60
    scheme = integrator(name)
    solver = Solver(periodic(name, 8), backend("cpu"))
    updates = scheme.updates(solver.program, solver.states[0])
    assert scheme.cfl == pytest.approx(largest(updates, -convection), rel=2e-3)
    assert scheme.viscous_cfl == pytest.approx(largest(updates, derivative**2), rel=2e-3)


@pytest.mark.parametrize("limit", ["cfl", "viscous_cfl"])
@pytest.mark.parametrize("name", NAMES)
def test_a_little_noise_grows_above_the_limit_and_not_below(name, limit):
    """In the solver, of which the limits above know nothing; of so little noise the weights are the ideal ones."""
    gas = {"reynolds": 0.1 if limit == "viscous_cfl" else 1e9}
    grown = []
    for share in (0.97, 1.04):
        numbers = {"dt": None, "cfl": 1e6, "viscous_cfl": 1e6} | {limit: share * getattr(integrator(name), limit)}
        solver = Solver(periodic(name, 48, time=numbers, gas=gas), backend("cpu"))
        noise = 1e-9 * np.random.default_rng(2).normal(size=(4, 1, 1, 48))
        solver.set_state(0, 1 + noise[0], 0.5 + noise[1], noise[2], 0.0, 1 / 1.4 + noise[3])
        solver.complete_state()
        grown.append(0.0)
        for _ in range(400):
            solver.step()
            grown[-1] = float(max(np.ptp(values) for values in solver.primitives(0).values()))
            if grown[-1] > 1e-6:
                break
    assert grown[0] < 1e-8 and grown[1] > 1e-6


@pytest.mark.parametrize("skew, order", [(0.0, 6), (1.5, 6), (1.5, 8)])
def test_noise_decays_on_oblique_lines(skew, order):
    """With the default step. By sum |m_d|^2 alone the temperature changed by 0.5 on lines of this angle."""
    z, y, x = np.meshgrid(*(np.arange(9) / 9,) * 3, indexing="ij")
    period = {"i": (1.0, 0.0, 0.0), "j": (skew, 1.0, 0.0), "k": (skew, skew, 1.0)}
    grid = Grid((Block("oblique", x + skew * (y + z), y + skew * z, z),), period=(period,))
    spec = periodic("ssp_rk3", 9, gas={"reynolds": 0.01}, time={"dt": None}, scheme={"viscous_order": order})
    spec = Case.from_dict(spec.model_dump(mode="json") | {"boundary": [{"faces": "all", "type": "periodic"}]})
    solver = Solver(spec, backend("cpu"), grid)
    noise = 1e-3 * np.random.default_rng(1).uniform(-1, 1, (3, 9, 9, 9))
    solver.set_state(0, 1.0, *noise, 1 / 1.4)
    solver.complete_state()
    for _ in range(100):
        solver.step()
    found = solver.primitives(0)
    assert np.ptp(found["p"] / found["rho"]) < 1e-6


# ---- on every backend and cut, and again from a checkpoint


def box(name: str, **times) -> Case:
    sets = ["grid.n=[18,18,18]", "time.steps=4", f'time.integrator="{name}"']
    return taylor_green(*sets, *(f"time.{key}={value}" for key, value in times.items()))


@pytest.mark.parametrize("name", OTHERS)
def test_backends_and_plans_agree(name):
    wanted = advanced(Solver(box(name), backend("cpu")), 3)
    for chosen in ("fused", "decomposed"):
        found = advanced(Solver(box(name), backend("emulated"), plan=chosen), 3)
        assert difference(found, wanted) < 1e-13
    assert difference(advanced(Solver(box("ssp_rk3"), backend("cpu")), 3), wanted) > 1e-12


@pytest.mark.slow
def test_ranks_agree():
    assert max(run_ranks(2, off_on_ranks, box("carpenter_kennedy_rk4"), 3)) < 1e-13


@pytest.mark.parametrize("name", NAMES)
def test_a_run_goes_on_to_the_last_bit(name, tmp_path):
    through = Simulation(box(name), "cpu")
    through.run(progress=False)
    Simulation(box(name), "cpu", out=tmp_path / "run").run(steps=2, progress=False)
    rest = Simulation(restart=tmp_path / "run", backend="cpu")
    rest.run(progress=False)
    assert (rest.time, rest.step_count) == (through.time, 4)
    for name in ("rho", "u", "p"):
        np.testing.assert_array_equal(rest.blocks[0].state(name), through.blocks[0].state(name))


# ---- one of another kind


class BackwardEuler(Integrator):
    """q = q0 + dt R(q), by iteration."""

    order, vectors = 1, 3
    cfl = viscous_cfl = np.inf
    rounds = 0

    def prepare(self, system):
        self.start, self.found, self.rate = (system.vector() for _ in range(3))

    def step(self, system) -> None:
        end, change = system.time + system.dt, np.inf
        system.state(self.start)
        system.copy(self.start, self.found)
        while change > 1e-14:
            self.rounds += 1
            if self.rounds > 200:
                raise FloatingPointError("no solution was found")
            system.rates(self.found, end, self.rate)
            system.scale(system.dt, self.rate)
            system.axpy(1.0, self.start, self.rate)
            system.axpy(-1.0, self.rate, self.found)
            change = system.norm(self.found)
            system.copy(self.rate, self.found)
        system.accept(self.found, end)


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_an_integrator_that_iterates_stands_beside_them(device, monkeypatch):
    monkeypatch.setattr(solver_module, "integrator", lambda name: BackwardEuler())
    solver = Solver(periodic("ssp_rk3", 24, time={"dt": 2e-3}), backend(device))
    rho = 1 + 0.1 * np.sin(2 * np.pi * solver.states[0].block.x)
    solver.set_state(0, rho, 0.5, 0.0, 0.0, 1 / 1.4)
    solver.complete_state()
    (before,) = whole(solver)
    solver.step()
    assert solver.integrator.rounds > 5 and solver.time == 2e-3
    (after,) = whole(solver)
    solver.right_hand_side()
    (state,) = solver.states
    rate = state.interior(state.r) * state.interior(state.jacobian)
    np.testing.assert_allclose(after, before + 2e-3 * rate, rtol=0, atol=1e-13)
    assert np.abs(after - before).max() > 1e-4
    assert solver.can_rewind


# ---- what is told


def test_where_the_limiter_does_not_hold_is_told(capsys):
    assert not remarks(periodic("ssp_rk3", 8))
    (told,) = remarks(periodic("williamson_rk3", 8))
    assert "no convex combinations" in told and '"limiter"' in told
    assert not remarks(periodic("williamson_rk3", 8, scheme={"positivity": "fallback"}))
    (told,) = remarks(periodic("ssp_rk3", 8, time={"dt": None, "cfl": 1.5}))
    assert told == 'time.cfl = 1.5 is above 1.375, up to which "ssp_rk3" is stable'
    Simulation(periodic("williamson_rk3", 8), "cpu").run(progress=False)
    assert execute(["check", "sod", "--set", "time.integrator=williamson_rk3"]) == 0
    said = capsys.readouterr()
    assert "order 3, 3 right-hand sides" in said.out and "no convex combinations" in said.out + said.err


def test_what_a_device_takes_on_its_own():
    """Whole steps are recorded for integrators that keep the beginning of one that fails."""
    for name in NAMES:
        solver = Solver(periodic(name, 24), backend("emulated"))
        solver.initialize()
        whole = integrator(name).keeps_start
        assert whole or name != "ssp_rk3"
        assert solver.device_resident_steps.possible == whole and solver.advance(4) == (4 if whole else 1)


def test_the_plan_counts_stages_and_registers():
    by_name = {name: estimate(periodic(name, 64)) for name in NAMES}
    counts = {name: (found["integrator"]["order"], found["integrator"]["stages"]) for name, found in by_name.items()}
    known = {"ssp_rk3": (3, 3), "williamson_rk3": (3, 3), "carpenter_kennedy_rk4": (4, 5)}
    assert counts | known == counts
    assert len({by_name[name]["memory_bytes"] for name in known}) == 1
    for name, found in by_name.items():
        solver = Solver(periodic(name, 64), backend("cpu"))
        assert 0 <= solver.bytes - found["memory_bytes"] <= 8  # the one step of all points
        assert len(solver.states[0].registers) == integrator(name).registers


@pytest.mark.parametrize("dt", [None, 0.04])
def test_a_failed_step_that_cannot_be_taken_back_names_its_place(dt):
    """Two streams that part too fast for it, in a step above what is stable."""
    times = {"steps": 50} | ({"dt": dt} if dt else {"dt": None, "cfl": 3.0})
    case = periodic("carpenter_kennedy_rk4", 64, time=times)

    def parting(x, y, z):
        return 1.0, 2.5 * np.sin(2 * np.pi * x), 0.0, 0.0, 0.05

    simulation = Simulation(case, "cpu", initial=parting)
    with pytest.raises(BlowUp, match=r"(rho|p) = .* in block 'box' at node .* by the .* of stage \d of step"):
        simulation.run(progress=False)
    assert simulation.solver.retaken == 0


@pytest.mark.parametrize(
    ("times", "ends", "count"),
    [({"dt": 4e-3}, 0.24, 100), ({"dt": None, "cfl": 0.4}, 0.04, 32)],
    ids=["fixed", "by the limits"],
)
def test_what_a_device_is_given_beyond_the_end_is_not_taken(monkeypatch, times, ends, count):
    """62 fixed steps are launched where 60 reach the time that is asked for, and 32 by the limits where 4 do."""
    case = periodic("ssp_rk3", 24, time=times)
    launched = []
    given = StepRecording.__call__
    monkeypatch.setattr(StepRecording, "__call__", lambda self, n, *rest: launched.append(n) or given(self, n, *rest))
    solvers = [Solver(case, backend(device)) for device in ("emulated", "cpu")]
    for solver in solvers:
        x = solver.states[0].block.x
        solver.set_state(0, 1 + 0.1 * np.sin(2 * np.pi * x), 0.5, 0.0, 0.0, 1 / 1.4)
        solver.complete_state()
        while solver.time < ends:
            solver.advance(count, ends)
    device, host = solvers
    assert sum(launched) > device.steps + 1
    assert device.time == pytest.approx(ends, rel=1e-14) and device.steps == host.steps
    np.testing.assert_allclose(whole(device)[0], whole(host)[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("dt", [float("nan"), float("inf"), 1e-30])
def test_a_step_that_leads_nowhere_ends_the_run(monkeypatch, dt):
    """One that is no number, and one that the time does not feel."""
    solver = Solver(periodic("ssp_rk3", 8), backend("cpu"))
    solver.time = 1.0
    monkeypatch.setattr(solver, "choose_dt", lambda largest: setattr(solver, "dt", dt))
    monkeypatch.setattr(solver, "_try_step", lambda: pytest.fail("it is taken"))
    with pytest.raises(FloatingPointError, match=f"time step {dt:.4g}"):
        solver._one(1.0)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("work", [0, 3])
def test_bytes_of_a_point_are_those_of_the_arrays(local, work):
    storage = Configuration().storage
    cut = Solver(periodic("ssp_rk3", 8), backend("cpu")).decomposition
    layout = Layout(storage, needed={"work": work, "registers": 2, "dt": int(local)})
    state = BlockState(backend("cpu"), cut, 0, "line", layout)
    arrays = [state.q, *state.registers, state.r, state.metrics, state.jacobian]
    arrays += [state.work] * bool(work) + [state.dt] * local
    points = np.prod(state.shape)
    assert sum(a.size * a.itemsize for a in arrays) == points * layout.bytes_per_point
    # and one over the radius
    assert replace(layout, needed={**layout.needed, "inverse_radius": 1}).bytes_per_point - layout.bytes_per_point == 8
