"""Files for ParaView and VisIt, read back by VTK itself."""

import os
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest

from hiresx import HiresxError, load
from hiresx.device import backend
from hiresx.mpi.communicator import single_process
from hiresx.output.fields import derived
from hiresx.output.fields import field_file as fields
from hiresx.output.fields.field_file import FieldBlock
from hiresx.output.fields.field_output import FieldOutput
from hiresx.output.fields.formats import WrittenSeries, vtk
from hiresx.output.saved import files
from hiresx.output.saved.places import IndexBox, LocalRegion
from hiresx.solver import Solver

xml = pytest.importorskip("vtkmodules.vtkIOXML", reason="VTK is not installed: pip install '.[vtk]'")
from vtkmodules.util.numpy_support import vtk_to_numpy  # noqa: E402
from vtkmodules.vtkCommonDataModel import vtkCompositeDataSet, vtkMultiBlockDataSet  # noqa: E402
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline  # noqa: E402
from vtkmodules.vtkFiltersCore import vtkCellCenters  # noqa: E402
from vtkmodules.vtkFiltersGeometry import vtkStructuredGridGeometryFilter  # noqa: E402


def write(directory, blocks, time, step, names):
    """The files of one time as a run writes them; points that are not a number are hidden."""
    lost = [np.isnan(block.x) for block in blocks]
    pieces = [
        SimpleNamespace(name=b.name, shape=b.shape, incomplete=n.any(), kinds=None)
        for b, n in zip(blocks, lost, strict=True)
    ]
    precision = "fp32" if blocks[0].state[names[0]].dtype == np.float32 else "fp64"
    about = WrittenSeries("fields", pieces, blocks, names, precision, {}, "", single_process(), os.getpid())
    frame = vtk.VtkFrame(about, directory, time, step)
    with frame:
        for n, (block, missing) in enumerate(zip(blocks, lost, strict=True)):
            arrays = {"x": block.x, "y": block.y, "z": block.z, **{name: block.state[name] for name in names}}
            arrays = {name: np.where(missing, values[~missing][0], values) for name, values in arrays.items()}
            places = [arrays.pop(axis) for axis in "xyz"]
            frame.put(n, [LocalRegion(IndexBox.all(block.shape), *places, arrays, missing if missing.any() else None)])
    frame.publish()
    return frame.path


def read(path):
    """Blocks of a .vtm by name: (vtkStructuredGrid, points (nk, nj, ni, 3), arrays by name), and the reader."""
    errors = []
    reader = xml.vtkXMLMultiBlockDataReader()
    reader.AddObserver("ErrorEvent", lambda *_: errors.append("error"))
    reader.SetFileName(str(path))
    reader.Update()
    assert not errors and reader.GetErrorCode() == 0
    data = reader.GetOutput()
    assert isinstance(data, vtkMultiBlockDataSet)
    found = {}
    for n in range(data.GetNumberOfBlocks()):
        grid = data.GetBlock(n)
        x0, x1, y0, y1, z0, z1 = grid.GetExtent()
        shape = (z1 - z0 + 1, y1 - y0 + 1, x1 - x0 + 1)
        points = vtk_to_numpy(grid.GetPoints().GetData()).reshape(*shape, 3)
        about = grid.GetPointData()
        arrays = {}
        for m in range(about.GetNumberOfArrays()):
            values = vtk_to_numpy(about.GetArray(m))
            arrays[about.GetArrayName(m)] = values.reshape(shape + values.shape[1:])
        found[data.GetMetaData(n).Get(vtkCompositeDataSet.NAME())] = grid, points, arrays
    return found, reader


