"""Coordinates of a series of field files, kept once: whoever reads a file finds them, never those of another grid."""

import fcntl
import os

import netCDF4
import numpy as np
import pytest
from written_runs import Run, periodic

import hiresx
from hiresx import HiresxError
from hiresx.output.fields import coordinate_file
from hiresx.output.fields import field_file as fields
from hiresx.output.show import describe

CLOCK = "output.every_steps=2"
PLANE = 'output.subset=[{name="mid", plane={z=0.3}}]'


def blocks(path):
    return [
        (b.name, b.x.tobytes(), b.y.tobytes(), b.z.tobytes(), b.state["p"].tobytes()) for b in fields.read(path).blocks
    ]


def test_files_that_link_say_what_files_with_coordinates_say(tmp_path):
    for kind in ("once", "each"):
        Run(periodic(CLOCK, PLANE, f'output.coordinates="{kind}"'), tmp_path / kind).steps(2).finish()
    for name in ("fields", "mid"):
        once, each = (fields.frames(tmp_path / kind, name) for kind in ("once", "each"))
        assert list(once) == list(each) == [0, 2]
        for step, path in once.items():
            assert blocks(path) == blocks(each[step])
            size = fields.read(path).blocks[0].x.nbytes
            saved = each[step].stat().st_size - path.stat().st_size
            assert 3 * size - 4096 < saved < 3 * size + 4096, "x, y, z are not in it"
        assert (tmp_path / "once" / f"{name}_grid.nc").is_file() and not (
            tmp_path / "each" / f"{name}_grid.nc"
        ).exists()
    found = describe.describe(tmp_path / "once" / "mid_grid.nc")
    assert found["kind"] == "coordinates of fields" and [v["name"][-1] for v in found["variables"]] == ["x", "y", "z"]


def test_any_netcdf_reader_follows_the_link_from_anywhere(tmp_path, monkeypatch):
    Run(periodic(CLOCK), tmp_path / "run").steps(2).finish()
    os.rename(tmp_path / "run", tmp_path / "moved")
    monkeypatch.chdir("/")
    with netCDF4.Dataset(tmp_path / "moved" / "fields_000002.nc") as file:
        (group,) = file.groups.values()
        assert group["x"].dimensions == ("k", "j", "i") and group["x"].units == "L"
        assert np.ptp(np.asarray(group["x"])) > 1
    pytest.importorskip("xarray", reason="pip install '.[post]'")
    (block,) = hiresx.open(tmp_path / "moved").series(["p"]).children.values()
    assert block["p"].dims[0] == "time" and float(np.ptp(block["y"].values)) > 1


def test_a_file_without_its_coordinates_says_where_they_are(tmp_path):
    Run(periodic(CLOCK), tmp_path).steps(2).finish()
    (tmp_path / "fields_grid.nc").unlink()
    with pytest.raises(HiresxError, match=r"coordinates in fields_grid\.nc, which is not beside it"):
        fields.read(tmp_path / "fields_000002.nc")


def test_a_continued_run_keeps_the_file_and_another_grid_has_its_own(tmp_path):
    first = Run(periodic(CLOCK, PLANE), tmp_path).steps(2)
    captured, state = first.output.capture(), first.state
    kept = (tmp_path / "mid_grid.nc").read_bytes()
    before = blocks(tmp_path / "mid_000002.nc")
    again = Run(periodic(CLOCK, PLANE), tmp_path, state=state, captured=captured).steps(2)
    again.finish()
    assert [path.name for path in sorted(tmp_path.glob("*grid*"))] == ["fields_grid.nc", "mid_grid.nc"]
    assert (tmp_path / "mid_grid.nc").read_bytes() == kept
    elsewhere = PLANE.replace("0.3", "0.4")
    Run(periodic(CLOCK, elsewhere), tmp_path, state=again.state, captured=again.output.capture()).steps(2).finish()
    assert len(list(tmp_path.glob("mid_grid_*.nc"))) == 1
    assert blocks(tmp_path / "mid_000002.nc") == before
    at = {step: float(fields.read(path).blocks[0].z[0, 0, 0]) for step, path in fields.frames(tmp_path, "mid").items()}
    assert at[4] == pytest.approx(0.3) and at[6] == pytest.approx(0.4)
    # A new run begins with nothing of the old one.
    Run(periodic(CLOCK, 'output.coordinates="each"'), tmp_path).steps(2).finish()
    assert not list(tmp_path.glob("fields_grid*"))


@pytest.mark.parametrize("name", ["fields", "mid"])
def test_coordinates_that_were_changed_are_told(tmp_path, name):
    """One bit of one of them; whoever needs none of them is not disturbed."""
    Run(periodic(CLOCK, PLANE), tmp_path).steps(2).finish()
    place, path = tmp_path / f"{name}_grid.nc", tmp_path / f"{name}_000002.nc"
    blocks(path)
    whole = bytearray(place.read_bytes())
    with netCDF4.Dataset(place) as file:
        (group,) = file.groups.values()
        at = whole.index(np.asarray(group["y"]).tobytes())
    whole[at + 9 * 8 + 1] ^= 1  # of the tenth value, the last bits but eight
    os.utime(place, ns=(1, 1))
    place.write_bytes(whole)
    with pytest.raises(HiresxError, match=rf"{name}_000002\.nc: its coordinates, in {name}_grid\.nc, are not those"):
        fields.read(path)
    assert fields.describe(path)["step"] == 2
    pytest.importorskip("xarray", reason="pip install '.[post]'")
    (block,) = hiresx.open(tmp_path).fields(subset=name).children.values()
    assert np.isfinite(block["p"].values).all()
    with pytest.raises(HiresxError, match="are not those that were written"):
        block["y"].load()


def test_a_run_goes_on_with_coordinates_of_its_own_where_the_file_was_changed(tmp_path):
    first = Run(periodic(CLOCK), tmp_path).steps(2)
    captured, state = first.output.capture(), first.state
    first.finish()
    with netCDF4.Dataset(tmp_path / "fields_grid.nc", "a") as file:
        (group,) = file.groups.values()
        group["x"][0, 0, 0] += 1e-12
    Run(periodic(CLOCK), tmp_path, state=state, captured=captured).steps(2).finish()
    assert len(blocks(tmp_path / "fields_000004.nc")) == 1
    with pytest.raises(HiresxError, match="are not those that were written"):
        blocks(tmp_path / "fields_000002.nc")


def test_a_lock_that_a_forked_process_still_holds_is_no_obstacle(tmp_path):
    path = tmp_path / "fields.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createGroup("a")
    with open(path, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        coordinate_file.link(path, ["a"], "grid.nc")
        assert coordinate_file.link_target(path) == "grid.nc"
