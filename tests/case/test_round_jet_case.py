"""The case of a round jet: states, disturbances of the nozzle's layer, sponges."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx.case import load, presets
from hiresx.case.functions import evaluate_profile
from hiresx.case.schema import Sponge
from hiresx.case.wave_sums import Waves
from hiresx.errors import HiresxError
from hiresx.post.azimuthal import ring_angles
from hiresx.rhs.sponge import share_and_box

GIVEN = {"speed": 0.64, "layer": 0.1, "modes": 4, "highest": 1.5, "seed": 1}


def test_the_least_number_of_nodes_is_whole():
    odd, even = (load("round-jet", overrides=[f"grid.points_per_diameter={n}"]).grid.nodes for n in (39, 38))
    assert type(odd) is int and odd == even


@pytest.mark.parametrize("preset", [None, *presets("round-jet")])
def test_it_fits_its_grid(preset):
    case = load("round-jet", preset)
    grid, (downstream, upstream, around) = case.grid, case.sponge
    assert case.parameters["layer"] == grid.boundary_layer_thickness and case.parameters["lip"] == grid.lip_thickness
    assert (downstream.start, downstream.end) == (grid.length, grid.length + grid.sponge_length)
    assert (upstream.start, upstream.end) == (-grid.nozzle_length, -grid.upstream)
    assert (around.axis, around.start, around.end) == ("r", grid.radius, grid.radius + grid.sponge_height)
    lip = next(probe for probe in case.probe if probe.name == "lip")
    radii = {round(float(np.hypot(y, z)), 5) for _, y, z in lip.places}
    assert radii == {round(0.55 + grid.lip_thickness, 5)} and len(lip.places) == 16
    np.testing.assert_allclose(
        np.sort(ring_angles(np.array(lip.places), "lip") % (2 * np.pi)), np.arange(16) * np.pi / 8
    )
    # the shortest disturbances have five cells or more per wave
    speed = 0.7 * case.parameters["exit_mach"] / np.sqrt(1 + 0.2 * case.parameters["exit_mach"] ** 2)
    assert speed / case.parameters["disturbance_frequency"] > 5 * grid.exit_spacing


@pytest.mark.parametrize("preset", [None, *presets("round-jet")])
def test_it_moves_with_its_grid(preset):
    """Sponges, probes and surfaces stand where the grid's keys put them, none of the probes in a sponge."""
    moved = ["grid.length=7.5", "grid.radius=4.0", "grid.sponge_length=5.0", "parameters.lip=0.2", "grid.upstream=1.5"]
    case = load("round-jet", preset, moved)
    downstream, upstream, around = case.sponge
    assert (downstream.start, downstream.end) == (7.5, 12.5) and upstream.end == -1.5 and around.start == 4.0
    places = {probe.name: np.array(probe.places) for probe in case.probe}
    np.testing.assert_allclose(np.hypot(*places["lip"][:, 1:].T), 0.75)
    assert places["axis"][-1, 0] == 7.5 and len(places["axis"]) == 151
    for name, found in places.items():
        assert (found[:, 0] <= 7.5).all() and (np.hypot(found[:, 1], found[:, 2]) <= 4).all(), name
    for surface in case.surface:
        assert surface.cylinder.end == 7.0 and max(surface.cylinder.caps) < 7.0
    assert 0 < case.average.start < case.time.end


@pytest.mark.parametrize("given", ["Mj=1.4199992332017841", "NPR=3.2734423942053708"])
def test_by_other_numbers(given):
    """One of Mj, NPR and pe/p says how strongly the jet is under-expanded."""
    case = load("round-jet", "quick", [f"parameters.{given}"])
    assert case.parameters["pressure_ratio"] == pytest.approx(1.7293, rel=1e-12)
    assert set(case.derived) == {"Mj", "NPR", "pressure_ratio", "Uj", "Dj"} - {given.partition("=")[0]}
    np.testing.assert_allclose([case.parameters[n] for n in ("Uj", "Dj")], [1.19872, 1.06121], rtol=1e-5)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["parameters.Mj=0.9"], "Mj = 0.9 is below choking: .* pressure_ratio > 1"),
        (["parameters.NPR=1.5"], "NPR = 1.5 is below choking"),
        (["parameters.Mj=1.4", "parameters.NPR=4.0"], "Mj and NPR have the same meaning"),
        (["parameters.layer=0.5"], "layers of both walls meet"),
    ],
)
def test_jets_that_cannot_be(overrides, reason):
    with pytest.raises(HiresxError, match=reason):
        load("round-jet", "quick", overrides)


