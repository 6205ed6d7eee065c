"""What `hiresx check` and the beginning of a run say of a set-up: sponges, probes, resolution, the time there is."""

import json

import numpy as np
import pytest
from sanitize_flows import ROUND
from vortices import PRANDTL

from hiresx import cli
from hiresx.case import Case, load
from hiresx.estimate import resolution
from hiresx.grid import build
from hiresx.simulation import Simulation

QUICK = ["planar-jet", "--preset", "quick", "--set", "probe.1.line.n=5"]


@pytest.fixture
def checked(capfd):
    def check(*words):
        assert cli.execute(["check", *words, "--json"]) == 0
        return json.loads(capfd.readouterr().out)["setup"]

    return check


def test_the_jet_is_described(checked):
    found = checked(*QUICK, "--set", "grid.length=20", "--set", "parameters.Mj=1.55")
    downstream, upstream, above, below = found["sponges"]
    assert (downstream["start"], downstream["end"], downstream["blocks"]) == (20.0, 26.0, ["jet"])
    assert upstream["blocks"] == ["above", "below"] and above["damping"] == below["damping"]
    assert above["damping"] == pytest.approx(np.exp(-0.2 * 4 / 3))
    assert found["derived"]["pressure_ratio"] == pytest.approx(2.0859, rel=1e-4) and "Mj" in found["parameters"]
    # the nozzle's layer as its profile has it on the nodes
    assert [(layer["block"], layer["wall"]) for layer in found["inflow_layers"]] == [
        ("nozzle", "jmin"),
        ("nozzle", "jmax"),
    ]
    for layer in found["inflow_layers"]:
        assert layer["thickness"] == pytest.approx(0.05, rel=0.03) and layer["points"] == 3
    screech = found["screech"]
    assert screech["strouhal"] == pytest.approx([0.105, 0.129], abs=1e-3)
    assert screech["spacing"] == pytest.approx(2.87, abs=0.01)
    assert screech["periods"] == pytest.approx(30 / screech["period"])
    said = " ".join(found["warnings"])
    assert "4.1 periods of the expected screech" in said and "it is not resolved" in said
    assert "probe" not in said and "sponge" not in said


def test_probes_that_may_tell_fast_tones_as_slow_ones_are_named(checked):
    def named(*changes):
        warnings = checked(*QUICK, *(word for change in changes for word in ("--set", change)))["warnings"]
        return [line for line in warnings if "appear as lower ones" in line]

    assert named("probe.0.every_time=0.2") == []
    (line,) = named("probe.0.every_time=0.2", 'probe.0.filter="none"')
    assert 'probe "lips"' in line and "up to 2.5;" in line and "up to 26.5" in line  # along y: cells of .0189
    assert named("probe.0.every_time=0.016", 'probe.0.filter="none"') == []
    for every, count in ((20, 1), (1, 0)):
        assert len(named(f'probe=[{{name="near", x=-0.1, y=0.8, every={every}, filter="none"}}]')) == count


@pytest.mark.slow
def test_what_enters_is_described(checked):
    """Size and band of the disturbances of the round jet's layer, which is that of the mean; a steady one has none. Of
    the jet behind the nozzle there is as little as can be."""

    def layer(*changes):
        found = checked("round-jet", "--preset", "quick", *(word for c in (*ROUND, *changes) for word in ("--set", c)))
        return found["inflow_layers"][0], any("it forces the screech" in line for line in found["warnings"])

    found, forced = layer("parameters.disturbance=0.05", "parameters.disturbance_lowest=1.0")
    assert found["rms"] == pytest.approx(0.05, rel=0.15) and found["thickness"] == pytest.approx(0.1, rel=0.07)
    assert np.sqrt(np.sum(np.square(found["rms_uvw"]))) == pytest.approx(found["rms"])
    low, high = found["band"]
    assert 0.95 <= low < 1.2 and 1.25 < high <= 1.55 and not forced
    found, forced = layer("boundary.1.steady=true")
    assert found["rms"] == 0 and found["band"] is None and not forced
    # nor does what is frozen in it hide the layer
    found, _ = layer("boundary.1.steady=true", "parameters.disturbance=0.05")
    assert found["thickness"] == pytest.approx(0.1, rel=0.3) and found["band"] is None
    found, forced = layer()
    assert found["band"][0] < 0.2 and forced


