"""Fields for ParaView and VisIt, in VTK's own XML files: nothing need be converted.

One .vts file per block (a curvilinear grid; arrays as they are in memory, behind 64-bit sizes, so that no array is too
large), one .vtm per time that puts the blocks together, one .pvd per run that puts the times together. VTK's HDF
format would do with one file, but has structured grids only since its version 2.7, and VisIt does not read it.
Format: VTK File Formats, https://docs.vtk.org/en/latest/vtk_file_formats/vtkxml_file_format.html.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output import files
from hiresx.output.fields import check_names, numbered

FOLDER = "vtk"
_TYPES = {"f4": "Float32", "f8": "Float64", "u1": "UInt8"}
_ORDER = {"little": "LittleEndian", "big": "BigEndian"}[sys.byteorder]
_HEAD = f'<?xml version="1.0"?>\n<VTKFile type="{{kind}}" version="1.0" byte_order="{_ORDER}" header_type="UInt64">\n'
# Bytes that are put together at a time.
_SLAB = 1 << 24
# Bytes within which the header of any of our files ends.
_HEADER = 1 << 22
_ENTRY = re.compile(r'<DataSet timestep="([^"]*)" file="([^"]*)"/>')
# vtkDataSetAttributes::HIDDENPOINT
_HIDDEN = 2


def frame(directory: str | Path, step: int, name: str = "fields") -> Path:
    """The file that stands for the fields of `step` of a run: <run>/vtk/<name>_<step>.vtm."""
    return Path(directory) / FOLDER / f"{name}_{step:06d}.vtm"


def frames(directory: str | Path, name: str = "fields") -> dict[int, Path]:
    """These files by step, in rising order."""
    return numbered(Path(directory) / FOLDER, name, ".vtm")


def series(directory: str | Path, name: str = "fields") -> Path:
    """The file that stands for all times of a run: <run>/<name>.pvd."""
    return Path(directory) / f"{name}.pvd"


def write(directory: str | Path, blocks: Sequence[Any], time: float, step: int, names: Sequence[str], **about) -> Path:
    """Write the variables `names` of every block (as `fields.FieldBlock`, whose `state` holds them) to the run's folder
    `vtk`, and add the time to the series.

    u, v and w become the vector `velocity` when all three are there. Points without a place (nan) are hidden. `about`:
    `name` of the output, if not "fields". The file of the time appears when everything it names is whole. Raises
    HiresxError that names the path when something cannot be written; then nothing is left of this time.
    """
    directory = Path(directory)
    check_names([block.name for block in blocks])
    target = frame(directory, step, **about)
    made: list[Path] = []
    try:
        target.parent.mkdir(exist_ok=True)
        for block in blocks:
            made.append(target.with_name(f"{target.stem}_{block.name}.vts"))
            with files.replacing(made[-1]) as temporary, temporary.open("wb") as file:
                _write_block(file, block, time, step, list(names))
        made.append(target)
        with files.replacing(target) as temporary:
            temporary.write_text(_together(blocks, target.stem, time, step))
        _append(directory, target, time, **about)
    except BaseException as error:
        # What makes the disk full is not left behind.
        for path in made:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise files.fault(made[-1] if made else target.parent, error) from None
        raise
    return target


def describe(path: str | Path) -> dict[str, Any]:
    """What a .vts, .vtm or .pvd file of ours holds, from its header: kind, and files, times, extent, variables.

    Raises HiresxError when it is missing, not whole or of another origin.
    """
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
            found["time"] = float(times[0])
        grid = root.find("StructuredGrid")
        if grid is not None:
            ends = [int(n) for n in grid.get("WholeExtent").split()]
            found["size"] = [ends[2 * d + 1] - ends[2 * d] + 1 for d in range(3)]
            arrays = grid.iter("DataArray")
            found["variables"] = [
                {"name": a.get("Name"), "components": int(a.get("NumberOfComponents")), "type": a.get("type")}
                for a in arrays
                if a.get("offset") is not None and a.get("Name") != "Points"
            ]
        else:
            found["files"] = [
                {key: value for key, value in entry.attrib.items() if key != "index"} for entry in root.iter("DataSet")
            ]
    except OSError as error:
        raise files.fault(path, error, "read") from None
    except (ElementTree.ParseError, UnicodeDecodeError, AttributeError, IndexError, TypeError, ValueError) as error:
        raise HiresxError(f"{path} is not a whole VTK file of hiresx ({error})", "take another one") from None
    return found


def clear(directory: str | Path, name: str = "fields", after: int = -1) -> None:
    """Remove the files of the steps beyond `after`, also from the series. Raises HiresxError if one cannot go."""
    gone = [path for step, path in frames(directory, name).items() if step > after]
    for path in gone:
        # The one that stands for the time goes first: it never names what is not there.
        files.remove([path, *path.parent.glob(f"{path.stem}_*.vts")])
    target = series(directory, name)
    try:
        kept = [(time, path) for time, path in _listed(target) if (target.parent / path).is_file()]
        if kept:
            _write_series(target, kept)
        else:
            target.unlink(missing_ok=True)
    except OSError as error:
        raise files.fault(target, error) from None


def _append(directory: Path, path: Path, time: float, name: str = "fields") -> None:
    target = series(directory, name)
    here = path.relative_to(directory).as_posix()
    others = [(t, p) for t, p in _listed(target) if p != here]
    _write_series(target, [*others, (repr(float(time)), here)])


def _listed(path: Path) -> list[tuple[str, str]]:
    """(time, file) of a series; none when it is not there or cannot be read: it is written anew then."""
    try:
        return _ENTRY.findall(path.read_text())
    except (OSError, UnicodeDecodeError):
        return []


def _write_series(path: Path, entries: Sequence[tuple[str, str]]) -> None:
    entries = sorted(entries, key=lambda entry: (float(entry[0]), entry[1]))
    lines = "".join(f'<DataSet timestep="{time}" file="{name}"/>\n' for time, name in entries)
    with files.replacing(path) as temporary:
        temporary.write_text(f"{_HEAD.format(kind='Collection')}<Collection>\n{lines}</Collection>\n</VTKFile>\n")


def _together(blocks: Sequence[Any], stem: str, time: float, step: int) -> str:
    lines = "".join(
        f'<DataSet index="{n}" name={quoteattr(block.name)} file={quoteattr(f"{stem}_{block.name}.vts")}/>\n'
        for n, block in enumerate(blocks)
    )
    return (
        f"{_HEAD.format(kind='vtkMultiBlockDataSet')}<vtkMultiBlockDataSet>\n{lines}</vtkMultiBlockDataSet>\n"
        f"{_moment(time, step)}</VTKFile>\n"
    )


def _moment(time: float, step: int) -> str:
    """Time and step as ParaView (TimeValue) and VisIt (TIME, CYCLE) look for them."""
    values = [("TimeValue", "Float64", repr(float(time))), ("TIME", "Float64", repr(float(time)))]
    values.append(("CYCLE", "Int32", str(step)))
    arrays = "".join(
        f'<DataArray type="{kind}" Name="{name}" NumberOfTuples="1" format="ascii">{value}</DataArray>\n'
        for name, kind, value in values
    )
    return f"<FieldData>\n{arrays}</FieldData>\n"


def _write_block(file: BinaryIO, block: Any, time: float, step: int, names: list[str]) -> None:
    shape = block.x.shape
    hidden = ~(np.isfinite(block.x) & np.isfinite(block.y) & np.isfinite(block.z))
    arrays = _arrays(block, names, hidden if hidden.any() else None)
    extent = " ".join(f"0 {n - 1}" for n in reversed(shape))
    place, described = 0, {}
    for name, (components, kind, _) in arrays.items():
        described[name] = (
            f'<DataArray type="{_TYPES[kind]}" Name="{name}" NumberOfComponents="{components}" '
            f'format="appended" offset="{place}"/>\n'
        )
        place += 8 + block.x.size * components * np.dtype(kind).itemsize
    scalars = next((name for name, (components, kind, _) in arrays.items() if components == 1 and kind != "u1"), None)
    active = f' Scalars="{scalars}"' if scalars else ""
    active += ' Vectors="velocity"' if "velocity" in arrays else ""
    points = described.pop("Points")
    header = (
        f'{_HEAD.format(kind="StructuredGrid")}<StructuredGrid WholeExtent="{extent}">\n{_moment(time, step)}'
        f'<Piece Extent="{extent}">\n<PointData{active}>\n{"".join(described.values())}</PointData>\n'
        f"<Points>\n{points}</Points>\n</Piece>\n</StructuredGrid>\n"
        f'<AppendedData encoding="raw">\n_'
    )
    file.write(header.encode())
    for components, kind, slabs in arrays.values():
        size = block.x.size * components * np.dtype(kind).itemsize
        file.write(np.uint64(size).tobytes())
        for slab in slabs:
            file.write(np.ascontiguousarray(slab, dtype=kind).data)
    file.write(b"\n</AppendedData>\n</VTKFile>\n")


def _arrays(block: Any, names: list[str], hidden: np.ndarray | None) -> dict[str, tuple[int, str, Iterator]]:
    """Components, type and slabs (along k) of what a block consists of, in VTK's order: i runs fastest."""

    def interleaved(parts: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        if hidden is not None:
            # A hidden point must be somewhere: where the others are, so that it does not widen the picture.
            parts = [np.where(hidden, part[~hidden][0], part) for part in parts]
        rows = max(1, _SLAB // (8 * len(parts) * max(parts[0][0].size, 1)))
        for first in range(0, parts[0].shape[0], rows):
            slabs = [part[first : first + rows] for part in parts]
            yield slabs[0] if len(slabs) == 1 else np.stack(slabs, axis=-1)

    def values(state: Mapping[str, np.ndarray], *which: str) -> Iterator[np.ndarray]:
        # Asked for when its turn comes: one variable in memory, not all.
        yield from interleaved([state[name] for name in which])

    kind = _kind(block, names)
    arrays: dict[str, tuple[int, str, Iterator]] = {}
    vector = ("u", "v", "w") if {"u", "v", "w"} <= set(names) else ()
    for name in names:
        if name in vector:
            arrays.setdefault("velocity", (3, kind, values(block.state, *vector)))
        else:
            arrays[name] = (1, kind, values(block.state, name))
    if hidden is not None:
        arrays["vtkGhostType"] = (1, "u1", iter([np.where(hidden, _HIDDEN, 0)]))
    arrays["Points"] = (3, "f8", interleaved([block.x, block.y, block.z]))
    return arrays


def _kind(block: Any, names: list[str]) -> str:
    # A state that computes its variables knows their type without computing one.
    dtype = getattr(block.state, "dtype", None) or block.state[names[0]].dtype
    return "f4" if dtype == np.float32 else "f8"