def test_a_hot_jet():
    """Total temperature 2 in the nozzle and the core, 1 at rest around."""
    case = load("round-jet", overrides=["parameters.temperature_ratio=2.0", "parameters.disturbance=0.0"])
    rho, u, _, _, p = case.evaluate("nozzle", *np.zeros((3, 1)), 0.0)
    assert 1.4 * p / rho + 0.2 * u**2 == pytest.approx(2.0) and u == pytest.approx(0.912871 * np.sqrt(2), rel=1e-6)
    rho, u, _, _, p = case.evaluate("developed_jet", np.full(2, 0.3), np.array([0.0, 9.0]), np.zeros(2))
    np.testing.assert_allclose(1.4 * p / rho + 0.2 * u**2, [2.0, 1.0], atol=1e-12)
    assert u[0] == pytest.approx(case.parameters["Uj"])


def test_the_screech_preset_forces_nothing_and_starts_with_every_mode():
    """What enters stays as it is; the start has velocities of all modes up to 8, both directions, and no symmetry."""
    case = load("round-jet", "screech")
    assert not evaluate_profile(case, "nozzle", *np.zeros((3, 1)), 0.0)[1].frequency.size
    theta = 2 * np.pi * np.arange(64) / 64
    x, y, z = np.full(64, 1.3), 0.42 * np.cos(theta), 0.42 * np.sin(theta)
    modes = np.abs(np.fft.fft(case.evaluate("initial", x, y, z)[1])) / 64
    assert (modes[1:9] > 1e-4).all() and modes[9:56].max() < 1e-12
    bare = load("round-jet", "screech", ["parameters.roughness=0.0"]).evaluate("initial", x, y, z)
    assert np.ptp(bare[1]) < 1e-12


@pytest.mark.parametrize(("preset", "mach"), [(None, 1.42), ("axisymmetric", 1.19), ("ideal", 1.4)])
def test_states(preset, mach):
    """Fully expanded: Mach number, ambient pressure, total temperature; the momentum of the estimate is that jet's."""
    case = load("round-jet", preset, ["parameters.disturbance=0.0"])
    rho, u, v, w, p = case.evaluate("nozzle", *np.zeros((3, 1)), 0.0)
    exit_mach = case.parameters["exit_mach"]
    assert float((u / np.sqrt(1.4 * p / rho))[0]) == pytest.approx(exit_mach, rel=1e-9)
    assert float(1.4 * p[0]) == pytest.approx(case.parameters["pressure_ratio"]) and v[0] == w[0] == 0
    wall = case.evaluate("nozzle", np.zeros(2), np.array([0.0, 0.3]), np.array([0.5, -0.4]), 0.0)
    np.testing.assert_allclose(wall[1], 0.0, atol=1e-12)
    rho, u, _, _, p = (a[0] for a in case.evaluate("developed_jet", np.full(1, 0.3), np.zeros(1), np.zeros(1)))
    assert u / np.sqrt(1.4 * p / rho) == pytest.approx(mach, rel=1e-3) and p == pytest.approx(1 / 1.4)
    assert 1.4 * p / rho + 0.2 * u**2 == pytest.approx(1.0)
    area = {1.42: 1.061**2, 1.19: 1.014**2, 1.4: 1.0}[mach]
    for x in (1.0, 5.0, 20.0):
        r = np.linspace(0, 40, 40001)
        along = case.evaluate("developed_jet", np.full_like(r, x), r, 0 * r)[1]
        assert np.trapezoid(8 * along**2 * r, r) == pytest.approx(u**2 * area, rel=2e-3)


def places(n=300):
    random = np.random.default_rng(0)
    r, theta = random.uniform(0.22, 0.499, n), random.uniform(0, 2 * np.pi, n)
    return random.uniform(-0.7, -0.5, n), r * np.cos(theta), r * np.sin(theta)


def test_disturbances_are_free_of_divergence_and_carried_along():
    found = load("round-jet", "quick").function("disturbances")
    x, y, z = places()
    slopes = []
    for n in range(3):
        ends = [
            found(*(c + s * 1e-4 * (m == n) for m, c in enumerate((x, y, z))), 1.3, **GIVEN, lowest=0.0)
            for s in (1, -1)
        ]
        slopes.append((ends[0] - ends[1]) / 2e-4)
    divergence = sum(slopes[n][n] for n in range(3))
    assert np.abs(divergence).max() < 1e-5 * np.abs(np.stack(slopes)).max()
    later = found(x + 0.64 * 0.7, y, z, 2.0, **GIVEN, lowest=0.0)
    np.testing.assert_allclose(later, found(x, y, z, 1.3, **GIVEN, lowest=0.0), atol=1e-12)


