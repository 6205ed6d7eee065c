"""Errors for paths that a command cannot read. They name the kind of the file and the command that can read it."""

from pathlib import Path

from hiresx.base.plural import plural
from hiresx.base.shell import quote
from hiresx.errors import HiresxError

_OF_ANY = "hiresx plot draws folders of runs and their fields_*.nc; hiresx info says what a file is"


def refuse_sweep(path: Path, command: str) -> None:
    """Raise HiresxError if `path` is the folder of a sweep, which contains the folders of its runs. The hint shows how
    to call `command` with one of these runs."""
    from hiresx.sweeps.folder import NAME

    if not (path / NAME).is_file():
        return
    runs = sorted(found.parent for found in path.glob("*/run.json"))
    one = quote(runs[0]) if runs else f"{quote(path)}/RUN"
    raise HiresxError(
        f"{path} is the folder of a sweep of {plural(len(runs), 'run')}",
        f"name one of them: {command} {one}; their numbers are in table.csv, which hiresx sweep --table writes",
    )


def refuse_no_fields(path: Path) -> None:
    """Raise HiresxError if `path` contains no fields to plot: if it is another kind of file, the folder of a sweep, or
    the folder of a case that was not run."""
    from hiresx.output.show.describe import kind_of

    refuse_sweep(path, "hiresx plot")
    if path.is_dir():
        case = path / "case.toml"
        if case.is_file() and not (path / "run.json").is_file():
            raise HiresxError(f"{path} is the folder of a case, and holds no fields", _way_of("case", case))
        return
    kind = kind_of(path) if path.is_file() else "netCDF file"
    if kind != "netCDF file":
        what = f"is a {kind}, and holds no fields" if kind else "is no field file"
        raise HiresxError(f"{path} {what}", _way_of(kind, path))


def _way_of(kind: str, path: Path) -> str:
    """Return a text that says which command reads a file of a kind of `kind_of`."""
    folder = path.absolute().parent if path.parent == Path() else path.parent
    ways = {
        "checkpoint": f"describe it: hiresx info {quote(path)}; go on from it: hiresx run --restart {quote(path)}",
        "history": f"draw it: hiresx plot {quote(path.absolute().parent.parent)} --history {quote(path.stem)}",
        "grid": f"draw its lines: hiresx plot {quote(path)} --grid",
        "file of coordinates": f"draw the fields beside it: hiresx plot {quote(folder)}",
        "VTK file": f"open it in ParaView; describe it: hiresx info {quote(path)}",
        "record of a run": f"draw the fields of its run: hiresx plot {quote(folder)}",
        "case": f"compute it: hiresx run {quote(path)}; draw its grid: hiresx plot {quote(path)} --grid",
    }
    return ways.get(kind, _OF_ANY)
