"""Tables of a case in which one key, such as `generator`, decides which other keys the table has."""

from collections.abc import Callable, Mapping
from typing import Any

from hiresx.case.grid_file import GridFile
from hiresx.case.grids import GENERATORS
from hiresx.case.model import Table
from hiresx.case.viscosity import VISCOSITIES

# Tables whose keys depend on their kind. If a layer changes the kind, the keys that the new kind does not have are
# removed.
KINDS: dict[tuple[str, ...], Callable[[Mapping[str, Any]], type[Table] | None]] = {
    ("grid",): lambda table: GridFile if "file" in table else _named_kind(GENERATORS, table.get("generator")),
    ("gas", "viscosity"): lambda table: _named_kind(VISCOSITIES, table.get("law")),
}


def _named_kind(kinds: Mapping[str, type[Table]], name: Any) -> type[Table] | None:
    return kinds.get(name) if isinstance(name, str) else None


def default_of(data: Mapping[str, Any], key: tuple[str | int, ...], otherwise: Callable[[Any], Any]) -> Any:
    """Return the default of a key that is missing in the tables `data` of a case. `key`: the path to it, such as
    ("time", "cfl"). A table of a grid generator or viscosity law has the defaults of the generator or law that `data`
    names. For all other tables the result is otherwise(key). Raises KeyError with the known keys for an unknown key."""
    for path, kind in KINDS.items():
        if key[: len(path)] == path and len(key) == len(path) + 1:
            table: Any = data
            for part in path:
                table = table.get(part, {}) if isinstance(table, Mapping) else {}
            model = kind(table) if isinstance(table, Mapping) else None
            fields = {} if model is None else model.model_fields
            if key[-1] not in fields:
                raise KeyError([".".join((*path, name)) for name in fields])
            return fields[str(key[-1])].get_default(call_default_factory=True)
    return otherwise(key)
