"""Statistics of turbulence from averages: budgets of manufactured flows and of one that decays, wall units."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

from ranks import run_ranks
from watched_runs import tables

from hiresx import Case, HiresxError, Simulation
from hiresx.grid import Block, Grid, build
from hiresx.output.saved import checkpoint
from hiresx.post import turbulence
from hiresx.post.budgets import ENERGY_TERMS, PAIRS
from hiresx.post.wall_units import wall_units

TAU = 2 * np.pi
REYNOLDS = 50.0


def periodic_box(n, **changes) -> Case:
    axes = [axis for axis, m in zip("xyz", n, strict=True) if m > 1]
    upper = [TAU if m > 1 else 0.0 for m in n]
    return Case.from_dict(tables(n, upper, periodic=axes, gas={"reynolds": REYNOLDS}, **changes))


def averages_of(run: Simulation):
    return next(a for a in run.attachments if a.name == "averages")


def sampled(case: Case, states, folder, times=None, restart_after=None, **arguments) -> None:
    """A run whose averages are those of these states, at `times` (1, 2, ... if absent)."""
    run = Simulation(case, "cpu", initial=states[0], out=folder, **arguments)
    run.run(steps=0, progress=False)
    average = averages_of(run)
    average.begin(run.solver, False)
    for n, (time, state) in enumerate(zip(times or range(1, len(states) + 1), states, strict=True), 1):
        for b, block in enumerate(run.blocks):
            run.solver.set_state(b, *state(block.x, block.y, block.z))
        run.solver.complete_state()
        run.solver.steps, run.solver.time = n, float(time)
        average.after_step(run.solver)
        if n == restart_after:
            kept = checkpoint.restore_in_memory(average.capture())
            run = Simulation(case, "cpu", initial=states[0], out=folder, **arguments)
            run.solver.steps, run.solver.time = n, float(time)
            average = averages_of(run)
            average.restore(kept)
            average.begin(run.solver, True)
    average.finish(run.solver)


def manufactured(x, y, z, shift=0.0, size=1.0):
    """`size`: of the fluctuations."""
    along = x - shift
    rho = 1 + size * np.cos(along) * (2 + np.sin(y)) / 15
    u = np.sin(y) / 2 + size * np.cos(along) * (2 + np.cos(y)) / 20
    v = size * (np.cos(along + 1) * (3 + np.sin(y)) / 30 + np.cos(2 * along) * np.cos(y) / 20)
    w = np.cos(y) / 4 + size * (np.cos(z) * (2 - np.sin(y)) / 20 + np.sin(along + 0.7) * (2 + np.sin(y)) / 50)
    p = 1 + size * (np.cos(along + 0.3) + np.sin(z) / 4) * (1 + np.cos(y) / 2) / 10 + np.sin(y) / 20
    return rho, u, v, w, p


def slope(f, axis: int):
    """Spectral derivative along axis 0: x, 1: y, 2: z of fields (..., nk, nj, ni) of period 2 pi."""
    along = np.moveaxis(f, -1 - axis, -1)
    n = along.shape[-1]
    waves = np.fft.rfftfreq(n, 1 / n)
    waves[-1] = 0.0  # of the shortest wave the derivative is between the nodes
    return np.moveaxis(np.fft.irfft(1j * waves * np.fft.rfft(along), n), -1, -1 - axis)


def exact_terms(n, states, weights) -> dict[str, np.ndarray]:
    """Of flows of these weights over y: trigonometric polynomials, whose means over the nodes and spectral derivatives
    are exact."""
    z, y, x = np.meshgrid(*(TAU * np.arange(m) / m for m in reversed(n)), indexing="ij")
    rho, *u, p = np.stack([np.broadcast_arrays(*state(x, y, z)) for state in states], axis=1)
    share = np.reshape(weights, (-1, 1, 1, 1)) / np.sum(weights)

    def mean(f):
        return np.broadcast_to((share * f).sum(axis=0).mean(axis=(0, 2), keepdims=True), f.shape)

    def dy(f):
        return slope(mean(f), 1)

    density, pressure, plain = mean(rho), mean(p), [mean(c) for c in u]
    massive = [mean(rho * c) / density for c in u]
    f, d = ([c - m for c, m in zip(u, means, strict=True)] for means in (massive, plain))
    g = np.array([[slope(c, axis) for axis in range(3)] for c in u])
    tau = (g + g.swapaxes(0, 1) - 2 / 3 * np.trace(g) * np.eye(3)[:, :, None, None, None, None]) / REYNOLDS
    rates, rise = (t - np.array([[mean(c) for c in row] for row in t]) for t in (tau, g))
    square, excess = sum(c * c for c in f), [a - b for a, b in zip(plain, massive, strict=True)]
    terms = {
        "k": mean(rho * square) / 2 / density,
        "R_u_v": mean(rho * f[0] * f[1]) / density,
        "v_mass_flux": excess[1],
        "convection": -dy(massive[1] * rho * square) / 2,
        "production": -sum(mean(rho * f[m] * f[1]) * dy(massive[m]) for m in range(3)),
        "turbulent_transport": -dy(rho * square * f[1]) / 2,
        "pressure_transport": -dy((p - pressure) * d[1]),
        "pressure_dilatation": mean((p - pressure) * np.trace(rise)),
        "viscous_diffusion": dy(sum(d[m] * rates[m, 1] for m in range(3))),
        "dissipation": -mean(np.sum(rates * rise, axis=(0, 1))),
        "mass_flux": sum(excess[m] * (dy(tau[m, 1]) - (m == 1) * dy(pressure)) for m in range(3)),
    }
    for a, b in combinations_with_replacement(range(3), 2):
        rate = {
            "convection": -dy(massive[1] * rho * f[a] * f[b]),
            "production": -sum(mean(rho * f[m] * f[1]) * dy(massive[n]) for m, n in ((a, b), (b, a))),
            "turbulent_transport": -dy(rho * f[a] * f[b] * f[1]),
            "pressure_transport": -sum(dy((p - pressure) * d[m]) for m, n in ((a, b), (b, a)) if n == 1),
            "pressure_strain": mean((p - pressure) * (rise[a, b] + rise[b, a])),
            "viscous_diffusion": dy(d[a] * rates[b, 1] + d[b] * rates[a, 1]),
            "dissipation": -mean(np.sum(rates[a] * rise[b] + rates[b] * rise[a], axis=0)),
            "mass_flux": sum(excess[m] * (dy(tau[n, 1]) - (n == 1) * dy(pressure)) for m, n in ((a, b), (b, a))),
        }
        rate["residual"] = sum(rate.values())
        terms |= {f"{name}_{'uvw'[a]}_{'uvw'[b]}": np.broadcast_to(values, rho.shape) for name, values in rate.items()}
    return {name: values[0, 0, :, 0] for name, values in terms.items()}


MANUFACTURED = (40, 40, 16)
CHANCE = np.random.default_rng(1)
# Nodes have moments in time, and means that differ.
STATES = [
    lambda *place, by=by, size=size: manufactured(*place, by, size)
    for by, size in zip(CHANCE.uniform(0, TAU, 4), CHANCE.uniform(0.5, 1.5, 4), strict=True)
]
TIMES = [0.7, 1.0, 2.2, 2.5]


def sample_manufactured(comm, n, kind, folder, restart_after=None) -> None:
    case = periodic_box(n, average={"every": 1, kind: True})
    sampled(case, STATES, folder, TIMES, restart_after, **({"comm": comm} if comm else {}))


@pytest.fixture(scope="module")
def of_manufactured(tmp_path_factory):
    """What comes of flows that are random in time, by the kind of budget."""
    found = {}
    for kind in ("budget", "stress_budgets"):
        folder = tmp_path_factory.mktemp(kind)
        sample_manufactured(None, MANUFACTURED, kind, folder)
        found[kind] = turbulence(folder, over="i,k")
    return found


@pytest.mark.parametrize("kind", ["budget", "stress_budgets"])
def test_terms_of_a_manufactured_flow(of_manufactured, kind):
    """Every term against its definition."""
    found = of_manufactured[kind].data
    inside = slice(4, -4)  # along y the differences of means are one-sided at the ends
    wanted = exact_terms(MANUFACTURED, STATES, np.diff([0.0, *TIMES]))
    if kind == "budget":
        wanted = {name: values for name, values in wanted.items() if name == "R_u_v" or name[-3:] not in PAIRS}
    for name, exact in wanted.items():
        scale = abs(exact).max()
        # over y alone the gradient of <p' u_i'> is along y
        assert scale > 1e-6 or name in [f"pressure_transport_{pair}" for pair in ("u_u", "w_w", "u_w")], name
        error = abs(found[name].values - exact)[inside].max()
        assert error < 1e-4 * scale + 1e-16, (name, error, scale)


@pytest.mark.parametrize("how", ["restart", pytest.param("two ranks", marks=pytest.mark.slow)])
def test_budgets_after_a_restart_and_on_two_ranks(how, tmp_path):
    given = (16, 12, 8), "stress_budgets"
    sample_manufactured(None, *given, tmp_path / "whole")
    if how == "restart":
        sample_manufactured(None, *given, tmp_path / "other", 2)
    else:
        run_ranks(2, sample_manufactured, *given, tmp_path / "other")
    whole, other = (turbulence(tmp_path / name, over="i,k").data for name in ("whole", "other"))
    largest = abs(whole["production"].values).max()
    for name, expected in whole.items():
        scale = abs(expected.values).max() if name in ("rho", "T", "p", "u", "w") else largest
        np.testing.assert_allclose(other[name].values, expected.values, rtol=0, atol=1e-11 * scale, err_msg=name)


def test_averages_begin_anew_with_another_budget(tmp_path):
    """What a checkpoint holds of the means is of other samples."""
    case = {kind: periodic_box((8, 8, 1), average={"every": 1, kind: True}) for kind in ("budget", "stress_budgets")}
    for folder, kinds in (("same", ["budget"] * 2), ("other", ["budget", "stress_budgets"])):
        runs = [Simulation(case[kind], "cpu", initial=STATES[0], out=tmp_path / folder) for kind in kinds]
        runs[0].run(steps=2, progress=False)
        averages_of(runs[1]).restore(checkpoint.restore_in_memory(averages_of(runs[0]).capture()))
        mean = averages_of(runs[1]).fields(0)["reynolds"]["rho"]
        assert abs(mean).max() == 0 if folder == "other" else abs(mean).max() > 1


def test_half_the_trace_of_the_stresses_budgets_is_that_of_the_energy(of_manufactured):
    energy, stresses = (of_manufactured[kind].data for kind in ("budget", "stress_budgets"))
    largest = of_manufactured["budget"].summary["largest_term"]
    for term in ENERGY_TERMS:
        name = "pressure_strain" if term == "pressure_dilatation" else term
        half = 0.5 * sum(stresses[f"{name}_{pair}"].values for pair in ("u_u", "v_v", "w_w"))
        np.testing.assert_allclose(half, energy[term].values, rtol=0, atol=1e-13 * largest, err_msg=term)
        np.testing.assert_allclose(stresses[term].values, half, rtol=0, atol=1e-15 * largest, err_msg=term)


def test_what_is_left_of_a_decaying_wave_is_its_change(tmp_path):
    """u = exp(-nu t) cos y, at almost no Mach number: without production, the residual is the mean of u'' du/dt, the
    change of u''^2/2 over the time that was averaged."""
    speed, end = 1e-3, 10.0
    case = periodic_box((8, 32, 1), average={"every": 1, "budget": True}, time={"end": end, "cfl": 0.9})

    def start(x, y, z):
        return 1.0, speed * np.cos(y), 0.0, 0.0, 1 / 1.4

    Simulation(case, "cpu", initial=start, out=tmp_path).run(progress=False)
    found = turbulence(tmp_path, over="i")
    y, decay = found.data["y"].values, np.exp(-end / REYNOLDS)
    mean = (1 - decay) * REYNOLDS / end
    change = speed**2 * np.cos(y) ** 2 * ((decay - mean) ** 2 - (1 - mean) ** 2) / 2 / end
    assert abs(found.data["production"].values).max() < 1e-3 * abs(change).max()
    np.testing.assert_allclose(found.data["residual"].values, change, rtol=0, atol=0.03 * abs(change).max())
    assert found.summary["homogeneous"] == ["i"] and found.summary["nodes_averaged"] == 8


def channel(**average) -> Case:
    grid = {"generator": "box", "n": [8, 33, 8], "lower": [0, -1, 0], "upper": [1, 1, 1], "periodic": ["x", "z"]}
    wall = {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.0}
    others = {"faces": ["imin", "imax", "kmin", "kmax"], "type": "periodic"}
    given = {"grid": grid, "boundary": [wall, others], "gas": {"reynolds": REYNOLDS}, "time": {"steps": 1, "cfl": 0.5}}
    return Case.from_dict(given | {"average": {"every": 1} | average})


def parabola(x, y, z):
    return 1.0, 0.1 * (1 - y * y), 0.0, 0.0, 1 / 1.4


@pytest.mark.parametrize("budget", [True, False])
def test_wall_units_of_a_laminar_channel(tmp_path, budget):
    sampled(channel(budget=budget), [parabola] * 2, tmp_path)
    found = turbulence(tmp_path)
    stress = 2 * 0.1 / REYNOLDS
    assert [row["wall"] for row in found.summary["walls"]] == ["jmin", "jmax"]
    for row in found.summary["walls"]:
        assert row["stress"] == pytest.approx(stress, rel=1e-9)
        assert row["u_tau"] == pytest.approx(np.sqrt(stress), rel=1e-9)
        assert row["re_tau"] == pytest.approx(np.sqrt(stress) * REYNOLDS, rel=1e-9)
    plus, distance = found.data["y_plus"].values, 1 - abs(found.data["y"].values)
    np.testing.assert_allclose(found.data["u_plus"].values, plus * (1 - distance / 2), atol=1e-9)
    assert ("production" in found.data) == budget
    if budget:
        assert abs(found.data["residual"].values).max() < 1e-15
    else:
        assert "average.budget = true" in found.summary["warnings"][0]


def turned(grid: Grid, axes) -> Grid:
    """The same grid, turned: `axes` are the rows of the frame in which it is as before."""
    (block,) = grid.blocks
    x, y, z = np.einsum("ia,i...->a...", axes, np.stack([block.x, block.y, block.z]))
    period = {way: tuple(axes.T @ vector) for way, vector in grid.period[0].items()}
    return Grid((Block(block.name, x, y, z),), period=(period,))


def test_the_frame_of_a_wall_does_not_depend_on_how_the_channel_lies(tmp_path):
    """Turned by half a radian about z."""
    case, (c, s) = channel(stress_budgets=True), (np.cos(0.5), np.sin(0.5))
    axes = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    chance = np.random.default_rng(3)
    states = [(chance.uniform(0, TAU, 4), chance.uniform(0.5, 1.5)) for _ in range(3)]

    def flow(x, y, z, phases, size):
        a, b, d, e = (np.cos(TAU * (x + z) + phase) * (1 - y * y) * size / 10 for phase in phases)
        return 1 + a, 0.1 * (1 - y * y) + b, d * y, e, 1 / 1.4 + a / 2 + b / 3

    def in_turned(x, y, z, *given):
        rho, u, v, w, p = flow(*np.einsum("ai,i...->a...", axes, np.stack([x, y, z])), *given)
        return rho, c * u - s * v, s * u + c * v, w, p

    for folder, made, grid in (("plain", flow, None), ("turned", in_turned, turned(build(case.grid, None), axes))):
        sampled(
            case,
            [lambda *at, made=made, given=given: made(*at, *given) for given in states],
            tmp_path / folder,
            grid=grid,
        )
    plain, found = (turbulence(tmp_path / folder, frame="wall").data for folder in ("plain", "turned"))
    along = turbulence(tmp_path / "plain").data
    largest = abs(along["production_u_u"].values).max()
    assert largest > 1e-5 and abs(turbulence(tmp_path / "turned").data["R_u_v"].values).max() > 1e-5
    for name, values in plain.items():
        scale = max(abs(values.values).max(), largest if name.rpartition("_")[0] else 0.0)
        np.testing.assert_allclose(along[name].values, values.values, rtol=0, atol=1e-13 * scale, err_msg=name)
        if name not in ("x", "y"):
            np.testing.assert_allclose(found[name].values, values.values, rtol=0, atol=1e-9 * scale, err_msg=name)
    with pytest.raises(HiresxError, match='there is no frame "walls"'):
        turbulence(tmp_path / "plain", frame="walls")


def test_wall_units_count_from_a_moving_wall(tmp_path):
    """Couette flow: at both walls u_plus is 0, and 1/2 (u_lid / u_tau) in the middle."""
    case = channel().model_dump(mode="json")
    wall = case["boundary"][0]
    case["boundary"][:1] = [wall | {"faces": ["jmin"]}, wall | {"faces": ["jmax"], "velocity": [0.1, 0.0, 0.0]}]
    sampled(Case.from_dict(case), [lambda x, y, z: (1.0, 0.05 * (1 + y), 0.0, 0.0, 1 / 1.4)] * 2, tmp_path)
    found = turbulence(tmp_path)
    u_tau = np.sqrt(0.05 / REYNOLDS)
    assert [row["u_tau"] for row in found.summary["walls"]] == pytest.approx([u_tau] * 2, rel=1e-9)
    plus = 0.05 * (1 - abs(found.data["y"].values)) / u_tau
    np.testing.assert_allclose(found.data["u_plus"].values, plus, atol=1e-9)


def test_transformed_velocities():
    """Couette flow with T = 1 + y, mu = T^0.7 and rho = 1/T, whose integrals are known or taken finely."""
    y = np.linspace(0, 1, 401) ** 1.2
    found = wall_units(y, 3 * y, 1 / (1 + y), (1 + y) ** 0.7 / 100, stress=0.04)
    assert (found.u_tau, found.viscous_length) == (pytest.approx(0.2), pytest.approx(0.05))
    np.testing.assert_allclose(found.y_star, y * 20 * (1 + y) ** -1.2, rtol=1e-12)
    np.testing.assert_allclose(found.u_van_driest, 15 * 2 * (np.sqrt(1 + y) - 1), atol=1e-5)
    # sqrt(1/T) (1 - 1.2 y/T): the integral of T^-1/2 - 1.2 T^-1/2 + 1.2 T^-3/2
    exact = -0.4 * (np.sqrt(1 + y) - 1) + 2.4 * (1 - 1 / np.sqrt(1 + y))
    np.testing.assert_allclose(found.u_trettel_larsson, 15 * exact, atol=3e-5)
    # without the nodes below u = 0.3 only their trapezoid is another
    slipping = wall_units(y[26:], 3 * y[26:], 1 / (1 + y[26:]), (1 + y[26:]) ** 0.7 / 100, 0.04, (1.0, 0.01))
    assert slipping[:2] == pytest.approx(found[:2]) and slipping.u_trettel_larsson is None
    np.testing.assert_allclose(slipping.u_plus, found.u_plus[26:], rtol=1e-12)
    np.testing.assert_allclose(slipping.u_van_driest, found.u_van_driest[26:], atol=1e-4)


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(HiresxError, match=r"average\.budget needs reynolds and favre"):
        channel(budget=True, favre=False)
    with pytest.raises(HiresxError, match=r"average\.stress_budgets needs reynolds and favre"):
        channel(stress_budgets=True, reynolds=False)
    sampled(channel(favre=False), [parabola], tmp_path / "plain")
    with pytest.raises(HiresxError, match="no favre means"):
        turbulence(tmp_path / "plain")
    sampled(channel(), [parabola], tmp_path / "run")
    with pytest.raises(HiresxError, match='"j" is not periodic and uniform'):
        turbulence(tmp_path / "run", over="j")
