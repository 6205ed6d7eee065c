"""Descriptions of files and run directories that hiresx writes or reads."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import coordinate_file
from hiresx.output.fields import field_file as fields
from hiresx.output.fields.field_reader import FAULTS, attribute, open_file, open_hdf5
from hiresx.output.fields.field_reader import variables as stored_variables
from hiresx.output.fields.formats import vtk
from hiresx.output.saved import checkpoint, files, record
from hiresx.output.saved.container import MAGIC
from hiresx.output.saved.netcdf_library import LOCK, library
from hiresx.output.show import run_status
from hiresx.output.watch import history, place_file, surface_file, wall_file

_PLACES = (surface_file.KIND, wall_file.KIND)
_HDF5, _CLASSIC = b"\x89HDF\r\n\x1a\n", b"CDF"


def describe(path: str | Path) -> Mapping[str, Any]:
    """Return a description of the file or run directory `path` as JSON data: its kind under "kind", and entries that
    depend on the kind.

    A directory must be a run. Files may be fields and subsets of them, averages, histories, checkpoints, run records,
    cases, grids (Plot3D, CGNS), VTK files and other netCDF files. Raises HiresxError for a path that does not exist,
    for a damaged file, and for any other file."""
    path = Path(path)
    if os.path.isdir(path):
        return _read(_run, path)
    if os.path.exists(path) and (kind := files.describe_path(path)):
        raise HiresxError(f"{path} {kind}", "give the folder of a run, or a file: hiresx info FILE")
    head = _head(path)
    for _, fits, reader in _KINDS:
        if fits(path, head):
            return _read(reader, path)
    raise HiresxError(
        f"{path}: hiresx does not know this type of file",
        "it knows runs, fields, histories, checkpoints, cases (.toml), Plot3D and CGNS grids and VTK files "
        "(.vtm, .vts, .pvd)",
    )


def kind_of(path: Path) -> str:
    """Return the kind of the file `path` by its content or its name: "checkpoint", "history", "grid", "netCDF file",
    "file of coordinates", "VTK file", "record of a run" or "case"; "" for none of these. Raises HiresxError for a file
    that cannot be read."""
    head = _head(path)
    found = next((kind for kind, fits, _ in _KINDS if fits(path, head)), "")
    if found == "netCDF file":
        with contextlib.suppress(*FAULTS), open_hdf5(path) as file:
            return "file of coordinates" if coordinate_file.DIGEST in file.attrs else found
    return found


def _head(path: Path) -> bytes:
    with files.naming_errors(path, "read"), path.open("rb") as file:
        return file.read(4096)


def _read(reader: Callable[[Path], Mapping[str, Any]], path: Path) -> Mapping[str, Any]:
    """Return the result of `reader`. Any error in a file of the right kind is reported as damage of the file."""
    try:
        return reader(path)
    except (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        words = " ".join(str(error).split())[:200]
        raise HiresxError(
            f"{path} is damaged, or of another program ({type(error).__name__}: {words})", "take another one"
        ) from None


def _run(path: Path) -> dict[str, Any]:
    if not (path / "run.json").is_file():
        from hiresx.case.loader import FILE

        if (path / FILE).is_file():
            return _case(path / FILE)
        raise HiresxError(
            f"{path} holds neither a run nor a case", "give the folder of a run, or a file: hiresx info FILE"
        )
    entries = record.read(path)
    case = entries.get("case") or {}
    subsets = [subset["name"] for subset in case.get("output", {}).get("subset", ())]
    found: dict[str, Any] = {"kind": "run", "title": case.get("title", "")}
    apart = ("case", "history", "stages", "ranks", "restarts", "process")
    found |= {key: value for key, value in entries.items() if key not in apart}
    if found.get("status") == "lost" and (command := checkpoint.command_to_continue(path)):
        found["to go on"] = command
    if len(entries.get("ranks") or ()) > 1:
        found["ranks"] = [_rank(rank, entries.get("wall_s")) for rank in entries["ranks"]]
    found["restarts"] = len(entries.get("restarts") or ())
    found["retries"] = len(entries.get("retries") or ())
    found["epochs"] = len(entries.get("epochs") or ())
    found["holds"] = [entry for name in ("fields", *subsets) for entry in _series(path, name)]
    if (path / "averages.nc").is_file():
        found["holds"].append({"what": "averages", "files": "averages.nc", "count": 1})
    found |= run_status.run_status(path, entries)
    for name, file in history.histories(path).items():
        table = history.read(file)
        step, time = table.data["step"], table.data["time"]
        found["holds"].append(
            {"what": f"history {name}", "files": f"history/{name}.nc", "count": len(step)}
            | _span(step, time)
            | {"variables": [column for column in table.data if column not in ("step", "time")]}
        )
    for kind in _PLACES:
        for name, file in kind.files(path).items():
            stored = place_file.read(file, kind, place_file.StoredPlaces)
            found["holds"].append(
                {"what": f"{kind.name} {name}", "files": f"{kind.folder}/{name}.nc", "count": stored.samples}
                | _span(stored.records["step"], stored.records["time"])
                | {"variables": list(stored.quantities)}
            )
    kept = checkpoint.list_checkpoints(path)
    if kept:
        steps = sorted(int(file.stem.rpartition("_")[2]) for file in kept)
        found["holds"].append(
            {
                "what": "checkpoints",
                "files": f"{checkpoint.FOLDER}/",
                "count": len(kept),
                "steps": [steps[0], steps[-1]],
            }
        )
    return found


def _span(step: np.ndarray, time: np.ndarray) -> dict[str, Any]:
    """Return steps and times of the first and the last sample, if there are any."""
    if not len(step):
        return {}
    return {"steps": [int(step[0]), int(step[-1])], "times": [float(time[0]), float(time[-1])]}


def _rank(rank: dict[str, Any], seconds: float | None) -> dict[str, Any]:
    """Describe a rank in one line: where it ran, its nodes, the ranks and bytes of its exchanges, and the fraction of
    time that it waited."""
    links = rank.get("neighbours") or ()
    line = {key: rank.get(key) for key in ("rank", "host", "backend", "gpu", "cpus", "threads", "points")}
    line["parts"] = len(rank.get("parts") or ())
    line["halos by"] = ", ".join(sorted({link["transport"] for link in links}))
    line["neighbours"] = len(links)
    line["kB per exchange"] = round(sum(link["state_bytes"] + link["flux_bytes"] for link in links) / 1000)
    if seconds and rank.get("waited_s") is not None:
        line["waited"] = f"{rank['waited_s'] / seconds:.1%}"
    return line


def _series(path: Path, name: str) -> Iterator[dict[str, Any]]:
    what = "fields" if name == "fields" else f"subset {name}"
    frames = fields.frames(path, name)
    if frames:
        steps = list(frames)
        ends = [fields.describe(frames[step]) for step in (steps[0], steps[-1])]
        yield {
            "what": what,
            "files": f"{name}_*.nc",
            "count": len(steps),
            "steps": [steps[0], steps[-1]],
            "times": [end["time"] for end in ends],
            "variables": ends[-1]["variables"],
        }
    if vtk.frames(path, name):
        steps = list(vtk.frames(path, name))
        series = vtk.series(path, name).name
        yield {
            "what": f"{what} for ParaView and VisIt",
            "files": series,
            "count": len(steps),
            "steps": [steps[0], steps[-1]],
        }


def _netcdf(path: Path) -> dict[str, Any]:
    netCDF4 = library()

    try:
        with LOCK, netCDF4.Dataset(path) as file:
            known = {"scales", "case"} <= set(file.ncattrs()) and "step" in file.variables
            averages = "averaged_over" in file.variables
            if not known and not averages:
                return _any_netcdf(file)
    except (OSError, RuntimeError) as error:
        raise HiresxError(f"{path} is not whole ({error})", "take another one") from None
    return _fields(path, averages)


def _any_netcdf(file: Any) -> dict[str, Any]:
    def variables(group: Any, prefix: str = "") -> Iterator[dict[str, Any]]:
        for name, variable in group.variables.items():
            units = getattr(variable, "units", "")
            what = getattr(variable, "long_name", "")
            yield {"name": prefix + name, "is": what, "units": units, "shape": list(variable.shape)}
        for name, part in group.groups.items():
            yield from variables(part, f"{prefix}{name}/")

    attributes = {name: str(file.getncattr(name)) for name in file.ncattrs()}
    kind = "coordinates of fields" if coordinate_file.DIGEST in file.ncattrs() else "netCDF file of another origin"
    return {"kind": kind, "attributes": attributes, "variables": list(variables(file))}


def _fields(path: Path, averages: bool) -> dict[str, Any]:
    with open_file(path) as blocks:
        file, part = blocks.file, attribute(blocks.file, "part")
        found: dict[str, Any] = {"kind": "averages" if averages else f"fields ({part})" if part else "fields"}
        found |= {name: attribute(file, name) for name in ("title", "source")}
        found |= {"time": blocks.time, "step": blocks.step}
        if averages:
            over = file["averaged_over"]
            found["averaged_over"] = f"{float(over[()]):g} {attribute(over, 'units')}"
        found["blocks"] = [
            {"name": name, "ni": ni, "nj": nj, "nk": nk}
            | {axis: list(_range([file[name][axis]]).values()) for axis in "xyz"}
            for name, (nk, nj, ni) in blocks.sizes.items()
        ]
        found["variables"] = [
            {"name": name, "is": attribute(variable, "long_name"), "units": attribute(variable, "units")}
            | {"type": str(variable.dtype), **_range(group[name] for group in blocks)}
            for name, variable in ((name, blocks[0][name]) for name in stored_variables(blocks[0]))
        ]
    return found


def _range(variables: Any) -> dict[str, float | None]:
    """Return the least and greatest value; None if there is no number."""
    low, high = [], []
    for variable in variables:
        values = np.asarray(variable[...])
        values = values[np.isfinite(values)]
        if values.size:
            low.append(float(values.min()))
            high.append(float(values.max()))
    return {"least": min(low, default=None), "greatest": max(high, default=None)}


def _history(path: Path) -> dict[str, Any]:
    for kind in _PLACES:
        with contextlib.suppress(HiresxError):
            return _places(place_file.read(path, kind, place_file.StoredPlaces), kind)
    try:
        table = history.read(path)
    except HiresxError:
        return _netcdf(path)
    step = table.data["step"]
    found: dict[str, Any] = {"kind": f"history of {table.name} ({table.kind})", "samples": len(step)}
    found |= _span(step, table.data["time"])
    if table.places is not None:
        found["places"] = table.places.tolist()
    found["variables"] = [
        {"name": name, "is": column.long_name, "units": column.units, **_range([table.data[name]])}
        for name, column in table.columns.items()
    ]
    return found


def _places(stored: place_file.StoredPlaces, kind: place_file.Kind) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": f"{kind.name} {stored.name}", "samples": stored.samples}
    found |= _span(stored.records["step"], stored.records["time"])
    found["places"] = len(stored.fixed["x"])
    # sample by sample: all samples together may be larger than the memory
    held: dict[str, Any] = {name: [values] for name, values in stored.fixed.items()}
    held |= {name: stored.records[name] for name in stored.quantities}
    found["variables"] = [
        {"name": name, "is": stored.columns[name].long_name, "units": stored.columns[name].units, **_range(values)}
        for name, values in held.items()
    ]
    return found


def _checkpoint(path: Path) -> dict[str, Any]:
    found = checkpoint.describe(path)
    case = found.pop("case")
    blocks = [
        {"name": name, **dict(zip(("ni", "nj", "nk"), size, strict=True))} for name, size in found.pop("blocks").items()
    ]
    return {"kind": "checkpoint, whole", "title": case.get("title", ""), **found, "blocks": blocks}


def _case(path: Path) -> dict[str, Any]:
    from hiresx.case import load
    from hiresx.case.toml import read

    case = load(path)
    document = read(path)
    return {
        "kind": "case",
        "title": case.title,
        "description": case.description.strip(),
        "presets": list(document.get("presets", {})),
        "grid": case.grid.model_dump(mode="json"),
        "time": case.time.model_dump(mode="json"),
        "boundaries": [condition.type for condition in case.boundary],
    }


def _grid(path: Path) -> dict[str, Any]:
    from hiresx.grid.grid_report import grid_report

    return grid_report(path)


def _is_grid(path: Path, head: bytes) -> bool:
    """True for CGNS in either format, binary integers at the start, or text that begins with integers."""
    from hiresx.grid.cgns_tree import is_cgns

    if head.startswith(_HDF5):
        import h5py

        try:
            with h5py.File(path, "r", locking=False) as file:
                return " hdf5version" in file or " version" in file or "CGNSLibraryVersion" in file
        except (OSError, RuntimeError, KeyError, ValueError, TypeError):  # any error that it raises for a damaged file
            return path.suffix.lower() == ".cgns"
    if is_cgns(head):
        return True
    words = head[:200].replace(b",", b" ").split()
    if b"\0" not in head[:64]:
        return bool(words) and words[0].isdigit()
    from hiresx.grid.plot3d_binary import begins_like_plot3d

    return begins_like_plot3d(path)


def _record(path: Path) -> dict[str, Any]:
    return _run(path.parent)


def _suffix(*suffixes: str) -> Callable[[Path, bytes], bool]:
    return lambda path, head: path.suffix.lower() in suffixes


# Kinds are determined by content if possible, else by the end of the name; the first that fits is used.
_KINDS: tuple[tuple[str, Callable[[Path, bytes], bool], Callable[[Path], Mapping[str, Any]]], ...] = (
    ("checkpoint", lambda path, head: head.startswith(MAGIC) or path.suffix == ".hxc", _checkpoint),
    ("history", lambda path, head: head.startswith(_CLASSIC), _history),
    ("grid", _is_grid, _grid),
    ("netCDF file", lambda path, head: head.startswith(_HDF5) or path.suffix == ".nc", _netcdf),
    ("VTK file", lambda path, head: b"<VTKFile" in head, vtk.describe),
    ("record of a run", lambda path, head: path.name == "run.json", _record),
    ("case", _suffix(".toml"), _case),
    ("grid", _suffix(".cgns", ".xyz", ".x", ".p3d", ".grd", ".fmt", ".g"), _grid),
)
