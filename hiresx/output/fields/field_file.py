"""Field files in netCDF-4: the fields of one time, or a subset of them, with one group per block, the coordinates, the
scales and the case."""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx import __version__
from hiresx.device.fields import output_fields
from hiresx.equations import equations
from hiresx.errors import HiresxError
from hiresx.output.fields import block_neighbours, coordinate_file, derived
from hiresx.output.fields.differences import Sides
from hiresx.output.fields.field_reader import AXES, FieldReader, attribute, open_file
from hiresx.output.fields.field_reader import variables as stored_variables
from hiresx.output.saved import file_layout, library_files
from hiresx.output.saved.files import FileLayout, JointFile
from hiresx.output.saved.places import IndexBox

if TYPE_CHECKING:
    from hiresx.decomposition.levels import Levels

SUFFIX = ".nc"
_SCALES = (
    "Non-dimensional: rho_ref and c_ref are the ambient density and sound speed, T_ref the ambient temperature, L the "
    "length of the case; pressure is p / (rho_ref c_ref^2), T = gamma p / rho, time is t c_ref / L."
)


@dataclass
class FieldBlock:
    """One block of a field file. `x`, `y` and `z`: node coordinates in units of the length scale L. `state`: the
    variables by name. All arrays are in host memory, with the axes `[k, j, i]`.

    `gaps`: for samples along a line, the indexes of the points before which the line leaves the grid."""

    name: str
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    state: Mapping[str, np.ndarray]
    gaps: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of nodes of the block, (nk, nj, ni)."""
        return self.x.shape


@dataclass
class FieldFileContent:
    """The content of the field file `path`: time in units of L / c_ref (length scale over sound speed), step, the case
    with defaults filled in and the blocks. `part`: the description of the subset of the fields that the file contains,
    "" for whole fields."""

    path: Path
    time: float
    step: int
    case: dict[str, Any]
    blocks: list[FieldBlock]
    part: str = ""


def write(
    path: str | Path,
    blocks: Sequence[FieldBlock],
    time: float,
    step: int,
    case: Mapping[str, Any],
    variables: Iterable[str] | None = None,
    precision: str | None = None,
    part: str = "",
) -> Path:
    """Write variables of all blocks at one time to the netCDF-4 file `path`, and return this path. `time` (in units of
    L / c_ref, length scale over sound speed), `step`: the time of the fields and the number of time steps before it.

    `blocks`: objects with the attributes of `FieldBlock`. `variables`: their names, by default output.variables of the
    case. Variables that are not in the `state` of a block are computed from rho, u, v, w, p, which must then be in it.
    Coordinates are stored in double precision, variables in `precision` (fp64, fp32; by default the precision of rho).
    `case`: the case with defaults filled in. `part`: the description of the subset of the fields, "" for whole fields.
    The file `path` is replaced only when everything is written. The function may be called from a thread, as long as
    the arrays do not change. Files are not compressed: on 128^3 waves with 0.1 % of noise, zlib 1 with shuffle took 20
    times as long to save a third.

    Raises HiresxError, with the path, if it cannot be written, for an unknown variable and for invalid block names."""
    return Series(blocks, case, variables, precision, part).write(path, blocks, time, step)


class Series:
    """Writer of field files that have the same blocks, variables and case at many times. `variables`: their names.
    `precision`: that of the stored variables, "fp64" or "fp32". `part`: the description of the subset of the fields, ""
    for whole fields. Only names, shapes and gaps of the `blocks` are used here. `linked`: the name of a file in the
    same folder that has the coordinates (see `Coordinates`); if it is "", each file contains the coordinates.
    `joined_by`: the connections of the blocks as a JSON text (`block_neighbours.encode_connections`). `levels`: the
    levels of refinement of the blocks. Raises HiresxError for an unknown variable and invalid block names."""

    _numbers: tuple[tuple[str, str, str, str], ...] = (
        ("time", "f8", "time", "L / c_ref"),
        ("step", "i8", "time steps taken", "1"),
    )

    def __init__(
        self,
        blocks: Sequence[Any],
        case: Mapping[str, Any],
        variables: Iterable[str] | None = None,
        precision: str | None = None,
        part: str = "",
        linked: str = "",
        joined_by: str = "",
        levels: "Levels | None" = None,
    ):
        self._levels = levels
        self._names = list(case["output"]["variables"] if variables is None else variables)
        derived.check(self._names, scalars=equations(case).scalars)
        check_names([block.name for block in blocks])
        self._case, self._part, self._linked, self._joined_by = case, part, linked, joined_by
        self._axes = () if linked else AXES
        kinds: dict[str, np.dtype[Any]] = {"fp64": np.dtype("f8"), "fp32": np.dtype("f4")}
        self._kind = blocks[0].state["rho"].dtype if precision is None else kinds[precision]
        self._blocks = [(block.name, block.shape, block.gaps) for block in blocks]
        self._size = sum(math.prod(b.shape) for b in blocks) * sum(dtype.itemsize for _, dtype, _ in self._arrays())

    def write(self, path: str | Path, blocks: Sequence[FieldBlock], time: float, step: int) -> Path:
        """Write the field file of one time and return its path. `blocks`: the blocks with their arrays, in the order
        and with the names and shapes that the constructor was given. `time`: in units of L / c_ref (length scale over
        sound speed). `step`: number of time steps before this time. Raises HiresxError, with the path, if the file
        cannot be written."""
        file = JointFile(Path(path), self.measure_layout(path), os.getpid(), root=True)
        try:
            with file:
                file.frame({("", name): number for name, number in (("time", time), ("step", step))})
                for block in blocks:
                    for name, value in self._values(block):
                        file.put((block.name, name), IndexBox.all(block.shape), [value])
            file.publish()
        except BaseException:
            file.discard()
            raise
        return file.path

    def measure_layout(self, path: str | Path) -> FileLayout:
        """Return the layout of the files of this series, which is the position of each array in a file. It is measured
        on a temporary file in the folder of `path`. Raises HiresxError if that file cannot be written."""
        path = Path(path)
        with library_files.replacing(path, self._size, keep=False) as temporary:
            return file_layout.measure_layout(temporary, self._define, self._link)

    def _link(self, path: Path) -> None:
        """Link the closed file to the coordinates."""
        if self._linked:
            coordinate_file.link(path, [name for name, _, _ in self._blocks], self._linked)

    def _define(self, file: Any) -> dict[tuple[str, str], Any]:
        """Define everything but values. Returns the variables by (block, name); those of the file have the block ""."""
        file.set_fill_off()
        file.title = str(self._case.get("title", ""))
        file.source = f"hiresx {__version__}"
        file.scales = _SCALES
        self._describe(file)
        if self._part:
            file.part = self._part
        if self._joined_by:
            file.setncattr(block_neighbours.ATTRIBUTE, self._joined_by)
        found = {}
        for name, kind, long_name, units in self._numbers:
            found["", name] = _variable(file, name, kind, (), long_name=long_name, units=units)
        for index, (block, shape, gaps) in enumerate(self._blocks):
            group = file.createGroup(block)
            group.index = index
            if gaps:
                group.gaps = np.array(gaps, dtype=np.int64)
            if self._levels is not None:
                tile = self._levels.tiles[index]
                group.level, group.of = tile.level, self._blocks[tile.base][0]
                group.first = np.array([lo for lo, _ in tile.box], dtype=np.int64)
            for dimension, size in zip("kji", shape, strict=True):
                group.createDimension(dimension, size)
            for name, dtype, about in self._arrays():
                found[block, name] = _variable(group, name, dtype, "kji", **about)
        return found

    def _arrays(self) -> Iterator[tuple[str, np.dtype, dict[str, str]]]:
        """Yield name, type and attributes of the variables of a block."""
        for axis in self._axes:
            yield axis, np.dtype("f8"), {"long_name": f"{axis} coordinate of the nodes", "units": "L"}
        for name in self._names:
            entry = derived.about(name)
            yield name, self._kind, {"long_name": entry.long_name, "units": entry.scale, "coordinates": "time x y z"}

    def _describe(self, file: Any) -> None:
        """Write the attributes of this kind of file."""
        file.case = json.dumps(self._case, default=str)

    def _values(self, block: FieldBlock) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the arrays of a block by name, one variable at a time, to save memory."""
        for axis in self._axes:
            yield axis, getattr(block, axis)
        flow = derived.FlowState(block.x, block.y, block.z, block.state, self._case["gas"]["gamma"])
        for name in self._names:
            yield name, block.state[name] if name in block.state else derived.evaluate([name], flow)[name]


