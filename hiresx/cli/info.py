"""`hiresx info`: describes the contents of a file or of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from hiresx.base.plural import plural
from hiresx.cli import options, terminal
from hiresx.cli.options import argument
from hiresx.cli.other_paths import refuse_sweep

# Descriptions for tables whose key alone is not informative enough.
TITLES = {
    "left": "Faces left over (normal: outward)",
    "meets": "Faces that meet others without being joined",
    "jacobian": "Blocks whose Jacobian is not positive",
    "broken": "Broken patches, left out ([grid] drop does that in a case)",
}


def info(
    path: Annotated[
        Path, argument("RUN|FILE", "Folder of a run, or a file: fields, history, checkpoint, grid, case, VTK.")
    ],
    json: options.Json = False,
) -> int:
    """Describe a run, or a file that hiresx has written or can read.

    Exit status: 0 done; 2 an error to correct."""
    with terminal.only_json(json):
        from hiresx.output.show.describe import describe

        refuse_sweep(path, "hiresx info")
        found = describe(path)
    if json:
        terminal.print_json(found)
        return 0
    terminal.say(f"{path}: {found['kind']}")
    if found.get("title"):
        terminal.say(f"  {found['title']}")
    tables = {key: value for key, value in found.items() if _is_table(value)}
    plain = {key: value for key, value in found.items() if key not in ("kind", "title", *tables)}
    description = plain.pop("description", None)
    if description:
        terminal.say(f"\n{description}\n")
    if "hardware" in plain:
        # The JSON output has all details.
        plain["versions"], plain["hardware"] = _software(plain["versions"]), _machine(plain["hardware"])
    if plain:
        terminal.mapping("", plain)
    for key, rows in tables.items():
        columns = list(dict.fromkeys(column for row in rows for column in row))
        terminal.table(
            TITLES.get(key, key.capitalize()), columns, ([_cell(row.get(column)) for column in columns] for row in rows)
        )
    return 0


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _software(versions: Mapping[str, Any]) -> str:
    return f"hiresx {versions.get('hiresx')}, Python {versions.get('python')}, {versions.get('system')}"


def _machine(hardware: Mapping[str, Any]) -> str:
    gpus = ", ".join(gpu["name"] for gpu in hardware.get("gpus") or ()) or "no GPU"
    return f"{hardware.get('host')}: {hardware.get('cpu')}, {plural(hardware.get('cores') or 0, 'core')}, {gpus}"


def _cell(value: Any) -> Any:
    return "" if value is None else value
