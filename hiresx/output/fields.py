"""Fields in netCDF-4: one group per block, coordinates, scales and the case inside; one file per time."""

import errno
import json
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output import derived, files

_NAME = "fields_{step:06d}.nc"
_PATTERN = re.compile(r"fields_(\d{6,})\.nc")
_SCALES = (
    "Non-dimensional: rho_ref and c_ref are the ambient density and sound speed, T_ref the ambient temperature, L the "
    "length of the case; pressure is p / (rho_ref c_ref^2), T = gamma p / rho, time is t c_ref / L."
)
# The HDF5 library of the netCDF4 wheels is not safe for two threads at a time.
_library = threading.Lock()


@dataclass
class FieldBlock:
    """One block: node coordinates x, y, z and the variables of `state` by name, all (nk, nj, ni) host arrays."""

    name: str
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    state: dict[str, np.ndarray]


@dataclass
class Fields:
    """What a field file holds: time in L / c_ref, step, the resolved case and the blocks."""

    path: Path
    time: float
    step: int
    case: dict[str, Any]
    blocks: list[FieldBlock]


def write(
    path: str | Path,
    blocks: Sequence[FieldBlock],
    time: float,
    step: int,
    case: Mapping[str, Any],
    variables: Iterable[str] | None = None,
) -> Path:
    """Write `variables` (default: output.variables of the case) of every block to the netCDF-4 file `path`.

    `blocks`: anything with the attributes of `FieldBlock`, whose `state` holds rho, u, v, w, p; the other variables are
    computed from them. Coordinates are stored in double precision, variables in that of rho. `case` is the resolved
    case. The file appears complete or not at all. Safe to call from a thread, as long as the arrays do not change.
    Not compressed: on 128^3 waves with 0.1 % of noise, zlib 1 with shuffle took 20 times as long to save a third.

    Raises HiresxError that names the path when it cannot be written, for an unknown variable and for bad block names.
    """
    path = Path(path)
    names = list(case["output"]["variables"] if variables is None else variables)
    derived.check(names)
    _check_names([block.name for block in blocks])
    try:
        _require_space(path, sum(b.x.size * (3 * 8 + len(names) * b.state["rho"].dtype.itemsize) for b in blocks))
        with files.replacing(path) as temporary:
            try:
                with _library:
                    _write(temporary, blocks, time, step, case, names)
            except RuntimeError as error:
                # The library reports neither a full disk nor a limit, only "HDF error".
                raise HiresxError(
                    f"cannot write {path}: {error}",
                    f"most often the disk is full or a limit is reached; {_free(path)}; choose another with --out DIR",
                ) from None
    except OSError as error:
        raise files.fault(path, error) from None
    return path


def _write(path: Path, blocks: Sequence[FieldBlock], time: float, step: int, case: Mapping, names: list[str]) -> None:
    from importlib.metadata import version

    import netCDF4

    with netCDF4.Dataset(path, "w", format="NETCDF4") as file:
        file.set_fill_off()
        file.title = str(case.get("title", ""))
        file.source = f"hiresx {version('hiresx')}"
        file.scales = _SCALES
        file.case = json.dumps(case, default=str)
        for name, value, kind, long_name, units in (
            ("time", time, "f8", "time", "L / c_ref"),
            ("step", step, "i8", "time steps taken", "1"),
        ):
            scalar = file.createVariable(name, kind)
            scalar.long_name, scalar.units = long_name, units
            scalar[...] = value
        for index, block in enumerate(blocks):
            group = file.createGroup(block.name)
            group.index = index
            for dimension, size in zip("kji", block.x.shape, strict=True):
                group.createDimension(dimension, size)
            for axis in "xyz":
                _put(group, axis, getattr(block, axis), "f8", f"{axis} coordinate of the nodes", "L")
            flow = derived.Flow(block.x, block.y, block.z, block.state, case["gas"]["gamma"])
            for name in names:
                # One variable at a time, written before the next is computed: a block's worth of memory, not of all.
                value = block.state[name] if name in block.state else derived.evaluate([name], flow)[name]
                variable = derived.VARIABLES[name]
                put = _put(group, name, value, block.state["rho"].dtype, variable.long_name, variable.scale)
                put.coordinates = "time x y z"


def _put(group, name: str, value: np.ndarray, kind, long_name: str, units: str):
    variable = group.createVariable(name, kind, ("k", "j", "i"))
    variable.set_auto_maskandscale(False)
    variable.long_name, variable.units = long_name, units
    variable[...] = value
    return variable