class Coordinates(Series):
    """Writer of the file with the coordinates of a series of field files, which link to it. `digest`: the SHA-256
    digest of the coordinates. `blocks`: the blocks with coordinates. `case`: the case with defaults filled in. `part`:
    the description of the subset of the fields, "" for whole fields."""

    _numbers = ()

    def __init__(self, blocks: Sequence[Any], case: Mapping[str, Any], part: str, digest: str):
        super().__init__(blocks, case, (), "fp64", part)
        self._digest = digest

    def _describe(self, file: Any) -> None:
        file.setncattr(coordinate_file.DIGEST, self._digest)


def _variable(group: Any, name: str, kind: Any, dimensions: Sequence[str], **attributes: str) -> Any:
    variable = group.createVariable(name, kind, tuple(dimensions))
    variable.set_auto_maskandscale(False)
    variable.setncatts(attributes)
    return variable


def read(path: str | Path, variables: Iterable[str] | None = None) -> FieldFileContent:
    """Return the content of the field file `path`: case, time, and the coordinates and variables of all blocks.
    `variables`: names of the variables to return, by default the stored ones. Variables that are not stored are
    computed from rho, u, v, w, p. Raises HiresxError if the file is missing, is not a field file, or lacks what a
    variable needs."""
    with open_file(path) as blocks:
        coordinate_file.check(Path(path))
        about = _describe(blocks)
        case, names = about["case"], about["variables"] if variables is None else list(variables)
        check_variables(names, about)
        near = neighbours(blocks)
        found = [
            _read_block(name, blocks[n], names, case["gas"]["gamma"], partial(near.of, n))
            for n, name in enumerate(blocks.names)
        ]
        return FieldFileContent(Path(path), blocks.time, blocks.step, case, found, about["part"])


