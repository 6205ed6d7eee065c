"""Files for ParaView of refined runs, read back and integrated by VTK itself: every place is shown once."""

import numpy as np
import pytest
from ranks import run_ranks
from test_level_quadrature import OPEN, PLANE, SPACE, WALLS, refined

from hiresx import Simulation
from hiresx.output.fields.formats import vtk
from hiresx.output.fields.level_cells import HIDDEN, cell_kinds

xml = pytest.importorskip("vtkmodules.vtkIOXML", reason="VTK is not installed: pip install '.[vtk]'")
from vtkmodules.util.numpy_support import vtk_to_numpy  # noqa: E402
from vtkmodules.vtkCommonCore import vtkPoints  # noqa: E402
from vtkmodules.vtkCommonDataModel import vtkPlane, vtkPolyData  # noqa: E402
from vtkmodules.vtkFiltersCore import vtkContourFilter, vtkCutter, vtkProbeFilter  # noqa: E402
from vtkmodules.vtkFiltersGeometry import vtkGeometryFilter  # noqa: E402
from vtkmodules.vtkFiltersParallel import vtkIntegrateAttributes  # noqa: E402

# Adjacent tiles that are no box, and a second level over both.
CORNER = [{"level": 1, "i": [8, 27], "j": [8, 27]}, {"level": 1, "i": [8, 15], "j": [8, 33]},
          {"level": 2, "i": [11, 14], "j": [25, 30]}]  # fmt: skip


def linear(x, y, z):
    return 1 + 0.5 * x - 0.25 * y + 0.125 * z, 0 * x, 0 * x, 0 * x, 1 + 0 * x


def written(out, n, regions, comm=None, **tables):
    case = refined(n, regions, WALLS, output={"formats": ["vtk"], "variables": ["rho"]}, **tables)
    arguments = {} if comm is None else {"comm": comm}
    simulation = Simulation(case, "cpu", out=out, initial=linear, **arguments)
    simulation.run(0, progress=False)
    return simulation


def opened(out, name="fields"):
    reader = xml.vtkXMLMultiBlockDataReader()
    reader.SetFileName(str(vtk.frame(out, 0, name)))
    reader.Update()
    return reader.GetOutput()


def integrals(data, extent):
    """Of 1 and of rho over what VTK shows of the blocks."""
    integrate = vtkIntegrateAttributes()
    integrate.SetInputDataObject(data)
    integrate.Update()
    found = integrate.GetOutput()
    size = found.GetCellData().GetArray(extent).GetValue(0)
    return size, found.GetPointData().GetArray("rho").GetValue(0)


@pytest.mark.parametrize("regions", [PLANE, CORNER], ids=["plane", "corner"])
def test_every_place_of_a_plane_counts_once(tmp_path, regions):
    simulation = written(tmp_path, (41, 36, 1), regions)
    assert simulation.solver.decomposition.levels.finest == 2
    data = opened(tmp_path)
    assert integrals(data, "Area") == pytest.approx((1.0, 1.125), abs=1e-12)
    # so it is in what ParaView draws: no cell of it lies under another one, or beside a gap
    geometry = vtkGeometryFilter()
    shown = []
    for n in range(data.GetNumberOfBlocks()):
        geometry.SetInputData(data.GetBlock(n))
        geometry.Update()
        points = vtk_to_numpy(geometry.GetOutput().GetPoints().GetData())
        corners = points[vtk_to_numpy(geometry.GetOutput().GetPolys().GetConnectivityArray()).reshape(-1, 4)]
        shown.append(corners)
    middles = np.concatenate(shown).mean(axis=1)
    sides = np.ptp(np.concatenate(shown), axis=1)
    assert (sides[:, 0] * sides[:, 1]).sum() == pytest.approx(1.0, abs=1e-12)
    assert len(np.unique(sides[:, 0].round(5))) == 3
    assert len(np.unique(middles.round(5), axis=0)) == len(middles)