@pytest.mark.slow
def test_the_screech_of_a_round_jet_is_over_its_own_lengths(checked, capfd):
    """By Tam, Seiner and Yu f D/c = .408 at Mj 1.42; one that is expanded in its nozzle has no cells."""
    little = [word for change in ROUND for word in ("--set", change)]
    found = checked("round-jet", "--preset", "quick", *little)["screech"]
    assert found["strouhal"] == pytest.approx([0.289, 0.361], abs=1e-3) and found["spacing"] == pytest.approx(
        1.398, abs=1e-3
    )
    assert 1 / found["period"] == pytest.approx(0.408, abs=1e-3)
    assert found["periods"] == pytest.approx(18 / found["period"])
    expanded = ["--set", "parameters.exit_mach=1.4", "--set", "parameters.pressure_ratio=1.0"]
    assert checked("round-jet", "--preset", "quick", *little, *expanded)["screech"] is None
    assert cli.execute(["check", "round-jet", "--preset", "quick", *little]) == 0
    assert "f Dj/Uj = 0.289 to 0.361" in capfd.readouterr().out


def test_frequencies_are_those_of_the_spacing(checked):
    found = checked(*QUICK, "--points-per-wave", "10")["resolution"]
    (block,) = (b for b in build(load("planar-jet", "quick").grid).blocks if b.name == "jet")
    x, y = block.x[0, 0], block.y[0, :, 0]
    inside = np.diff(x)[(x[1:] <= 12.0)].max(), np.diff(y)[(np.abs(y[1:]) <= 5) & (np.abs(y[:-1]) <= 5)].max()
    jet = next(entry for entry in found["blocks"] if entry["block"] == "jet")
    # the edge of a node inside may end in the sponge
    assert jet["cutoff"] == pytest.approx(1 / (10 * max(inside)), rel=0.1) and jet["cutoff"] <= 1 / (10 * max(inside))
    axis = next(entry for entry in found["probes"] if entry["probe"] == "axis")
    assert axis["at"][0] == 12.0 and axis["largest_at"][0] == 0.0
    (cell,) = np.diff(x)[np.searchsorted(x, 12.0, side="right") - 1 :][:1]
    assert axis["cutoff"] == pytest.approx(1 / (10 * cell), rel=0.05)


def test_largest_spacing_counts_both_neighbours():
    x = np.array([0.0, 1.0, 3.0, 3.5])[None, None]
    np.testing.assert_array_equal(resolution.largest_spacing(x, 0 * x, 0 * x, [0])[0, 0], [1.0, 2.0, 2.0, 0.5])
    turned = np.swapaxes(x, 1, 2)
    slanted = resolution.largest_spacing(0 * turned, turned, turned, [0, 1])[0, :, 0]
    np.testing.assert_allclose(slanted, np.sqrt(2) * np.array([1.0, 2.0, 2.0, 0.5]), rtol=1e-15)


def test_what_is_looked_at_in_a_sponge_is_said(checked, capfd):
    moved = ["--set", "sponge.0.start=9.0", "--set", "sponge.0.end=11.0"]
    said = checked(*QUICK, *moved)["warnings"]
    assert any('probe "axis": 24 of 97 places in sponge.0, at most 100% of its depth' in line for line in said)
    assert any("sponge.0 (x = 9 to 11) goes on at full strength for 7.23" in line for line in said)
    said = checked(*QUICK, "--set", "time.end=10.0")["warnings"]
    assert any("average.start = 15 is not before time.end = 10" in line for line in said)
    assert cli.execute(["check", *QUICK, "--set", "sponge.0.end=50.0"]) != 0
    assert "thicker than the domain: its blocks reach from 0 to 18" in capfd.readouterr().err
    assert cli.execute(["check", *QUICK, "--set", "probe.0.points=[[40.0, 0.0, 0.0]]"]) != 0
    assert "lies outside the grid" in capfd.readouterr().err