def describe(path: str | Path) -> dict[str, Any]:
    """Return the header of the field file `path`, without its arrays, as a dictionary: time, step, case, names of the
    variables, their precision, blocks (name -> (nk, nj, ni)), part (description of the subset, "" for whole fields),
    and levels. `levels` has for each block name the level of refinement, the block of the grid, and the index i, j, k
    of its first node in that block; without refinement it is empty. Raises HiresxError if the file is missing or is not
    a field file."""
    with open_file(path) as blocks:
        return _describe(blocks)


def _describe(blocks: FieldReader) -> dict[str, Any]:
    names = stored_variables(blocks[0])
    return {
        "time": blocks.time,
        "step": blocks.step,
        "case": json.loads(attribute(blocks.file, "case")),
        "variables": names,
        "precision": "fp32" if names and blocks[0][names[0]].dtype == np.float32 else "fp64",
        "blocks": blocks.sizes,
        "part": attribute(blocks.file, "part"),
        "levels": {
            name: (int(np.ravel(group.attrs["level"])[0]), attribute(group, "of"), group.attrs["first"].tolist())
            for name in blocks.names
            if "level" in (group := blocks.file[name]).attrs
        },
    }


def check_variables(names: Iterable[str], about: Mapping[str, Any], where: str = "") -> None:
    """Raise HiresxError for the first of the variables `names` that a field file neither stores nor has the data to
    compute. `about`: the header of the file (`describe`): case, variables and others by name. `where`: the beginning of
    the error message."""
    stored = about["variables"]
    lacking = [name for name in derived.PRIMITIVE if name not in stored]
    found = [name for name, of in derived.VARIABLES.items() if not lacking and (of.local or not about["part"])]
    known = {*derived.VARIABLES, *output_fields(), *equations(about["case"]).scalars}
    for name in names:
        if name in stored:
            continue
        if name not in known:
            raise derived.unknown_variable(name, list(dict.fromkeys([*stored, *found])), where)
        if name not in derived.VARIABLES:
            raise HiresxError(f"{where}{name} was not stored", derived.how_to_store(name))
        if about["part"] and not derived.about(name).local:
            raise HiresxError(
                f"{where}{name} needs gradients, which do not follow from a part of the fields ({about['part']})",
                f'write "{name}" in the variables of this output.subset',
            )


def read_time(path: str | Path) -> float:
    """Return the time of the field file `path`, in units of L / c_ref (length scale over sound speed). Raises
    HiresxError if the file is missing or is not a field file."""
    with open_file(path) as blocks:
        return blocks.time