def read(path: str | Path, variables: Iterable[str] | None = None) -> Fields:
    """Read a field file. `variables`: the names wanted, those not stored are computed; default: what is stored.

    Raises HiresxError when the file is missing, is not a field file, or cannot give a variable.
    """
    with _opened(path) as (file, groups):
        case = json.loads(file.case)
        blocks = [_read_block(group, variables, case["gas"]["gamma"]) for group in groups]
        return Fields(Path(path), float(file["time"][...]), int(file["step"][...]), case, blocks)


def describe(path: str | Path) -> dict[str, Any]:
    """What a field file holds, without its arrays: time, step, case, variables (names), blocks (name -> (nk, nj, ni)).

    Raises HiresxError when the file is missing or is not a field file.
    """
    with _opened(path) as (file, groups):
        return {
            "time": float(file["time"][...]),
            "step": int(file["step"][...]),
            "case": json.loads(file.case),
            "variables": [name for name in groups[0].variables if name not in ("x", "y", "z")],
            "blocks": {group.name: group["x"].shape for group in groups},
        }


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[Any, list]]:
    """The netCDF file and its groups in the order of the blocks; its faults are named by path."""
    import netCDF4

    path = Path(path)
    try:
        with _library, netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            yield file, sorted(file.groups.values(), key=lambda group: group.index)
    except HiresxError as error:
        raise HiresxError(f"{path}: {error.message}", error.mend) from None
    except FileNotFoundError as error:
        raise files.fault(path, error, "read") from None
    except (OSError, AttributeError, LookupError, ValueError, RuntimeError) as error:
        raise HiresxError(f"{path} is not a whole field file ({error})", "give one that hiresx run wrote") from None


def _read_block(group, wanted: Iterable[str] | None, gamma: float) -> FieldBlock:
    x, y, z = (group[axis][...] for axis in "xyz")
    stored = [name for name in group.variables if name not in ("x", "y", "z")]
    wanted = stored if wanted is None else list(wanted)
    derived.check(wanted, "variables")
    state = {name: group[name][...] for name in wanted if name in stored}
    missing = [name for name in wanted if name not in stored]
    if missing:
        primitive = {name: group[name][...] for name in derived.PRIMITIVE if name in stored}
        state |= derived.evaluate(missing, derived.Flow(x, y, z, primitive, gamma))
    return FieldBlock(group.name, x, y, z, {name: state[name] for name in wanted})


def frame(directory: str | Path, step: int) -> Path:
    """Where the fields of `step` are kept in a run directory: fields_<step, six digits or more>.nc."""
    return Path(directory) / _NAME.format(step=step)


def frames(directory: str | Path) -> dict[int, Path]:
    """The field files of a run directory by step, in rising order."""
    found = ((_PATTERN.fullmatch(path.name), path) for path in Path(directory).glob("fields_*.nc"))
    return dict(sorted((int(match[1]), path) for match, path in found if match))


def last(directory: str | Path) -> Path:
    """The latest field file of a run directory. Raises HiresxError when there is none."""
    found = frames(directory)
    if not found:
        raise HiresxError(
            f"there are no fields (fields_*.nc) in {directory}",
            "give the directory of a run, or make one: hiresx run NAME --out DIR",
        )
    return found[max(found)]


def clear(directory: str | Path) -> int:
    """Remove the field files that an earlier run left in `directory`; returns how many.

    A new run there would otherwise be mixed up with the old one's later steps. Raises HiresxError if one cannot go.
    """
    found = frames(directory)
    for path in found.values():
        try:
            path.unlink()
        except OSError as error:
            raise files.fault(path, error, "remove") from None
    return len(found)


def _check_names(names: list[str]) -> None:
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*", name):
            raise HiresxError(
                f'block name "{name}" cannot be the name of a netCDF group',
                "use letters, digits and _ . @ + - in the names of blocks",
            )
        if names.count(name) > 1:
            raise HiresxError(f'two blocks are called "{name}"', "give every block a name of its own")


def _require_space(path: Path, size: int) -> None:
    if shutil.disk_usage(path.parent).free < size:
        raise OSError(errno.ENOSPC, "")


def _free(path: Path) -> str:
    return f"{shutil.disk_usage(path.parent).free / 1e9:.1f} GB are free in {path.parent}"
