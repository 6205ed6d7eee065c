"""Histories of monitors: their files, what is left of damaged ones, and what a run says of them."""

import contextlib
import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
from watched_runs import pulse, ran, tables

from hiresx import Case, HiresxError, Simulation
from hiresx.cli import execute
from hiresx.output.watch import history
from hiresx.output.watch.history import Column, History


def test_a_history_is_netcdf_for_two_readers(tmp_path):
    from netCDF4 import Dataset
    from scipy.io import netcdf_file

    places = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    kept = History("lip", "probe", [Column("rho", "density", "rho_ref"), Column("p", "Druck ²", "1")], places, tmp_path)
    kept.start()
    for n in range(3):
        kept.add(10 * n, 0.1 * n, {"rho": [n, n + 0.5], "p": [1 / 3, np.nan]})
    with Dataset(kept.path) as file, netcdf_file(kept.path, mmap=False) as other:
        assert file.data_model == "NETCDF3_64BIT_OFFSET" and file.dimensions["sample"].isunlimited()
        assert file["p"].long_name == "Druck ²" and file["time"].units == "L / c_ref"
        np.testing.assert_array_equal(file["step"][...], [0, 10, 20])
        np.testing.assert_array_equal(file["rho"][...], [[0, 0.5], [1, 1.5], [2, 2.5]])
        np.testing.assert_array_equal(file["y"][...], [1.0, 4.0])
        np.testing.assert_array_equal(other.variables["rho"][:], file["rho"][...])
    table = history.read(kept.path)
    assert list(table.flat()) == ["step", "time", "rho_0", "rho_1", "p_0", "p_1"] and table.samples == 3
    np.testing.assert_array_equal(table.places, places)


def test_what_was_begun_and_not_counted_is_no_sample(tmp_path):
    kept = History("a", "probe", [Column("p", "pressure", "1")], folder=tmp_path)
    kept.start()
    kept.add(1, 0.1, {"p": 1.0})
    whole = kept.path.read_bytes()
    kept.path.write_bytes(whole + b"\x00\x00\x00\x02\x3f")  # killed while it wrote the next record
    assert history.read(kept.path).data["step"].tolist() == [1]
    again = History("a", "probe", [Column("p", "pressure", "1")], folder=tmp_path)
    again.start(1, restarted=True)
    assert kept.path.read_bytes() == whole
    again.add(2, 0.2, {"p": 2.0})
    assert history.read(kept.path).data["p"].tolist() == [1.0, 2.0]


def test_a_history_of_another_monitor_is_set_aside_and_one_that_lacks_samples_refused(tmp_path):
    first = History("a", "probe", [Column("p", "pressure", "1")], folder=tmp_path)
    first.start()
    first.add(7, 0.1, {"p": 1.0})
    with pytest.raises(HiresxError, match="holds 1 sample, the checkpoint was written after 2"):
        History("a", "probe", [Column("p", "pressure", "1")], folder=tmp_path).start(2, restarted=True)
    whole = first.path.read_bytes()
    first.path.write_bytes(whole[:4] + bytes(4) + whole[8:])  # the sample is there, the header knows of none
    with pytest.raises(HiresxError, match="holds 0 samples, the checkpoint was written after 1"):
        History("a", "probe", [Column("p", "pressure", "1")], folder=tmp_path).start(1, restarted=True)
    first.path.write_bytes(whole)
    other = History("a", "probe", [Column("T", "temperature", "1")], folder=tmp_path)
    other.start(1, restarted=True)
    assert other.samples == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.before-7.nc", "a.nc"]
    other.path.unlink()
    with pytest.raises(HiresxError, match="was removed"):
        other.sync()
    other.start(0, restarted=True)
    assert other.path.exists()


def sampled(folder, *steps: int, column: str = "p") -> History:
    kept = History("a", "probe", [Column(column, "quantity", "1")], folder=folder)
    kept.start()
    for step in steps:
        kept.add(step, 0.1 * step, {column: step})
    kept.close()
    return kept


def test_what_was_set_aside_before_stays(tmp_path):
    """Two changes of a monitor at the same step are two histories."""
    for column in ("T", "p", "T"):
        again = History("a", "probe", [Column(column, "quantity", "1")], folder=tmp_path)
        again.start(0, restarted=True)
        again.add(7, 0.7, {column: 1.0})
        again.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.before-7-2.nc", "a.before-7.nc", "a.nc"]
    assert [history.read(tmp_path / f"a.before-7{n}.nc").quantities for n in ("", "-2")] == [["T"], ["p"]]