def read_stored(path: Path, blocks: Sequence[str], name: str) -> list[np.ndarray] | None:
    """Return a stored variable or coordinate of several blocks of a field file, one array (nk, nj, ni) for each block.
    `blocks`: names of the blocks. `name`: name of the variable or coordinate. Returns None if a block does not have it.
    Raises HiresxError if the file is missing or is not a field file."""
    with open_file(path) as reader:
        if not all(name in reader.file[block] for block in blocks):
            return None
        return [np.asarray(reader.file[block][name]) for block in blocks]


def neighbours(blocks: FieldReader) -> block_neighbours.Neighbours:
    """Return an object that reads values at the nodes beyond the faces of each block, from the neighbouring blocks in
    an open field file."""
    return block_neighbours.Neighbours(blocks, attribute(blocks.file, block_neighbours.ATTRIBUTE))


def _read_block(
    block: str, group: Any, wanted: Sequence[str], gamma: float, beyond: Callable[[str], Sides]
) -> FieldBlock:
    x, y, z = (group[axis][...] for axis in "xyz")
    stored = stored_variables(group)
    state = {name: group[name][...] for name in wanted if name in stored}
    missing = [name for name in wanted if name not in stored]
    if missing:
        primitive = {name: group[name][...] for name in derived.PRIMITIVE if name in stored}
        state |= derived.evaluate(missing, derived.FlowState(x, y, z, primitive, gamma, beyond=beyond))
    gaps = tuple(int(n) for n in np.atleast_1d(group.attrs.get("gaps", ())))
    return FieldBlock(block, x, y, z, {name: state[name] for name in wanted}, gaps)


def frames(directory: str | Path, name: str = "fields") -> dict[int, Path]:
    """Return the paths of the field files in a run directory, by step in ascending order. `name`: the name of a subset
    of the fields, by default the whole fields."""
    return list_by_step(directory, name, SUFFIX)


def list_by_step(directory: str | Path, name: str, suffix: str) -> dict[int, Path]:
    """Return the paths of the files <name>_<step><suffix> in a directory, by step in ascending order."""
    pattern = re.compile(rf"{re.escape(name)}_(\d{{6,}}){re.escape(suffix)}")
    found = ((pattern.fullmatch(path.name), path) for path in Path(directory).glob(f"{name}_*{suffix}"))
    return dict(sorted((int(match[1]), path) for match, path in found if match))


def last(directory: str | Path, name: str = "fields") -> Path:
    """Return the path of the latest field file in a run directory. `name`: the name of a subset of the fields, by
    default the whole fields. Raises HiresxError if there is none."""
    found = frames(directory, name)
    if not found and name != "fields":
        there = sorted({path.stem[: path.stem.rindex("_")] for path in Path(directory).glob("*_??????*.nc")})
        raise HiresxError(
            f'there is no output "{name}" ({name}_*.nc) in {directory}', f"there are: {', '.join(there) or 'none'}"
        )
    if not found:
        raise no_fields(directory)
    return found[max(found)]


def only_vtk(directory: str | Path) -> Path | None:
    """Return the path of the ParaView file fields.pvd in a run directory that has no netCDF field files. Returns None
    if there is no such file, or if netCDF files exist."""
    there = Path(directory) / "fields.pvd"
    return there if there.is_file() and not frames(directory) else None


def no_fields(directory: str | Path) -> HiresxError:
    """Return the error for a directory in which no netCDF field files were found, with a hint how to make them."""
    if (there := only_vtk(directory)) is not None:
        return HiresxError(
            f"{directory} holds fields of the format vtk only, which are not read here",
            f'open {there} in ParaView, or run the case with output.formats = ["netcdf", "vtk"]',
        )
    return HiresxError(
        f"there are no fields (fields_*.nc) in {directory}",
        "give the directory of a run that wrote fields, or make one: hiresx run NAME --out DIR",
    )


def check_names(names: list[str]) -> None:
    """Raise HiresxError if two of `names`, the names of blocks, are equal, or one is not valid for netCDF groups and
    files."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*", name):
            raise HiresxError(
                f'block name "{name}" cannot be the name of a netCDF group',
                "use letters, digits and _ . @ + - in the names of blocks",
            )
        if names.count(name) > 1:
            raise HiresxError(f'two blocks are called "{name}"', "give every block a name of its own")
