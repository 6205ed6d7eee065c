"""What is said before a run begins: what does not fit, what can hardly be meant, what it is to compute with."""

import math
import os

import pytest
from watched_runs import tables

from hiresx import Case, Simulation
from hiresx.case import load
from hiresx.cli import execute
from hiresx.cli.check_numbers import unlikely_values
from hiresx.decomposition import decompose
from hiresx.device.cpu import CpuBackend
from hiresx.errors import HiresxError
from hiresx.estimate import estimate
from hiresx.grid import build, size
from hiresx.output.watch import monitors

MANY = 'probe=[{name="a", line={start=[0.1, 0.0, 0.0], end=[0.9, 0.0, 0.0], n=2000000000}}]'


@pytest.mark.parametrize("verb", ["check", "run"])
def test_a_probe_that_does_not_fit_is_refused_before_its_places_are_made(verb, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(size, "host_memory", lambda: 25_000_000_000)
    monkeypatch.setattr(CpuBackend, "compile", lambda *_: pytest.fail("it compiles"))
    monkeypatch.chdir(tmp_path)
    assert execute([verb, "sod", "--set", MANY]) == 2
    assert "probe.0: 2,000,000,000 places take" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_places_need_more_in_more_dimensions(monkeypatch):
    """A grid that only its file knows the dimensions of: looked at again, before any place is looked for."""
    line = {"start": [0.1, 0.1, 0.0], "end": [0.9, 0.9, 0.0], "n": 100}
    case = Case.from_dict(tables(probe=[{"name": "a", "line": line}]))
    decomposition = decompose(case, build(case.grid))
    assert [len(found) for found in monitors.check(case, decomposition)["probe"]] == [100]
    monkeypatch.setattr(size, "host_memory", lambda: 800_000)
    with pytest.raises(HiresxError, match=r"probe\.0: 100 places take 846 kB"):
        monitors.check(case, decomposition)
    assert [probe.count for probe in case.probe] == [len(case.probe[0].places)]


@pytest.mark.parametrize(
    ("override", "dt", "lines"),
    [
        ("time.cfl=0.4", 2e-3, []),
        ("time.cfl=0.4", 1e-13, ["more than 1e9 steps, about 2e+12 of them: time.end = 0.2 in steps of 1e-13"]),
        ("time.end=1e300", 1e-300, ["more than 1e9 steps, more than can be counted of them: time.end = 1e+300"]),
        ("time.steps=2000000000000", 2e-3, []),  # the end comes first
        ("output.every_time=1e-12", 2e-3, ["more than 1e9 steps", "output.every_time = 1e-12 writes the fields about"]),
        ("extrema.every_time=1e-12", 2e-3, ["more than 1e9 steps, about 2e+11 of them: time.end = 0.2"]),
        ("gas.gamma=1e9", 2e-3, ["gas.gamma = 1e+09 is above 5/3, the largest value of any gas"]),
        ("average.start=0.2", 2e-3, ["average.start = 0.2 is not before time.end = 0.2: nothing is averaged"]),
        ("average.start=0.19", 2e-3, []),
        ("gas.viscosity={law='sutherland', sutherland_temperature=110.4}", 2e-3, [
            "gas.viscosity.sutherland_temperature = 110.4 is a ratio to the reference temperature, not in kelvins"
        ]),
        ("gas.viscosity={law='sutherland', sutherland_temperature=3.5}", 2e-3, []),  # 1000 K at 288 K
    ],
)  # fmt: skip
def test_numbers_that_can_hardly_be_meant(override, dt, lines):
    found = list(unlikely_values(load("sod", overrides=[override]), dt))
    assert len(found) == len(lines) and all(line in said for line, said in zip(lines, found, strict=True))


@pytest.mark.parametrize(("pressure", "told"), [(101325.0, True), (0.714, False)])
def test_states_in_units_of_their_own(pressure, told):
    """Air in SI units has a sound speed of 344; a case may have one hot state beside gas of ordinary temperature."""
    boundary = [{"faces": "all", "type": "far-field", "state": {"rho": 1.2, "u": 100.0, "p": pressure}}]
    case = Case.from_dict(tables(boundary=boundary, initial={"state": {"rho": 1.0, "p": 101325.0}}))
    found = [line for line in unlikely_values(case, 1e-5) if "sound speed" in line]
    assert len(found) == told and all(
        line.startswith("boundary.0.state has the sound speed 343.8 c_ref") for line in found
    )


def test_steps_of_unknown_length_write_no_unlikely_number_of_files():
    steps = {"time.end": None, "time.steps": 9, "output.every_time": 0.1}
    assert not list(unlikely_values(load("sod", overrides=steps), math.inf))


@pytest.mark.parametrize(
    "table",
    [
        "output",
        "checkpoint",
        "average",
        "extrema",
        "kinetic_energy",
        "conservation",
        "probe.0",
        "force.0",
        "output.subset.0",
    ],
)
def test_intervals_that_times_do_not_tell_apart(capfd, table):
    """They would let the clock of a run stand still, or step by them without an end."""
    more = {
        "probe.0": 'probe=[{name="a",x=0.5,every_time=E}]',
        "force.0": 'force=[{name="a",faces=["imin"],every_time=E}]',
        "output.subset.0": 'output.subset=[{name="a",range={i=[0,4]},every_time=E}]',
    }
    for every in ("1e-300", "5e-324", "1e-17"):
        asked = more.get(table, f"{table}.every_time=E").replace("E", every)
        for verb in ("check", "run"):
            assert execute([verb, "sod", "--set", asked]) == 2
            said = " ".join(capfd.readouterr().err.split())
            assert f"{table}.every_time = {float(every):g}: in double precision times lie up to 2.8e-17 apart" in said
            assert "here; take more than 2.2e-16" in said


def test_a_run_says_of_numbers_that_can_hardly_be_meant_what_check_says(tmp_path, capfd):
    asked = [
        "sod",
        "--set",
        "output.every_time=1e-12",
        "--steps",
        "2",
        "--backend",
        "cpu",
        "--out",
        str(tmp_path / "o"),
    ]
    assert execute(["run", *asked]) == 0
    said = capfd.readouterr().err
    assert said.count("more than 1e9 steps") == 1 and "output.every_time = 1e-12 writes the fields about" in said


def test_check_says_so(capfd):
    assert execute(["check", "sod", "--set", "time.dt=1e-300"]) == 0
    assert "warning: more than 1e9 steps, about 2e+299 of them" in capfd.readouterr().out


def test_threads_of_a_run(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "3")
    seen = []

    def begun(self, *_, **__):
        seen.append(self.threads)
        raise HiresxError("that is enough")

    monkeypatch.setattr(CpuBackend, "compile", begun)
    assert execute(["run", "sod", "--threads", "2", "--out", str(tmp_path / "a")]) == 2
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "3")
    assert execute(["run", "sod", "--out", str(tmp_path / "b")]) == 2
    assert seen == [2, 3]
    assert execute(["launch", "-n", "1", "sod", "--threads", "2", "--dry-run"]) == 0
    assert "run sod --threads 2" in capfd.readouterr().out