def twisted(name, nk, nj, ni, shift=0.0, dtype=np.float64):
    """A block that is neither straight nor symmetric, with a state that tells every node from every other."""
    z, y, x = np.meshgrid(np.linspace(0, 1, nk), np.linspace(0, 2, nj), np.linspace(0, 3, ni), indexing="ij")
    x, y, z = x + 0.1 * y * z + shift, y + 0.1 * np.sin(x), z - 0.05 * x * y
    number = np.arange(x.size, dtype=dtype).reshape(x.shape)
    state = {"rho": 1 + number, "u": 2 * number, "v": -number, "w": number**2, "p": 1 / (1 + number)}
    return FieldBlock(name, x, y, z, {key: value.astype(dtype) for key, value in state.items()})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_coordinates_and_values(tmp_path, dtype):
    blocks = [twisted("nozzle", 4, 5, 6, dtype=dtype), twisted("jet-2", 3, 7, 2, 5.0, dtype)]
    path = write(tmp_path, blocks, 0.25, 42, ["rho", "u", "v", "w", "p"])
    assert path == tmp_path / "vtk" / "fields_000042.vtm"
    found, _ = read(path)
    assert list(found) == ["nozzle", "jet-2"]
    for block in blocks:
        grid, points, arrays = found[block.name]
        assert grid.GetClassName() == "vtkStructuredGrid" and points.shape[:3] == block.x.shape
        np.testing.assert_array_equal(points, np.stack([block.x, block.y, block.z], axis=-1))
        assert list(arrays) == ["rho", "velocity", "p"]
        np.testing.assert_array_equal(arrays["rho"], block.state["rho"])
        np.testing.assert_array_equal(arrays["p"], block.state["p"])
        np.testing.assert_array_equal(arrays["velocity"], np.stack([block.state[n] for n in "uvw"], axis=-1))
        assert arrays["p"].dtype == dtype and points.dtype == np.float64
        assert grid.GetPointData().GetScalars().GetName() == "rho"
        assert grid.GetPointData().GetVectors().GetName() == "velocity"
        moment = grid.GetFieldData()
        assert moment.GetArray("TimeValue").GetValue(0) == moment.GetArray("TIME").GetValue(0) == 0.25
        assert moment.GetArray("CYCLE").GetValue(0) == 42


def test_cells_are_where_they_belong(tmp_path):
    block = twisted("main", 4, 5, 6)
    (found,) = read(write(tmp_path, [block], 0.0, 0, ["p"]))[0].values()
    centers = vtkCellCenters()
    centers.SetInputData(found[0])
    centers.Update()
    points = vtk_to_numpy(centers.GetOutput().GetPoints().GetData()).reshape(3, 4, 5, 3)
    corners = [block.x[k : k + 3, j : j + 4, i : i + 5] for k in (0, 1) for j in (0, 1) for i in (0, 1)]
    np.testing.assert_allclose(points[..., 0], sum(corners) / 8, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 8, 9), (1, 1, 12)])
def test_fewer_dimensions(tmp_path, shape):
    block = twisted("main", *shape)
    ((grid, points, arrays),) = read(write(tmp_path, [block], 0.0, 0, ["u", "p"]))[0].values()
    assert points.shape == (*shape, 3) and list(arrays) == ["u", "p"]
    np.testing.assert_array_equal(arrays["u"], block.state["u"])
    assert grid.GetNumberOfCells() == max(shape[1] - 1, 1) * (shape[2] - 1)


