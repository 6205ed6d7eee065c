"""What keeps the netCDF and HDF5 libraries from writing a file is told as what it is, and nothing else is lost."""

import errno
import os

import numpy as np
import pytest
from file_limits import largest_file
from plotted import block, case, mesh

from hiresx.errors import HiresxError
from hiresx.output.fields import field_file as fields
from hiresx.output.saved import library_files
from hiresx.post.result import Result, dataset
from hiresx.scaling import store

BLOCKS = [block("main", *mesh(np.linspace(0, 1, 30), np.linspace(0, 1, 20)), 1.0)]


def one_file(path):
    fields.Series(BLOCKS, case("Box")).write(path, BLOCKS, 0.0, 0)


def layout(path):
    fields.Series(BLOCKS, case("Box"), linked="grid.nc").measure_layout(path)


def coordinates(path):
    fields.Coordinates(BLOCKS, case("Box"), "", "digest").measure_layout(path)


def result(path):
    values = np.zeros(4000)
    Result("values", {}, dataset({"p": ("x", values, "p", "1")}, {}), lambda: None).write(path)


def scaling(path):
    store.write_netcdf(path, {"mode": "strong", "case": "box", "hardware": "x" * 9000, "rows": []})


WRITERS = [one_file, layout, coordinates, result, scaling]


@pytest.mark.parametrize("size", [0, 10, 200, 3000, 12_000, 16_384])
@pytest.mark.parametrize("write", WRITERS)
def test_a_limit_on_the_size_of_files(tmp_path, write, size):
    if size == 0:
        (tmp_path / "f.nc").write_text("what was there before")
    with largest_file(size), pytest.raises(HiresxError) as caught:
        write(tmp_path / "f.nc")
    assert caught.value.message == f"cannot write {tmp_path / 'f.nc'}: the file exceeds the largest size allowed here"
    assert "ulimit -f" in caught.value.hint
    assert os.listdir(tmp_path) == (["f.nc"] if size == 0 else [])
    assert size or (tmp_path / "f.nc").read_text() == "what was there before"
    write(tmp_path / "f.nc")  # without the limit nothing is in the way


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the disk quota is used up"), (errno.EROFS, "read-only")],
)
@pytest.mark.parametrize("of_library", [RuntimeError("NetCDF: HDF error"), PermissionError(13, "Permission denied"),
                                        BlockingIOError(11, "unable to lock file")])  # fmt: skip
def test_a_full_disk_and_a_quota(tmp_path, monkeypatch, number, said, of_library):
    def refused(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(library_files.os, "posix_fallocate", refused)
    with pytest.raises(HiresxError, match=said) as caught, library_files.replacing(tmp_path / "f.nc") as temporary:
        temporary.write_bytes(b"begun")
        raise of_library
    assert str(tmp_path / "f.nc") in caught.value.message and not os.listdir(tmp_path)


def test_what_is_no_fault_of_the_disk_is_told_as_it_was(tmp_path):
    written = library_files.replacing(tmp_path / "f.nc")
    with pytest.raises(HiresxError, match=r"cannot write .*f\.nc: NetCDF: HDF error"), written:
        raise RuntimeError("NetCDF: HDF error")
    assert not os.listdir(tmp_path)
