"""Field files are read by h5py: what it finds there is what netCDF's library finds."""

import json

import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

import netCDF4
import numpy as np

from hiresx import Case, HiresxError, Simulation
from hiresx.output.fields import field_file
from hiresx.output.fields.field_file import read_stored
from hiresx.output.fields.formats import netcdf
from hiresx.output.show.describe import describe

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


def test_h5py_reads_what_the_library_of_netcdf_reads(folder):
    path = netcdf.frame(folder, 2)
    about = field_file.describe(path)
    with netCDF4.Dataset(path) as file:
        (group,) = file.groups.values()
        assert (about["time"], about["step"]) == (float(file["time"][...]), 2)
        assert about["case"] == json.loads(file.case)
        assert about["variables"] == [name for name in group.variables if name not in ("x", "y", "z")]
        assert about["blocks"] == {group.name: group["u"].shape}
        wanted = np.asarray(group["u"][...])
    (stored,) = read_stored(path, list(about["blocks"]), "u")
    assert stored.dtype == np.float32 and about["precision"] == "fp32"
    np.testing.assert_array_equal(stored, wanted)
    assert read_stored(path, list(about["blocks"]), "mach") is None


def test_the_library_of_netcdf_opens_no_field_file(folder, monkeypatch):
    """It reads the headers of all blocks: a minute of a few thousand."""
    monkeypatch.setattr(netCDF4, "Dataset", lambda *_: pytest.fail("opened by netCDF's library"))
    path = netcdf.frame(folder, 2)
    assert field_file.read_time(path) == field_file.describe(path)["time"] == field_file.read(path).time


def test_an_attribute_without_text_is_empty(folder):
    assert describe(netcdf.frame(folder, 2))["title"] == ""


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "fields_000001.nc"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(HiresxError, match=r"fields_000001.nc is not a whole field file"):
        field_file.describe(path)