@pytest.mark.parametrize(
    ("kept", "change", "note"),
    [
        (2, lambda path: None, "1 sample behind the checkpoint dropped, to be taken anew"),
        (2, Path.unlink, "is missing, which had 2 samples: a new history begins"),
        (None, lambda path: None, "the checkpoint knows nothing of it: it is kept as a.before-10.nc, with 3 samples"),
        (3, lambda path: path.write_bytes(b""), "a.nc.damaged, a new one begins; 3 samples were in it"),
        (1, lambda path: os.truncate(path, 60), "a.nc.damaged, a new one begins; 1 sample was in it"),
        (3, lambda path: os.truncate(path, 60), "a.nc.damaged, a new one begins; 3 samples were in it"),
        (3, lambda path: sampled(path.parent, 1, 2, column="T"), "it is kept as a.before-2.nc, with 2 samples"),
        (3, lambda path: None, None),
    ],
    ids=["longer", "gone", "unknown", "emptied", "cut to one", "cut", "other", "whole"],
)
def test_no_sample_gets_out_of_sight_without_a_word(tmp_path, kept, change, note):
    change(sampled(tmp_path, 0, 5, 10).path)
    again = History("a", "probe", [Column("p", "quantity", "1")], folder=tmp_path)
    again.start(kept, restarted=True)
    assert len(again.notes) == (note is not None) and all(note in said for said in again.notes), again.notes
    again.add(15, 1.5, {"p": 15.0})
    steps = [0, 5, 10][: again.samples - 1]
    assert history.read(again.path).data["step"].tolist() == [*steps, 15]


@pytest.mark.parametrize("samples", [0, 1, 2])
def test_a_history_cut_behind_its_header_is_refused_with_what_is_left(tmp_path, samples):
    kept = sampled(tmp_path, 0, 5, 10)
    os.truncate(kept.path, len(kept._header) + samples * kept._record.itemsize + 7)
    content = kept.path.read_bytes()
    with pytest.raises(HiresxError, match=f"holds {samples} samples?, the checkpoint was written after 3"):
        kept.start(3, restarted=True)
    assert kept.path.read_bytes() == content, "nothing is lost"


def test_no_damage_of_a_history_is_a_traceback(tmp_path):
    """Cut anywhere, or with a few bytes changed: going on is refused, or a new one begins with a word; reading is
    refused, or gives what a history has."""
    whole = sampled(tmp_path, 0, 5, 10).path.read_bytes()
    chance = random.Random(7)
    for n in range(100):
        content = bytearray(whole[: chance.randrange(len(whole))] if n % 2 else whole)
        for _ in range(chance.randrange(4) if content else 0):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path = tmp_path / f"{n}" / "a.nc"
        path.parent.mkdir()
        path.write_bytes(content)
        with contextlib.suppress(HiresxError):
            assert list(history.read(path).data)[:1]
        again = History("a", "probe", [Column("p", "quantity", "1")], folder=path.parent)
        try:
            again.start(3, restarted=True)
        except HiresxError as error:
            assert "the checkpoint was written after 3" in error.message
            assert path.read_bytes() == content
            continue
        finally:
            again.close()
        (kept,) = [found for found in path.parent.iterdir() if found != path] or [path]
        assert again.samples == 3 if kept == path else kept.read_bytes() == content and len(again.notes) == 1


def test_a_run_says_what_became_of_its_histories(tmp_path, capfd):
    case = Case.from_dict(tables(monitor={"every": 4}, probe=[{"name": "middle", "x": 0.5, "y": 0.5, "every": 5}]))
    Simulation(case, "cpu", out=tmp_path / "out", initial=pulse).run(steps=10, progress=False)
    folder = tmp_path / "out/history"
    os.truncate(folder / "residual.nc", 50)
    (folder / "middle.nc").write_bytes(b"")
    capfd.readouterr()
    again = Simulation(case, "cpu", restart=tmp_path / "out")
    again.run(steps=5)
    said = capfd.readouterr().err
    assert "residual.nc is not a whole history: it is kept as residual.nc.damaged, a new one begins; 3 samples" in said
    assert "middle.nc is not a whole history" in said
    assert history.read(folder / "residual.nc").data["step"].tolist() == [12, 15]
    assert history.histories(tmp_path / "out").keys() == {"residual", "middle"}


