"""The verification checks as tests, one test for each check: the quick groups on the cpu backend, some of them on the
emulated threads of the CUDA form. And the checking itself."""

import json
import math

import numpy as np
import pytest
import verification as page
import verification_pictures as pictures
from paths import ROOT, SHARED

from hiresx import kernels, verify
from hiresx.case import load
from hiresx.case.viscosity import VISCOSITIES
from hiresx.errors import HiresxError
from hiresx.verify import checks as checking
from hiresx.verify import reference_solutions, runner
from hiresx.verify.groups import kernels as kernel_group

QUICK = [(name, check) for name in verify.names(long=False) for check in runner.group(name).CHECKS]

# On one core the emulated threads are ten times slower than the cpu backend: what is small and looks at every kind of
# kernel. That all kernels agree between the backends is checked by the group "kernels".
ON_EMULATED = (
    "fluxes: ",
    "accuracy: interpolation",
    "accuracy: density wave",
    "free-stream: steger_warming, modified, Mach 0.3",
    "free-stream: viscous, Mach 2",
    "shock-tubes: sod, 200",
    "shock-tubes: blast-waves, 200 points, original",
    "strong-shocks: 123",
    "viscous: shear wave, 16",
)
# Quick, as the kernels of one configuration, which other tests have too, do for all of them; each takes ten seconds to
# compile. That shear decays as it must is a test of tests/rhs/test_physics.py.
OFTEN = (
    "fluxes: steger_warming",
    "accuracy: density wave",
    "free-stream: steger_warming, modified, Mach 0.3",
    "shock-tubes: sod, 200 points, modified",
    "strong-shocks: 123",
    "waves: steger_warming, js, 1e-6",
    "mixing-layer: Mach 0.4: what",
)


def parameters(chosen=("",), quick=()):
    """Of the checks whose names begin so."""
    titles = {f"{name}: {check.name}": (name, check) for name, check in QUICK}
    return [
        pytest.param(*titles[title], id=title, marks=() if title.startswith(quick) else pytest.mark.slow)
        for title in titles
        if title.startswith(chosen)
    ]


REFERENCE = SHARED / "reference"
RESULTS = ROOT / "docs" / "results"


@pytest.fixture(scope="module")
def benches(request):
    """Workbenches by backend, with what the tests to be run need compiled on all cores at once; they keep the runs of
    one group."""
    made = {}
    for backend, test in (("cpu", test_on_cpu), ("emulated", test_on_emulated_cuda)):
        items = [item for item in request.session.items if getattr(item, "function", None) is test]
        made[backend] = checking.Workbench(backend)
        runner.compile_ahead(made[backend], (item.callspec.params["check"] for item in items))
        made[backend].group = None
    return made


def passes(bench, name, check):
    if bench.group != name:
        bench.forget()
        bench.group = name
    result = runner.judge(name, check, bench)
    assert result["pass"], runner.line(result)


@pytest.mark.parametrize(("name", "check"), parameters(quick=OFTEN))
def test_on_cpu(benches, name, check):
    passes(benches["cpu"], name, check)


def test_a_choice_that_is_in_no_set_gets_one_that_suits_it(monkeypatch):
    monkeypatch.setattr(kernel_group, "SETS", {})
    found = dict(kernel_group._left_out())
    assert found["interpolation original6"] == ('scheme.interpolation="original6"', 'scheme.weights="linear"')
    assert found["flux roe"] == ('scheme.flux="roe"',) and "flux steger_warming" not in found
    assert all(load("free-stream", overrides=list(sets)) for sets in found.values())


@pytest.mark.parametrize(("name", "check"), parameters(ON_EMULATED))
def test_on_emulated_cuda(benches, name, check):
    passes(benches["emulated"], name, check)