def small(end, **tables):
    state = {"rho": 1.0, "p": 1 / 1.4}
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": [21, 9, 1], "lower": [0.0, 0.0, 0.0], "upper": [4.0, 1.0, 0.0]},
            "time": {"steps": 2},
            "initial": {"state": state},
            "boundary": [{"faces": "all", "type": "slip-wall"}],
            "sponge": [{"axis": "x", "start": 2.0, "end": end, "strength": 1.0, "state": state}],
            "probe": [{"name": "far", "x": 3.0, "y": 0.5, "every": 1}],
            **tables,
        }
    )


def test_a_run_says_it_too_and_records_where_its_sponges_are(tmp_path, capfd):
    Simulation(small({"face": "imax"}), "cpu", out=tmp_path / "run").run()
    assert 'probe "far": its place in sponge.0, at most 50% of its depth' in capfd.readouterr().err
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["case"]["sponge"][0]["end"] == 4.0
    # the case that it keeps still names the face: it goes on from its checkpoint, and moves with another grid
    kept = load(tmp_path / "run" / "case")
    assert kept.sponge[0].end.face == "imax"
    longer = Simulation(restart=tmp_path / "run", out=tmp_path / "on")
    assert longer.step_count == 2


def test_other_cases_say_what_is_known_of_them(checked):
    found = checked("taylor-green", "--set", "grid.n=[16, 16, 16]", "--set", PRANDTL)
    assert found["screech"] is None and found["sponges"] == [] and found["warnings"] == []
    (block,) = found["resolution"]["blocks"]
    assert block["cutoff"] == pytest.approx(16 / (2 * np.pi) / 8)


def test_a_source_across_a_slip_wall_is_told(checked, tmp_path):
    """Ghosts of slip walls have no slope of the pressure that balances a formula, as they have for `body_force`."""
    text = """
        [grid]
        generator = "box"
        n = [9, 17, 1]
        lower = [0, 0, 0]
        upper = [1, 1, 0]
        [time]
        steps = 1
        [source]
        rho_v = "-0.5 * rho"
        [initial.state]
        rho = 1.0
        p = 0.7
        [[boundary]]
        faces = ["jmin", "jmax"]
        type = "slip-wall"
        [[boundary]]
        faces = ["imin", "imax"]
        type = "symmetry"
    """
    (tmp_path / "layer.toml").write_text("\n".join(line.strip() for line in text.splitlines()))
    told = [warning for warning in checked(str(tmp_path / "layer.toml"))["warnings"] if "may act across" in warning]
    assert len(told) == 2 and all("slip-wall" in warning for warning in told)


def test_what_a_case_adds_to_the_equations_is_listed(capfd):
    keys = ["grid.n=[16,16,16]", PRANDTL, 'scheme.inviscid="hybrid"', 'turbulence.model="wale"', "filter.every=5",
            "body_force.acceleration=[0.1,0,0]", 'source.rho="t"']  # fmt: skip
    changes = (word for key in keys for word in ("--set", key))
    assert cli.execute(["check", "taylor-green", *changes, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["plan"]["additions"] == [
        "hybrid inviscid terms",
        "eddy viscosity (wale)",
        "body force",
        "sources of rho",
        "filter of order 8, every 5 steps",
    ]


def test_a_field_that_the_run_has_not_is_refused_by_check(capfd):
    assert cli.execute(["check", "taylor-green", "--set", 'output.variables=["rho","eddy_viscosity"]']) == 2
    assert 'this run has no field "eddy_viscosity"' in capfd.readouterr().err
