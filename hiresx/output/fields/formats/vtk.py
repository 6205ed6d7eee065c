"""Fields in VTK's XML formats, which ParaView and VisIt read without conversion.

Each block is a .vts file (a curvilinear grid whose arrays are stored as in memory, with 64-bit sizes, so that arrays
may be of any size). A .vtm file for each time combines the blocks, and a .pvd file for each run combines the times.
VTK's HDF format would need only one file, but it supports structured grids only since its version 2.7, and VisIt does
not read it. Format: VTK File Formats, https://docs.vtk.org/en/latest/vtk_file_formats/vtkxml_file_format.html.
"""

import math
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields.field_file import list_by_step
from hiresx.output.fields.formats import WrittenSeries
from hiresx.output.fields.level_cells import cell_kinds
from hiresx.output.fields.selection import Piece
from hiresx.output.saved import files
from hiresx.output.saved.files import FileLayout, JointFile
from hiresx.output.saved.places import IndexBox, LocalRegion

FOLDER = "vtk"
_DTYPES = {kind: np.dtype(kind.lower()) for kind in ("Float32", "Float64", "UInt8")}
_ORDER = {"little": "LittleEndian", "big": "BigEndian"}[sys.byteorder]
_HEAD = f'<?xml version="1.0"?>\n<VTKFile type="{{kind}}" version="1.0" byte_order="{_ORDER}" header_type="UInt64">\n'
_TAIL = b"\n</AppendedData>\n</VTKFile>\n"
# Number of bytes in which the header of each file ends.
_HEADER = 1 << 22
_ENTRY = re.compile(r'<DataSet timestep="([^"]*)" file="([^"]*)"/>')
_VECTOR = ("u", "v", "w")
# The array by which VTK identifies points and cells that it does not show; vtkDataSetAttributes::HIDDENPOINT.
_GHOSTS, _HIDDEN = "vtkGhostType", 2
# The same array for cells, in the layout of a file.
_CELLS = "vtkGhostType of cells"


def frame(directory: str | Path, step: int, name: str = "fields") -> Path:
    """Return the path of the VTK file with the fields of one step: <directory>/vtk/<name>_<step>.vtm. `directory`: the
    run directory. `name`: the name of a subset of the fields, by default the whole fields."""
    return Path(directory) / FOLDER / f"{name}_{step:06d}.vtm"


def frames(directory: str | Path, name: str = "fields") -> dict[int, Path]:
    """Return the paths of the VTK files (.vtm) of one output in the run directory `directory`, with the number of the
    step as the key, in ascending order. `name`: the name of an `[[output.subset]]`, by default the whole fields."""
    return list_by_step(Path(directory) / FOLDER, name, ".vtm")


def series(directory: str | Path, name: str = "fields") -> Path:
    """Return the path of the ParaView file that lists the VTK files of all times: <directory>/<name>.pvd. `directory`:
    the run directory. `name`: the name of a subset of the fields, by default the whole fields."""
    return Path(directory) / f"{name}.pvd"


