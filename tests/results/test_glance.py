"""What is read of many field files by h5py is what netCDF's library reads."""

import pytest

pytest.importorskip("xarray", reason="pip install 'hiresx[post]'")

import numpy as np

from hiresx import Case, HiresxError, Simulation
from hiresx.output.fields import field_file
from hiresx.output.fields.field_header import read_header, read_stored
from hiresx.output.fields.formats import netcdf

CASE = {
    "grid": {"generator": "box", "n": [12, 9, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0]},
    "time": {"steps": 2},
    "initial": {"state": {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}},
    "boundary": [{"faces": "all", "type": "slip-wall"}],
    "output": {"every_steps": 1, "precision": "fp32"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("run")
    Simulation(Case.from_dict(CASE), backend="cpu", out=made).run(progress=False)
    return made


def test_a_glance_needs_no_other_library(folder, monkeypatch):
    path = netcdf.frame(folder, 2)
    about = field_file.describe(path)
    with field_file.open_file(path) as (_, groups):
        wanted = [np.asarray(group["u"][...]) for group in groups]

    def refused(*_):
        raise AssertionError("the file was opened by netCDF's library")

    monkeypatch.setattr(field_file, "open_file", refused)
    found = read_header(path)
    assert (found.time, found.step, found.blocks) == (about["time"], 2, about["blocks"])
    stored = read_stored(path, list(found.blocks), "u")
    assert stored[0].dtype == np.float32
    np.testing.assert_array_equal(stored, wanted)
    assert read_stored(path, list(found.blocks), "mach") is None


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "fields_000001.nc"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(HiresxError, match=r"fields_000001.nc is not a whole field file"):
        read_header(path)