@pytest.mark.parametrize("kind", ["middle", "residual", "all"])
def test_a_history_of_another_run_is_not_continued(tmp_path, kind):
    """Of the same monitor, at the same steps: as long, and another one."""
    table = {"monitor": {"every": 4}, "probe": [{"name": "middle", "x": 0.5, "y": 0.5, "every": 5}]}
    table["surface"] = [
        {"name": "all", "box": {"lower": [0.5, 0.2, 0.0], "upper": [1.5, 0.8, 0.0], "spacing": 0.2}, "every": 2}
    ]
    for name, p in (("other", 0.8), ("one", 0.7)):
        case = Case.from_dict(tables(**table, initial={"state": {"rho": 1.0, "p": p, "u": 0.1}}))
        Simulation(case, "cpu", out=tmp_path / name).run(steps=10, progress=False)
    folder = "surface" if kind == "all" else "history"
    there, theirs = (next((tmp_path / name).glob(f"{folder}*/{kind}.nc")) for name in ("one", "other"))
    own, record = there.read_bytes(), (tmp_path / "one/run.json").read_text()
    there.write_bytes(theirs.read_bytes())
    assert len(own) == there.stat().st_size and own != there.read_bytes()
    with pytest.raises(
        HiresxError, match=rf"{kind}\.nc holds other samples than those .*: it is of another run"
    ) as told:
        Simulation(case, "cpu", restart=tmp_path / "one", out=tmp_path / "one").run(steps=2, progress=False)
    assert "put the file back" in told.value.hint and there.read_bytes() == theirs.read_bytes()
    assert (tmp_path / "one/run.json").read_text() == record, "nothing ran"
    there.write_bytes(own)
    Simulation(case, "cpu", restart=tmp_path / "one", out=tmp_path / "one").run(steps=5, progress=False)
    assert there.stat().st_size > len(own) and there.read_bytes()[8:].startswith(own[8 : 2 * len(own) // 3])


def test_a_sample_that_was_changed_is_told(tmp_path):
    """Any bit of the samples that the checkpoint knows of; what lies behind them is dropped, whatever it is."""
    kept = sampled(tmp_path, 0, 5, 10)
    digest, whole, begin = kept.digest, kept.path.read_bytes(), len(kept._header)
    for at in range(begin, len(whole), 7):
        changed = bytearray(whole)
        changed[at] ^= 16
        kept.path.write_bytes(changed)
        again = History("a", "probe", [Column("p", "quantity", "1")], folder=tmp_path)
        with pytest.raises(HiresxError, match="holds other samples"):
            again.start(3, restarted=True, digest=digest)
    longer = sampled(tmp_path, 0, 5, 10, 15)
    longer.start(3, restarted=True, digest=digest)
    longer.add(15, 1.5, {"p": 15})
    assert longer.digest == sampled(tmp_path / "whole", 0, 5, 10, 15).digest


def test_csv_keeps_every_digit(tmp_path, capsys):
    case = Case.from_dict(tables(probe=[{"name": "middle", "x": 1.0, "y": 0.5}]))
    found = ran(case, initial=pulse, out=tmp_path / "run")[1]
    assert execute(["history", str(tmp_path / "run"), "middle", "--csv"]) == 0
    printed = capsys.readouterr().out
    values = np.genfromtxt(printed.splitlines(), delimiter=",", names=True)
    for name, column in found["middle"].items():
        np.testing.assert_array_equal(values[name], column)
    assert execute(["history", str(tmp_path / "run"), "middle", "--out", str(tmp_path / "m.csv")]) == 0
    assert (tmp_path / "m.csv").read_text() == printed
    capsys.readouterr()
    assert execute(["history", str(tmp_path / "run"), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["histories"]
    assert {"name": "middle", "samples": 5, "places": 1}.items() <= listed[0].items()
    assert execute(["history", str(tmp_path / "run"), "midle"]) == 2
    assert "middle" in capsys.readouterr().err


@pytest.mark.parametrize("steps", [[], [12, 16]])
def test_a_residual_history_without_the_first_step_is_summarised(tmp_path, capsys, steps):
    """That of a run that went on in another folder or whose history was damaged, and one without samples."""
    kept = History("residual", "residual", [Column("rho", "norm", "1")], folder=tmp_path)
    kept.start()
    for step in steps:
        kept.add(step, 0.1 * step, {"rho": 0.5 * step})
    kept.close()
    assert execute(["history", str(kept.path)]) == 0
    assert ("12" if steps else "nan") in capsys.readouterr().out