def test_large_arrays_are_written_in_slabs(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_SLAB", 2000)
    block = twisted("main", 9, 8, 7)
    ((_, points, arrays),) = read(write(tmp_path, [block], 0.0, 0, ["u", "v", "w", "rho"]))[0].values()
    np.testing.assert_array_equal(points[..., 1], block.y)
    np.testing.assert_array_equal(arrays["velocity"][..., 2], block.state["w"])
    np.testing.assert_array_equal(arrays["rho"], block.state["rho"])


def test_points_that_a_plane_misses_are_hidden(tmp_path):
    block = twisted("sheet", 1, 8, 9)
    lost = np.zeros(block.x.shape, dtype=bool)
    lost[0, :3, 4:] = True
    for values in (block.x, block.y, block.z, *block.state.values()):
        values[lost] = np.nan
    ((grid, points, arrays),) = read(write(tmp_path, [block], 0.0, 0, ["rho"]))[0].values()
    assert np.isfinite(points).all() and np.isfinite(arrays["rho"]).all()
    np.testing.assert_array_equal(points[~lost, 0], block.x[~lost])
    np.testing.assert_array_equal(arrays["vtkGhostType"] != 0, lost)
    surface = vtkStructuredGridGeometryFilter()
    surface.SetInputData(grid)
    surface.Update()
    whole = ~(lost[0, :-1, :-1] | lost[0, 1:, :-1] | lost[0, :-1, 1:] | lost[0, 1:, 1:])
    assert surface.GetOutput().GetNumberOfCells() == whole.sum()


def test_a_run_in_three_dimensions_with_its_blocks_and_derived_variables(tmp_path):
    """The jet of the bundled case, tiny: four curvilinear blocks, written while the run goes on."""
    small = [
        "grid.points_per_height=16",
        "grid.nk=8",
        "grid.boundary_layer_points=1",
        "grid.length=4.0",
        "grid.half_height=3.0",
        "grid.exit_spacing=0.08",
    ]
    settings = [
        'output.formats=["vtk"]',
        "output.every_steps=1",
        'output.variables=["rho","u","v","w","vorticity","mach"]',
    ]
    case = load("planar-jet", preset="three-d", overrides=[*small, *settings])
    solver = Solver(case, backend("cpu"))
    solver.initialize()
    output = FieldOutput(case, tmp_path)
    output.begin(solver, False)
    times = [solver.time]
    for _ in range(2):
        times.append(times[-1] + solver.step())
        output.after_step(solver)
    output.finish(solver)
    found, _ = read(vtk.frame(tmp_path, 2))
    assert list(found) == [block.name for block in solver.decomposition.blocks] and len(found) > 2
    for n, block in enumerate(solver.decomposition.blocks):
        _, points, arrays = found[block.name]
        state = solver.primitives(n)
        flow = derived.FlowState(block.x, block.y, block.z, state, case.gas.gamma)
        np.testing.assert_array_equal(points, np.stack([block.x, block.y, block.z], axis=-1))
        np.testing.assert_array_equal(arrays["rho"], state["rho"])
        np.testing.assert_array_equal(arrays["velocity"], np.stack([state[name] for name in "uvw"], axis=-1))
        for name in ("vorticity", "mach"):
            np.testing.assert_array_equal(arrays[name], derived.evaluate([name], flow)[name])
    # The series names every time, and every file it names can be read.
    entries = ElementTree.parse(tmp_path / "fields.pvd").getroot().findall("./Collection/DataSet")
    assert [float(entry.get("timestep")) for entry in entries] == times
    for entry in entries:
        assert list(read(tmp_path / entry.get("file"))[0]) == list(found)


@pytest.mark.parametrize(
    ("kind", "name"),
    [("vtkXMLStructuredGridReader", "fields_000003_main.vts"), ("vtkXMLMultiBlockDataReader", "fields_000003.vtm")],
)
def test_every_file_says_its_time(tmp_path, kind, name):
    write(tmp_path, [twisted("main", 2, 3, 4)], 0.75, 3, ["p"])
    reader = getattr(xml, kind)()
    reader.SetFileName(str(tmp_path / "vtk" / name))
    reader.UpdateInformation()
    steps = vtkStreamingDemandDrivenPipeline.TIME_STEPS()
    assert reader.GetOutputInformation(0).Get(steps, 0) == 0.75


def test_an_earlier_series_is_continued_or_cleared(tmp_path):
    for step in (0, 10, 20):
        write(tmp_path, [twisted("main", 2, 3, 4)], step / 10, step, ["p"])
    write(tmp_path, [twisted("main", 2, 3, 4)], 1.0, 10, ["p"])
    assert (tmp_path / "fields.pvd").read_text().count("DataSet") == 3
    vtk.clear(tmp_path, after=10)
    assert list(vtk.frames(tmp_path)) == [0, 10]
    assert (tmp_path / "fields.pvd").read_text().count("DataSet") == 2
    assert len(os.listdir(tmp_path / "vtk")) == 4
    vtk.clear(tmp_path)
    assert not (tmp_path / "fields.pvd").exists() and os.listdir(tmp_path / "vtk") == []


def test_faults(tmp_path):
    (tmp_path / "vtk").touch()
    with pytest.raises(HiresxError, match=r"cannot write .*vtk"):
        write(tmp_path, [twisted("a", 2, 3, 4)], 0.0, 0, ["p"])
    assert not fields.frames(tmp_path)