def test_size_of_the_disturbances_and_where_they_are():
    found = load("round-jet", "quick").function("disturbances")
    r = np.linspace(0.0, 0.5, 26)
    squares = [
        np.sum(found(0 * r - 0.6, 0 * r, r, t, **GIVEN, lowest=0.0) ** 2, axis=0) for t in np.arange(0, 300, 0.17)
    ]
    size = np.sqrt(np.mean(squares, axis=0))
    assert size.max() == pytest.approx(1.0, abs=0.07)
    assert size[-1] == 0 and (size[r < 0.2] == 0).all() and (size[(r > 0.3) & (r < 0.499)] > 0.1).all()


def test_nothing_enters_below_the_lowest_frequency():
    """By a spectrum over 200 D/a: the screech of the jet is not forced."""
    found = load("round-jet", "quick").function("disturbances")
    times = np.arange(0, 200, 0.1)
    x, y, z = np.array([-0.6]), np.array([0.46]), np.array([0.0])
    u = np.array([found(x, y, z, t, **GIVEN, lowest=1.0)[0, 0] for t in times])
    power = np.abs(np.fft.rfft(u * np.hanning(times.size))) ** 2
    f = np.fft.rfftfreq(times.size, 0.1)
    assert power[(f < 0.97) | (f > 1.53)].sum() < 1e-6 * power.sum()
    assert (power[(f > 1.0) & (f < 1.25)].sum() > 0.1 * power.sum()) and power[f > 1.25].sum() > 0.1 * power.sum()
    case = load("round-jet")
    assert case.parameters["disturbance_lowest"] >= 2 * 0.408, "what is expected at Mj = 1.42"


def test_the_inflow_gives_waves():
    """Of u, v and w alone, in the layer alone, and of frequencies between those of the case; none, if none are asked
    for, so that a device has all of them from the start."""
    case, at = load("round-jet"), places()
    _, *velocity, _ = evaluate_profile(case, "nozzle", *at, 0.0)
    core = np.hypot(*at[1:]) < 0.5 - 3.0 * case.parameters["layer"]
    for wave in velocity:
        assert wave.frequency.size == 8 and (np.abs(wave.frequency - 2.0) <= 1.0).all()
        moved = np.any(wave.amplitudes, axis=0)
        assert not moved[core].any() and moved[~core].all() and 50 < core.sum() < 250
        assert wave.least().shape == at[0].shape
    still = evaluate_profile(load("round-jet", None, ["parameters.disturbance=0"]), "nozzle", *at, 0.0)
    assert [value.frequency.size for value in still if isinstance(value, Waves)] == [0]
    np.testing.assert_array_equal(still[1].mean, velocity[0].mean)


def test_disturbances_follow_from_seed_time_and_place_alone():
    """Ranks that hold a part of the inflow, and a restart, have what a whole run has."""
    case = load("round-jet", "quick")
    x, y, z = places()
    whole = np.array(case.evaluate("nozzle", x, y, z, 2.5))
    case.evaluate("nozzle", x, y, z, 7.0)
    parts = [
        np.array(case.evaluate("nozzle", *(c[s] for c in (x, y, z)), 2.5)) for s in (slice(0, 90), slice(90, None))
    ]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-14)
    again = np.array(load("round-jet", "quick").evaluate("nozzle", x, y, z, 2.5))
    np.testing.assert_array_equal(again, whole)
    other = np.array(load("round-jet", "quick", ["parameters.seed=2"]).evaluate("nozzle", x, y, z, 2.5))
    assert np.abs(other - whole)[1:4].max() > 1e-3 and (other[[0, 4]] == whole[[0, 4]]).all()


def test_a_sponge_around_the_axis():
    y, z = np.meshgrid(np.linspace(-2, 2, 9), np.linspace(-2, 2, 9))
    block = SimpleNamespace(x=0 * y[None], y=y[None], z=z[None])
    spec = Sponge(axis="r", start=1.0, end=2.0, strength=0.2, state={"rho": 1.0, "p": 0.7})
    share, _ = share_and_box(spec, block)
    np.testing.assert_allclose(share[0], np.clip(np.hypot(y, z) - 1, 0, 1))