def test_every_choice_of_kernels_is_compared():
    configurations = [checking.CheckRun("free-stream", None, sets).configuration for sets in kernel_group.SETS.values()]
    for folder in ("interpolation", "weights", "space", "flux", "positivity"):
        assert {getattr(c, folder) for c in configurations} == set(kernels.choices(folder)), folder
    assert {c.viscosity for c in configurations} == {"none", *VISCOSITIES}


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the independent references are not here")
@pytest.mark.parametrize(
    ("name", "file", "threshold"),
    # L1 differences of density; what 400 points may be off by is .26 and .095
    [
        ("shu-osher", "ref_shuosher_wenoLLF_6400.csv", 5e-3),
        ("blast-waves", "ref_blast_wenoLLF_6400.csv", 3e-3),
        ("taylor-green-dns", "tgv_Re1600_dns.csv", 1e-9),
    ],
)
def test_stored_references_agree_with_independent_ones(name, file, threshold):
    lines = [line for line in (REFERENCE / file).read_text().splitlines() if line[0] not in "#x"]
    x, independent = np.array([[float(v) for v in line.split(",")[:2]] for line in lines]).T
    own_x, own = list(reference_solutions.table(name).values())[:2]
    assert np.trapezoid(abs(np.interp(own_x, x, independent) - own), own_x) < threshold


def test_groups_are_chosen_by_name():
    assert set(verify.names(long=True)) == {"bow-shock", "flat-plate", "mms", "precision", "robustness", "taylor-green"}
    assert runner.choose_groups([]) == verify.names(long=False)
    assert runner.choose_groups(["long"]) == verify.names(long=True)
    assert runner.choose_groups(["all"]) == runner.choose_groups(["long", *verify.names(long=False)]) == verify.names()
    with pytest.raises(HiresxError) as caught:
        verify.run(["free-steam"], "cpu")
    assert 'did you mean "free-stream"' in caught.value.hint


def test_a_plan_that_does_not_suit_a_check_leaves_it_out():
    plate = checking.CheckRun("flat-plate-sa", "quick")
    check = checking.Check("plate", checking.at_most(1.0), lambda bench: bench.complete(plate), (plate,))
    result = runner.judge("cuts", check, checking.Workbench("cpu", "compact"))
    assert result["pass"] is None and "does not suit" in result["left_out"] and "FAIL" not in runner.line(result)
    with pytest.raises(HiresxError, match="the cpu backend has no plan"):
        verify.run(["cuts"], "cpu", plan="fused")
    with pytest.raises(HiresxError, match='no plan is called "compakt"') as caught:
        verify.run(["cuts"], "cpu", plan="compakt")
    assert 'did you mean "compact"' in caught.value.hint


def test_runs_of_checks_are_computed_by_the_plan_that_is_asked_for():
    run = checking.CheckRun("sod", None, ("time.steps=1",))
    bench = checking.Workbench("cpu", "decomposed")
    assert bench.complete(run).simulation.solver.plan == "decomposed"
    assert bench.command(run) == "hiresx run sod --set time.steps=1 --set plan=decomposed"


def test_limits():
    assert checking.at_most(1.0).holds(1.0) and not checking.at_most(1.0).holds(1.1)
    assert checking.at_least(4.8).holds(5.0) and not checking.at_least(4.8).holds(4.7)
    assert checking.between(-1, 1).holds(0.0) and not checking.between(-1, 1).holds(2.0)
    for limit in (checking.at_most(1.0), checking.at_least(1.0), checking.between(0, 1)):
        assert not limit.holds(math.nan) and not limit.holds(math.inf)


@pytest.mark.slow
def test_a_run_that_fails_fails_its_checks():
    dies = checking.CheckRun("blast-waves", None, ('scheme.positivity="none"',))
    check = checking.Check("the bare scheme", checking.at_least(0.0), lambda run: 1.0, (dies,))
    for _ in range(2):
        result = runner.judge("strong-shocks", check, bench := checking.Workbench("cpu"))
        assert not result["pass"] and math.isnan(result["value"]) and "blew up" in result["error"]
        assert "FAIL" in runner.line(result)
    with pytest.raises(HiresxError):
        bench.complete(dies)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("verification-*.json")), ids=lambda path: path.stem)
def test_the_stored_results_are_of_the_checks_as_they_are(path):
    """Limits and commands of the page; after a change of a check its group is run and stored anew."""
    for stored in json.loads(path.read_text())["checks"]:
        name = f"{stored['group']}: {stored['check']}"
        (check,) = (check for check in runner.group(stored["group"]).CHECKS if check.name == stored["check"])
        assert (check.limit.relation, np.ravel(check.limit.threshold).tolist()) == (
            stored["relation"],
            np.ravel(stored["threshold"]).tolist(),
        ), name
        assert check.limit.holds(stored["value"]), name
        assert [run.command for run in check.runs] == stored["commands"], name