def test_every_place_of_space_counts_once(tmp_path):
    written(tmp_path, (20, 18, 17), SPACE)
    data = opened(tmp_path)
    assert integrals(data, "Volume") == pytest.approx((1.0, 1.1875), abs=1e-12)
    cutter, plane = vtkCutter(), vtkPlane()
    plane.SetOrigin(0.42, 0.5, 0.5)
    plane.SetNormal(1, 0, 0)
    cutter.SetCutFunction(plane)
    cutter.SetInputDataObject(data)
    cutter.Update()
    assert integrals(cutter.GetOutputDataObject(0), "Area")[0] == pytest.approx(1.0, abs=1e-12)
    contour = vtkContourFilter()
    contour.SetInputDataObject(data)
    contour.SetInputArrayToProcess(0, 0, 0, 0, "rho")
    contour.SetValue(0, linear(0.5, 0.5, 0.5)[0])
    contour.Update()
    # x = 1/2 + (y - 1/2)/2 - (z - 1/2)/4 over the square of y and z
    area = np.linalg.norm((0.5, -0.25, 0.125)) / 0.5
    assert integrals(contour.GetOutputDataObject(0), "Area")[0] == pytest.approx(area, rel=1e-5)


@pytest.mark.parametrize("amplitude", [0.0, 0.02], ids=["boxes", "wavy"])
def test_every_place_of_a_plane_through_space_counts_once(tmp_path, amplitude):
    """Also of planes in faces of cells, at the end of a level, and oblique to grid lines."""
    planes = {"a": {"x": 0.42}, "b": {"x": 7 / 19}, "c": {"z": 0.47}, "d": {"y": 0.0}}
    table = {"formats": ["vtk"], "variables": ["rho"], "subset": [{"name": n, "plane": p} for n, p in planes.items()]}
    boundary = OPEN if amplitude else WALLS
    case = refined((20, 18, 17), SPACE, boundary, (amplitude,) * 3, output=table)
    simulation = Simulation(case, "cpu", out=tmp_path, initial=linear)
    simulation.run(0, progress=False)
    for name, plane in planes.items():
        ((axis, value),) = plane.items()
        place = {"x": 0.5, "y": 0.5, "z": 0.5, axis: value}
        area, rho = integrals(opened(tmp_path, name), "Area")
        # on wavy grids cells of two levels meet along chords of different lengths
        assert area == pytest.approx(1.0, abs=1e-3 if amplitude else 1e-12)
        assert rho == pytest.approx(linear(**place)[0], abs=2e-3 if amplitude else 1e-12)


def test_probes_of_vtk_find_the_finest_level_alone(tmp_path):
    simulation = written(tmp_path, (41, 36, 1), PLANE)
    data, kinds = opened(tmp_path), cell_kinds(simulation.solver.decomposition.levels)
    place = vtkPoints()
    place.InsertNextPoint(13.9 / 40, 13.9 / 35, 0)
    asked, probe = vtkPolyData(), vtkProbeFilter()
    asked.SetPoints(place)
    probe.SetInputData(asked)
    holders = []
    for n in range(data.GetNumberOfBlocks()):
        grid = data.GetBlock(n)
        assert vtk_to_numpy(grid.GetCellData().GetArray("vtkGhostType")).tolist() == kinds[n].ravel().tolist()
        probe.SetSourceData(grid)
        probe.Update()
        if probe.GetValidPoints().GetNumberOfTuples():
            holders.append(simulation.solver.decomposition.levels.tiles[n].level)
    assert holders == [2]
    assert vtk.describe(tmp_path / "vtk" / f"fields_000000_{simulation.blocks[0].name}.vts")["variables"] == [
        {"name": "rho", "components": 1, "type": "Float64"}
    ]


def test_kinds_of_cells_of_wavy_and_periodic_levels_add_up():
    """In cells of the finest level: those shown are all that the blocks of the grid have."""
    case = refined((40, 36, 1), [{"level": 2, "i": [36, 39], "j": [10, 20]}, {"level": 2, "i": [0, 3], "j": [10, 20]}])
    levels = Simulation(case, "cpu").solver.decomposition.levels
    kinds = cell_kinds(levels)
    shown = sum(
        int((found == 0).sum()) * 4 ** (2 - tile.level) for found, tile in zip(kinds, levels.tiles, strict=True)
    )
    assert shown == 39 * 35 * 16
    assert all((found == HIDDEN).any() for found in kinds)


@pytest.mark.slow
def test_ranks_write_the_same_files(tmp_path):
    written(tmp_path / "one", (41, 36, 1), PLANE)
    run_ranks(2, _write, tmp_path / "two", timeout=200)
    for path in sorted((tmp_path / "one" / "vtk").iterdir()):
        assert (tmp_path / "two" / "vtk" / path.name).read_bytes() == path.read_bytes()


def _write(comm, out):
    written(out, (41, 36, 1), PLANE, comm)