class VtkFrame:
    """Writer of the VTK files of one time, which the ranks of a communicator write together (see `JointFile`). `about`:
    the data of the output that do not change with time. `directory`: the run directory. `time`: in units of L / c_ref
    (length scale over sound speed). `step`: the number of time steps before it. It is a context, for one thread at a
    time. An OSError becomes a HiresxError with the path."""

    def __init__(self, about: WrittenSeries, directory: Path, time: float, step: int):
        self.path = frame(directory, step, about.name)
        self._directory, self._name, self._time, self._step = directory, about.name, time, step
        self._blocks, self._root = [piece.name for piece in about.pieces], about.comm.root
        self._vector = set(_VECTOR) <= set(about.variables)
        kind = {"fp32": "Float32", "fp64": "Float64"}[about.precision]
        self._levels, self._pieces = about.levels, about.pieces
        self._has_kinds = [self._levels is not None or piece.kinds is not None for piece in about.pieces]
        self._files = [
            JointFile(
                self.path.with_name(f"{self.path.stem}_{piece.name}.vts"),
                _describe(piece, about.variables, kind, self._vector, time, step, kinds),
                about.tag,
                about.comm.root,
            )
            for piece, kinds in zip(about.pieces, self._has_kinds, strict=True)
        ]
        self._hidden = [piece.incomplete for piece in about.pieces]
        self._published = 0

    def __enter__(self) -> "VtkFrame":
        with files.naming_errors(self.path.parent):
            self.path.parent.mkdir(exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the context; the files were opened and closed one by one."""

    def put(self, n: int, regions: Sequence[LocalRegion]) -> None:
        """Write the values that this rank has in block number `n` of the output. `regions`: the points of this block
        whose values the rank has, with coordinates and variables. Rank 0 calls this method for every block, even
        without regions."""
        if not (regions or self._root):
            return
        with self._files[n] as file:
            file.frame()
            if self._root and self._has_kinds[n]:
                kinds = self._kinds[n]
                file.put(_CELLS, IndexBox.all(kinds.shape), [kinds])
            for region in regions:
                for name, parts in self._arrays(n, region).items():
                    file.put(name, region.place, parts)

    @cached_property
    def _kinds(self) -> Sequence[Any]:
        """Return which cells of each piece are shown; None for a piece of which all are shown."""
        return [piece.kinds for piece in self._pieces] if self._levels is None else cell_kinds(self._levels)

    def _arrays(self, n: int, region: LocalRegion) -> dict[str, list[np.ndarray]]:
        arrays = {name: [values] for name, values in region.values.items()}
        if self._vector:
            arrays["velocity"] = [arrays.pop(name)[0] for name in _VECTOR]
        arrays["Points"] = [region.x, region.y, region.z]
        if self._hidden[n]:
            missing = np.zeros(region.place.shape, bool) if region.missing is None else region.missing
            arrays[_GHOSTS] = [np.where(missing, _HIDDEN, 0)]
        return arrays

    def publish(self) -> None:
        """Give the files of this time their final names, the .vtm file last, and add it to the .pvd file. Called on
        rank 0 after all ranks have left the `with` block of this object."""
        for file in self._files:
            self._published += 1
            file.publish(synced=False)
        with files.naming_errors(self.path):
            files.sync(self.path.parent)
            with files.replacing(self.path) as temporary:
                temporary.write_text(_multiblock(self._blocks, self.path.stem, self._time, self._step))
            _append(self._directory, self.path, self._time, self._name)

    def discard(self) -> None:
        """Remove all files of this time. Called instead of `publish`, or after `publish` failed."""
        gone = [file.path for file in self._files[: self._published]]
        for path in [self.path, *gone] if gone else ():
            with suppress(OSError):
                path.unlink(missing_ok=True)
        for file in self._files:
            file.discard()


Format = VtkFrame


def describe(path: str | Path) -> dict[str, Any]:
    """Return the content of a .vts, .vtm or .pvd file that HiResX wrote, from its header: `kind`, and, as far as the
    file has them, `time`, `size` (ni, nj, nk), `variables` and `files`. Raises HiresxError if the file `path` is
    missing, incomplete or not a file of HiResX."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            text = file.read(_HEADER).partition(b"<AppendedData")[0].decode()
        if not text.rstrip().endswith("</VTKFile>"):
            text += "</VTKFile>"
        root = ElementTree.fromstring(text)
        found: dict[str, Any] = {"kind": f"VTK file ({root.get('type')})"}
        times = [element.text for element in root.iter("DataArray") if element.get("Name") == "TimeValue"]
        if times:
            found["time"] = float(times[0] or "nan")
        grid = root.find("StructuredGrid")
        if grid is not None:
            ends = [int(n) for n in grid.get("WholeExtent", "").split()]
            found["size"] = [ends[2 * d + 1] - ends[2 * d] + 1 for d in range(3)]
            arrays = [a for data in grid.iter("PointData") for a in data.iter("DataArray")]
            found["variables"] = [
                {"name": a.get("Name"), "components": int(a.get("NumberOfComponents", "1")), "type": a.get("type")}
                for a in arrays
                if a.get("offset") is not None
            ]
        else:
            found["files"] = [
                {key: value for key, value in entry.attrib.items() if key != "index"} for entry in root.iter("DataSet")
            ]
    except OSError as error:
        raise files.io_error(path, error, "read") from None
    except (ElementTree.ParseError, UnicodeDecodeError, AttributeError, IndexError, TypeError, ValueError) as error:
        raise HiresxError(f"{path} is not a whole VTK file of hiresx ({error})", "take another one") from None
    return found


def clear(directory: str | Path, name: str = "fields", after: int = -1) -> None:
    """Remove the VTK files of one output in the run directory `directory` for steps later than `after`, and their
    entries in the .pvd file. `name`: the name of an `[[output.subset]]`, by default the whole fields. Raises
    HiresxError if a file cannot be removed."""
    gone = [path for step, path in frames(directory, name).items() if step > after]
    for path in gone:
        # The .vtm file is removed first, so that it never names a missing file.
        files.remove([path, *path.parent.glob(f"{path.stem}_*.vts")])
    target = series(directory, name)
    with files.naming_errors(target):
        kept = [(time, path) for time, path in _read_series(target) if (target.parent / path).is_file()]
        if kept:
            _write_series(target, kept)
        else:
            target.unlink(missing_ok=True)


def _append(directory: Path, path: Path, time: float, name: str) -> None:
    target = series(directory, name)
    here = path.relative_to(directory).as_posix()
    others = [(t, p) for t, p in _read_series(target) if p != here]
    _write_series(target, [*others, (repr(float(time)), here)])


def _read_series(path: Path) -> list[tuple[str, str]]:
    """Return (time, file) of the entries of a series. The result is empty if the file is absent or cannot be read,
    since it is then written anew."""
    try:
        return _ENTRY.findall(path.read_text())
    except (OSError, UnicodeDecodeError):
        return []


def _write_series(path: Path, entries: Sequence[tuple[str, str]]) -> None:
    entries = sorted(entries, key=lambda entry: (float(entry[0]), entry[1]))
    lines = "".join(f'<DataSet timestep="{time}" file="{name}"/>\n' for time, name in entries)
    with files.replacing(path) as temporary:
        temporary.write_text(f"{_HEAD.format(kind='Collection')}<Collection>\n{lines}</Collection>\n</VTKFile>\n")


def _multiblock(blocks: Sequence[str], stem: str, time: float, step: int) -> str:
    lines = "".join(
        f'<DataSet index="{n}" name={quoteattr(block)} file={quoteattr(f"{stem}_{block}.vts")}/>\n'
        for n, block in enumerate(blocks)
    )
    return (
        f"{_HEAD.format(kind='vtkMultiBlockDataSet')}<vtkMultiBlockDataSet>\n{lines}</vtkMultiBlockDataSet>\n"
        f"{_time_fields(time, step)}</VTKFile>\n"
    )


def _time_fields(time: float, step: int) -> str:
    """Return time and step in the form that ParaView (TimeValue) and VisIt (TIME, CYCLE) read."""
    values = [("TimeValue", "Float64", repr(float(time))), ("TIME", "Float64", repr(float(time)))]
    values.append(("CYCLE", "Int32", str(step)))
    arrays = "".join(
        f'<DataArray type="{kind}" Name="{name}" NumberOfTuples="1" format="ascii">{value}</DataArray>\n'
        for name, kind, value in values
    )
    return f"<FieldData>\n{arrays}</FieldData>\n"


def _describe(
    block: Piece, names: Sequence[str], kind: str, vector: bool, time: float, step: int, hides: bool
) -> FileLayout:
    """Return the header of the file of a block, and the positions of its arrays, each preceded by its size. `hides`:
    whether some of its cells may be hidden."""
    shape = tuple(block.shape)
    kinds: dict[str, tuple[int, str]] = {}
    for name in names:
        inside = vector and name in _VECTOR
        kinds["velocity" if inside else name] = (3 if inside else 1), kind
    if block.incomplete:
        kinds[_GHOSTS] = 1, "UInt8"
    kinds["Points"] = 3, "Float64"
    shapes = dict.fromkeys(kinds, shape)
    if hides:
        kinds[_CELLS], shapes[_CELLS] = (1, "UInt8"), tuple(max(n - 1, 1) for n in shape)
    bytes_of = {
        name: math.prod(shapes[name]) * components * _DTYPES[kind].itemsize
        for name, (components, kind) in kinds.items()
    }
    place, described = 0, {}
    for name, (components, kind) in kinds.items():
        described[name] = (
            f'<DataArray type="{kind}" Name="{_GHOSTS if name == _CELLS else name}" NumberOfComponents="{components}" '
            f'format="appended" offset="{place}"/>\n'
        )
        place += 8 + bytes_of[name]
    scalars = next((name for name, (components, kind) in kinds.items() if components == 1 and kind != "UInt8"), None)
    active = f' Scalars="{scalars}"' if scalars else ""
    active += ' Vectors="velocity"' if "velocity" in kinds else ""
    extent = " ".join(f"0 {n - 1}" for n in reversed(shape))
    at = described.pop("Points")
    cells = f"<CellData>\n{described.pop(_CELLS)}</CellData>\n" if hides else ""
    header = (
        f'{_HEAD.format(kind="StructuredGrid")}<StructuredGrid WholeExtent="{extent}">\n{_time_fields(time, step)}'
        f'<Piece Extent="{extent}">\n<PointData{active}>\n{"".join(described.values())}</PointData>\n{cells}'
        f"<Points>\n{at}</Points>\n</Piece>\n</StructuredGrid>\n"
        f'<AppendedData encoding="raw">\n_'
    ).encode()
    between, arrays, end = [], {}, 0
    for name, (components, kind) in kinds.items():
        content = header + np.uint64(bytes_of[name]).tobytes()
        between.append((end, content))
        end += len(content)
        arrays[name] = end, _DTYPES[kind], shapes[name] + (components,) * (components > 1)
        end += bytes_of[name]
        header = b""
    between.append((end, _TAIL))
    return FileLayout(end + len(_TAIL), between, arrays)