def document(backend, checks):
    """As `hiresx verify --json` prints it."""
    return {
        "backend": backend,
        "checks": checks,
        "command": f"hiresx verify --backend {backend} --json",
        "date": "2026-01-01",
        "wall_s": 12.3,
        "hardware": {"cpu": "a processor", "threads_available": 2, "gpus": []},
        "versions": {},
    }


def result(group, check, backend="cpu", value=0.5, **more):
    made = {"group": group, "check": check, "backend": backend, "value": value, "relation": "<=", "threshold": 1.0}
    return made | {"pass": value is not None and value <= 1.0, "seconds": 1.0, "commands": ["hiresx run x"]} | more


CURVES = {
    "accuracy": {
        name: {"points": [32, 64], "error": [1e-3, 3e-5]} for name in ("density wave: order", "vortex: order")
    },
    "shock-tubes": {
        f"{case}, 200 points, modified": {"x": [0.1, 0.9], "rho": [1.0, 0.1], "reference": [1.0, 0.1]}
        for case in ("sod", "lax", "shu-osher", "blast-waves")
    },
    "viscous": {"Couette: velocity": {name: [0.0, 1.0] for name in ("y", "u", "u_exact", "T", "T_exact")}},
    "taylor-green": {name: {"t": [0, 1], "E": [0.1, 0.1], "rate": [0, 0]} for name in ("js", "z", "linear")},
    "flat-plate": {"friction": {"x": [1.0], "friction": [0.66], "eta": [0, 1], "velocity": [0, 0.3], "place": [0.5]}},
    "waves": {
        "hllc, linear, 1e-6: distance from theory": {
            "points": [6, 16],
            "amplitude": [-0.4, -0.0067],
            "phase": [-27, -0.09],
            "theory_amplitude": [-0.4, -0.0067],
            "theory_phase": [-27, -0.09],
        }
    },
    "mixing-layer": {"Mach 0.4: error of the rate": {"time": [0, 9], "wave": [1, 2], "theory": [1, 2]}},
    "bow-shock": {"stand-off": {"mach": [3.0, 5.0], "standoff": [0.7, 0.48]}},
}


@pytest.mark.slow
def test_the_page_is_made_from_results(tmp_path):
    files = [tmp_path / "verification-cpu.json", tmp_path / "verification-emulated.json"]
    drawn = [
        result(group, check, curves=curves) for group, checks in CURVES.items() for check, curves in checks.items()
    ]
    failing = result("fluxes", "roe: consistent", value=2.0)
    files[0].write_text(json.dumps(document("cpu", [*drawn, failing])))
    died = result("fluxes", "roe: consistent", "emulated", None, error="the flow blew up")
    files[1].write_text(json.dumps(document("emulated", [died])))
    page.main([*map(str, files), "--out", str(tmp_path / "verification.md")])
    text = (tmp_path / "verification.md").read_text()
    assert "| roe: consistent | ≤ 1 | **2: fails** | **did not run: fails** |" in text
    assert "a processor, 2 threads" in text and "2026-01-01" in text and "hiresx run x" in text
    assert "hiresx verify --backend emulated --json" in text
    assert "| hllc, linear, 1e-6 | -40.00 %, -27.00° | -0.67 %, -0.09° |" in text
    for group in CURVES:
        assert hasattr(pictures, group.replace("-", "_"))
        assert f"(verification-{group}.png)" in text and (tmp_path / f"verification-{group}.png").stat().st_size > 5000


def test_the_page_refuses_other_files(tmp_path):
    wrong = tmp_path / "run.json"
    wrong.write_text('{"status": "finished"}')
    with pytest.raises(HiresxError, match="holds no verification results"):
        page.write([wrong], tmp_path / "page.md")


def test_the_page_wants_to_know_where_to(capsys):
    with pytest.raises(SystemExit) as ended:
        page.main(["results.json"])
    assert ended.value.code == 2 and "--out" in capsys.readouterr().err