def test_a_run_that_ended_before_its_first_checkpoint(tmp_path, monkeypatch, capfd):
    folder = tmp_path / "k"
    folder.mkdir()
    assert execute(["run", "--restart", str(folder)]) == 2
    assert "ended before its first checkpoint leaves none: start it again" in capfd.readouterr().err
    Simulation(Case.from_dict(tables(time={"steps": 1, "cfl": 0.5}, checkpoint={"keep": 0})), "cpu", out=folder).run()
    (folder / "case").mkdir(exist_ok=True)
    assert execute(["run", "--restart", str(folder)]) == 2
    assert "ended before its first; start it again: hiresx run" in capfd.readouterr().err


def test_steps_shortened_for_samples_are_counted():
    """Nine whole steps and a short one in each of ten intervals."""
    case = Case.from_dict(tables(time={"end": 1.0, "dt": 0.0105}, extrema={"every_time": 0.1}))
    assert estimate(case)["steps"] == 100


@pytest.mark.parametrize(("every", "said"), [(0.5, False), (2.0, True)])
def test_an_interval_beyond_the_end_is_told(every, said):
    case = Case.from_dict(tables(time={"end": 1.0, "dt": 0.01}, extrema={"every_time": every}))
    found = " ".join(unlikely_values(case, 0.01))
    assert ("extrema.every_time = 2 is beyond time.end = 1: only the first sample is taken" in found) == said
