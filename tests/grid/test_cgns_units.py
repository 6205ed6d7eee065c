"""Units of a CGNS file are read and applied; what has none stays as it is."""

import cgns_files as cgns
import h5py
import numpy as np
import pytest
from adf_files import from_hdf5
from arrangements import shaken

from hiresx.case.grid_file import GridFile
from hiresx.errors import HiresxError
from hiresx.grid import build

BLOCK = shaken((12, 11, 10)).blocks[0]
FACTORS = {"Meter": 1, "Centimeter": 0.01, "Millimeter": 0.001, "Foot": 0.3048, "Inch": 0.0254}


def written(path, mark, form="hdf5", periodic=False):
    """A file of BLOCK; `mark(base, zone, coordinates)` adds units."""
    with cgns.begin(path) as file:
        base = cgns.base(file, 3)
        zone = cgns.zone(base, BLOCK, "zone", 3)
        mark(base, zone, zone["GridCoordinates"])
    if form == "adf":
        from_hdf5(path, path.with_suffix(".adf"), "A", ">")
        return path.with_suffix(".adf")
    return path


def factor(path, **keys) -> float:
    block = build(GridFile(file=str(path), **keys)).blocks[0]
    ratio = [getattr(block, c).ravel()[1:] / getattr(BLOCK, c).ravel()[1:] for c in "xyz"]
    np.testing.assert_allclose(ratio, ratio[0][0], rtol=1e-14)
    return ratio[0][0]


@pytest.mark.parametrize("unit", FACTORS)
@pytest.mark.parametrize("form", ["hdf5", "adf"])
def test_every_unit_of_length(tmp_path, caplog, unit, form):
    caplog.set_level("INFO")
    path = written(tmp_path / "g.cgns", lambda base, zone, nodes: cgns.units(base, unit, "Dimensional"), form)
    assert factor(path) == pytest.approx(FACTORS[unit], rel=1e-15)
    assert (f"coordinates in the unit {unit} scaled by {FACTORS[unit]:g} to metres" in caplog.text) == (unit != "Meter")
    assert factor(path, scale=2.0) == pytest.approx(2 * FACTORS[unit], rel=1e-15)


def test_what_is_nearest_counts(tmp_path):
    def mark(base, zone, nodes):
        cgns.units(base, "Foot", "Dimensional")
        cgns.units(zone, "Inch")
        cgns.units(nodes, "Millimeter")

    assert factor(written(tmp_path / "g.cgns", mark)) == pytest.approx(0.001)

    def on_arrays(base, zone, nodes):
        cgns.units(base, "Foot")
        for axis in "XYZ":
            cgns.units(nodes[f"Coordinate{axis}"], "Inch")

    assert factor(written(tmp_path / "a.cgns", on_arrays)) == pytest.approx(0.0254)


@pytest.mark.parametrize("kind", ["NormalizedByUnknownDimensional", "NondimensionalParameter"])
def test_lengths_without_dimension_stay(tmp_path, kind):
    assert factor(written(tmp_path / "g.cgns", lambda base, zone, nodes: cgns.units(base, "Inch", kind))) == 1


def test_normalized_lengths_are_converted(tmp_path):
    def mark(base, zone, nodes):
        cgns.units(base, "Inch", "NormalizedByDimensional")
        for axis in "XYZ":
            array = nodes[f"Coordinate{axis}"]
            cgns.node(array, "DataConversion", "DataConversion_t", np.array([3.0, 0.0]))

    assert factor(written(tmp_path / "g.cgns", mark)) == pytest.approx(3 * 0.0254)


def test_units_that_there_are_not(tmp_path, caplog):
    caplog.set_level("INFO")
    for unit in ("Null", "UserDefined"):
        path = written(tmp_path / f"{unit}.cgns", lambda base, zone, nodes, unit=unit: cgns.units(base, unit))
        assert factor(path) == 1
    assert caplog.text.count("a unit that the file does not name") == 1
    path = written(tmp_path / "g.cgns", lambda base, zone, nodes: cgns.units(base, "Furlong"))
    with pytest.raises(HiresxError, match='DimensionalUnits: "Furlong" is no unit of length'):
        factor(path)


def test_what_is_no_length(tmp_path):
    def mark(base, zone, nodes):
        cgns.node(nodes["CoordinateX"], "DimensionalExponents", "DimensionalExponents_t", np.array([0.0, 2, 0, 0, 0]))

    with pytest.raises(HiresxError, match="is no length"):
        factor(written(tmp_path / "g.cgns", mark))


def test_periods_have_the_units_of_the_zone(tmp_path):
    """A block that goes on behind its last face, in inches."""
    n = 9
    z, y, x = np.meshgrid(*[np.arange(m) / 4 for m in (7, 8, n)], indexing="ij")
    block = type(BLOCK)("zone", x, y, z)
    with cgns.begin(tmp_path / "g.cgns") as file:
        base = cgns.base(file, 3)
        cgns.units(base, "Inch", "Dimensional")
        zone = cgns.zone(base, block, "zone", 3)
        low, high = ([1, 1, 1], [1, 8, 7]), ([n, 1, 1], [n, 8, 7])
        for name, own, other, sign in (("a", low, high, 1), ("b", high, low, -1)):
            cgns.one_to_one(zone, name, "zone", own, other, [1, 2, 3], {"Translation": [sign * 2.0, 0.0, 0.0]})
    grid = build(GridFile(file=str(tmp_path / "g.cgns")))
    shifts = sorted(c.translation[0] for c in grid.connections)
    np.testing.assert_allclose(shifts, [-2 * 0.0254, 2 * 0.0254], rtol=1e-14)


def test_large_files_too(tmp_path, monkeypatch):
    from hiresx.grid import stored_coordinates

    path = written(tmp_path / "g.cgns", lambda base, zone, nodes: cgns.units(base, "Inch"))
    monkeypatch.setattr(stored_coordinates, "LARGE", 0)
    assert build(GridFile(file=str(path))).blocks[0].is_stored
    assert factor_of_stored(path) == pytest.approx(0.0254)


def factor_of_stored(path) -> float:
    block = build(GridFile(file=str(path))).blocks[0]
    with h5py.File(path) as file:
        there = file["Base/zone/GridCoordinates/CoordinateX/ data"][()]
    return float(block.x[3, 4, 5] / there[3, 4, 5])


def test_an_offset_is_in_the_unit_too(tmp_path):
    """metres = (scale * stored + offset) * unit"""

    def mark(base, zone, nodes):
        cgns.units(base, "Inch", "NormalizedByDimensional")
        for axis in "XYZ":
            cgns.node(nodes[f"Coordinate{axis}"], "DataConversion", "DataConversion_t", np.array([3.0, 1.5]))

    block = build(GridFile(file=str(written(tmp_path / "g.cgns", mark)))).blocks[0]
    for axis in "xyz":
        wanted = (3 * getattr(BLOCK, axis) + 1.5) * 0.0254
        np.testing.assert_allclose(getattr(block, axis), wanted, rtol=1e-13, atol=1e-15)
