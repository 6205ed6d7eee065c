"""`hiresx new`: copies a bundled case, to be edited by the user."""

from pathlib import Path
from typing import Annotated

from hiresx.base.shell import quote
from hiresx.cli import options, terminal
from hiresx.cli.options import argument, option
from hiresx.errors import HiresxError


def new(
    name: Annotated[str | None, argument("[NAME]", "A bundled case; without it they are listed.")] = None,
    directory: Annotated[Path | None, argument("[DIR]", "New folder; the case's name if absent.")] = None,
    grid: Annotated[Path | None, option("--from", "GRID", "A grid file: a case that starts from it.")] = None,
    connectivity: Annotated[Path | None, option("--connectivity", "FILE", "Connectivity file of GRID.")] = None,
    json: options.Json = False,
) -> int:
    """Copy a bundled case to a new folder, to edit; or start one from a grid file; or list the bundled cases.

    Exit status: 0 done; 2 an error to correct."""
    from hiresx.case import bundled_cases, copy_bundled

    if grid is not None:
        return _from_grid(grid, connectivity, Path(name) if name else None, json)

    if name is None:
        listed = {case: _title(case) for case in bundled_cases()}
        if json:
            terminal.print_json({"cases": [{"name": case, "title": title} for case, title in listed.items()]})
        else:
            terminal.table("Bundled cases", ["name", ""], listed.items())
        return 0
    target = copy_bundled(name, directory if directory is not None else Path(name))
    files = sorted(str(path) for path in target.iterdir())
    if json:
        terminal.print_json({"directory": str(target), "files": files})
    else:
        terminal.say(f"wrote {', '.join(files)}")
        terminal.say(f"  edit {target / 'case.toml'}, then: hiresx check {quote(target)}; hiresx run {quote(target)}")
    return 0


def _from_grid(grid: Path, connectivity: Path | None, directory: Path | None, json: bool) -> int:
    """Print the case.toml that starts from a grid file, or write it to a new folder."""
    from hiresx.cli.case_from_grid import case_from_grid

    with terminal.only_json(json):
        text, notes = case_from_grid(grid, connectivity)
    if directory is None:
        print(text)
        return 0
    try:
        directory.mkdir(parents=True)
        (directory / "case.toml").write_text(text, encoding="utf-8")
    except OSError as error:
        raise HiresxError(f"{directory}: cannot be made: {error.strerror or error}", "name a new folder") from None
    if json:
        files = [str(directory / "case.toml")]
        terminal.print_json({"directory": str(directory), "files": files, "notes": notes})
        return 0
    terminal.say(f"wrote {directory / 'case.toml'}, which hiresx check accepts")
    for note in notes:
        terminal.say(f"note: {note}")
    return 0


def _title(name: str) -> str:
    import tomllib

    from hiresx.case import find

    return tomllib.loads(find(name).read_text(encoding="utf-8")).get("title", "")
