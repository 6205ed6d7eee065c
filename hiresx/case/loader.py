"""Reading of a case: the bundled case or the file, its preset, and overrides of keys."""

import copy
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hiresx.base.argument_types import check_types
from hiresx.base.shell import quote
from hiresx.base.whole_files import ABSENT, describe_path
from hiresx.case import functions
from hiresx.case.bundle import bundled_cases, bundled_directory, is_bundled
from hiresx.case.error_messages import Origin, did_you_mean, format_value
from hiresx.case.face_formulas import face_formulas
from hiresx.case.implicit_table import NAME as IMPLICIT
from hiresx.case.kinds import KINDS, default_of
from hiresx.case.named_scheme import without_governed
from hiresx.case.relations import resolve_relations, valid_groups
from hiresx.case.schema import Case, default, monitor_keys
from hiresx.case.source_table import source_formulas
from hiresx.case.toml import read
from hiresx.case.turbulence_table import transported_scalars
from hiresx.errors import HiresxError

FILE = "case.toml"

# If there are at most this many overrides, the case is also validated without each of them, to find the invalid one.
MOST_LOOKED_AT = 8

# Numbers without a digit on one side of the point.
_NUMBER = re.compile(r"[+-]?(\.\d+|\d+\.)([eE][+-]?\d+)?")

# Keys of one table that exclude each other. If a preset or --set gives one of them, the others are removed.
ALTERNATIVES: dict[tuple[str, ...], tuple[frozenset[str], ...]] = {
    ("time",): (frozenset({"dt", "cfl"}),),
    ("initial",): (frozenset({"state", "function"}),),
    ("output",): (frozenset({"every_time", "every_steps"}),),
    **{(name,): (frozenset({"every", "every_time"}),) for name in monitor_keys()},
}
# Keys of [time] in lower layers that are removed if a layer chooses the implicit integrator, which has no time.
UNSTEADY = frozenset({"end", "dt", "local"})
# Keys of a layer that remove other keys of the layers below it.
DROPPING = (["time", "integrator"], ["scheme", "choice"])


class _Override(NamedTuple):
    """An override as text, and the parts of its key and its value."""

    text: str
    keys: list[str]
    value: Any


class _CaseLayers(NamedTuple):
    """The `data` of a case, and the `layers` above its file (see `Origin`)."""

    data: dict[str, Any]
    layers: tuple[tuple[str, Mapping[str, Any]], ...]


@check_types
def load(
    name_or_path: str | Path,
    preset: str | Sequence[str] | None = None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    complete: bool = True,
    unset: Sequence[str] = (),
) -> Case:
    """Load the case `name_or_path`: a bundled name, a TOML file or a folder with case.toml.

    - `preset`: the name of one of its [presets], or several names; later ones override earlier ones.
    - `overrides`: texts "dotted.key=value" with TOML values (any other value is a string), or a dictionary
      {"dotted.key": value}, in which None removes the key. They are applied last. `boundary.0.type=...` changes an
      entry of a list.
    - `complete`: if false, functions that the case names may be missing, because they will be given in Python.
    - `unset`: dotted keys to remove from the case and its presets.

    Tables are merged, lists are replaced. Some keys exclude each other: if a layer (file, preset or override) sets
    time.dt, for example, time.cfl of the layers below it is removed. If a layer chooses the implicit integrator,
    time.end, dt and local of the layers below it are removed.

    Raises HiresxError for an unknown name or preset, for invalid TOML (with line and column), for every error of the
    case and of its presets, for a key in `unset` that does not exist, for a function that case.py lacks, and for a
    parameter that no function has as an argument."""
    path = find(name_or_path)
    document = read(path)
    presets = document.pop("presets", {})
    _check_presets(presets, path)
    chosen = [preset] if isinstance(preset, str) else list(preset or ())
    for name in chosen:
        if name not in presets:
            raise HiresxError(f'{path}: no preset "{name}"', did_you_mean(name, list(presets), "presets"))

    below = _CaseLayers(document, ())
    for name in chosen:
        below = _CaseLayers(merge(below.data, presets[name]), ((f"[presets.{name}]", presets[name]), *below.layers))
    asked = list(_overrides(overrides))
    below = _without(below, _keys_to_remove(unset, asked), path)
    # These come first: they remove keys of lower layers, but not those of other overrides.
    over = sorted((found for found in asked if found.value is not None), key=lambda found: found.keys not in DROPPING)
    label = "-".join(chosen) or None
    try:
        case = _apply_overrides(below, over, path, label, complete)
    except HiresxError as error:
        raise _blaming_overrides(error, below, over, path, complete) from error.__cause__
    for name, table in presets.items():
        if name not in chosen:  # an error in a preset is found even if this preset is not used
            _validate(merge(document, table), path, ((f"[presets.{name}]", table),), name)
    return case


def _apply_overrides(
    below: _CaseLayers, over: Sequence[_Override], path: Path, preset: str | None, complete: bool
) -> Case:
    """Return the case `below` with overrides, which must not exclude each other."""
    data, layers = below
    given: dict[str, set[str]] = {}
    for override, keys, value in over:
        data = _set(data, keys, value, override)
        given.setdefault(keys[0], set()).update(keys[1:2])
        layers = (("--set", _nest(keys, value)), *layers)
    excluding = {**ALTERNATIVES, ("parameters",): map(frozenset, valid_groups(data.get("alternatives")))}
    for table, names in given.items():
        for group in excluding.get((table,), ()):
            if len(group & names) > 1:
                both = " and ".join(sorted(group & names))
                why = "have the same meaning" if table == "parameters" else "exclude each other"
                raise HiresxError(f"--set {table}: {both} {why}", "give one of them")
    return _validate(data, path, layers, preset, complete)


def _blaming_overrides(
    error: HiresxError, below: _CaseLayers, over: Sequence[_Override], path: Path, complete: bool
) -> HiresxError:
    """Return the error of a case with overrides. If it names none of them, and the case is valid without one of them or
    without all, the message names these."""

    def is_valid(others: Sequence[_Override]) -> bool:
        try:
            _apply_overrides(below, others, path, None, complete)
        except HiresxError:
            return False
        return True

    if not over or "--set " in error.message or not is_valid([]):
        return error
    each = over if len(over) <= MOST_LOOKED_AT else ()
    guilty = [one for one in each if is_valid([other for other in over if other is not one])] or over
    place, keys = f"{path}: ", [".".join(one.keys) for one in guilty]
    words = error.message.removeprefix(place)
    if any(words.startswith(key) for key in keys):
        label = "--set "
    elif len(guilty) > MOST_LOOKED_AT:
        label = f"with {len(guilty)} --set: "
    else:
        values = (format_value(one.value) for one in guilty)
        label = f"with {', '.join(f'--set {key}={value}' for key, value in zip(keys, values, strict=True))}: "
    blamed = HiresxError(f"{place}{label}{words}", error.hint)
    blamed.everywhere = error.everywhere
    return blamed


def _keys_to_remove(unset: Sequence[str], overrides: Sequence[_Override]) -> list[str]:
    """Return the dotted keys that are to be removed."""
    return [*unset, *(".".join(found.keys) for found in overrides if found.value is None)]


def _without(layered: _CaseLayers, unset: Sequence[str], path: Path) -> _CaseLayers:
    """Return the layers without these dotted keys. Raises HiresxError for a key that does not exist."""
    data, layers = copy.deepcopy(layered.data), layered.layers
    for key in unset:
        keys = _keys(key, key, "--unset")
        holder: Any = data
        for depth, part in enumerate(keys):
            inside = range(len(holder)) if isinstance(holder, list) else holder if isinstance(holder, Mapping) else ()
            place: Any = int(part) if isinstance(holder, list) and part.isdigit() else part
            if place not in inside:
                raise HiresxError(
                    f"{path}: --unset {key}: neither the case nor a chosen preset gives {'.'.join(keys[: depth + 1])}",
                    did_you_mean(part, list(map(str, inside)), "what they give there"),
                )
            if depth == len(keys) - 1:
                break
            holder = holder[place]
        if isinstance(holder, list):
            raise HiresxError(
                f"--unset {key}: an entry of a list cannot be removed",
                f"give the list again without it: --set '{'.'.join(keys[:-1])}=[...]'",
            )
        del holder[keys[-1]]
        layers = (("--unset", _nest(keys, None)), *layers)
    return _CaseLayers(data, layers)


def presets(name_or_path: str | Path) -> list[str]:
    """Return the names of the presets of a case. `name_or_path`: the name of a bundled case, a TOML file, or a folder
    with case.toml."""
    return list(read(find(name_or_path)).get("presets", {}))


def find(name_or_path: str | Path) -> Path:
    """Return the path of a case file. `name_or_path`: the name of a bundled case, a TOML file, or a folder with
    case.toml. Raises HiresxError, with the most similar name, if there is no such case."""
    text = str(name_or_path)
    path = Path(text)
    looks_like_path = path.suffix == ".toml" or "/" in text or "\\" in text
    if not looks_like_path and is_bundled(text):
        return bundled_directory(text) / FILE
    # os.path is used because the functions of pathlib raise errors for invalid file names
    if os.path.isfile(path / FILE):
        return path / FILE
    if os.path.isfile(path) and os.path.getsize(path):
        if path.suffix == ".hxc":
            raise HiresxError(f"{text} is a checkpoint, and no case", f"go on from it by --restart {quote(text)}")
        return path
    for wanted in (path, path / FILE):
        try:
            os.stat(wanted)
        except PermissionError:
            raise HiresxError(
                f"{text}: permission denied", "check the permissions of the folder and its files"
            ) from None
        except (OSError, ValueError):  # the file does not exist, which is reported below
            break
    if not text:
        raise HiresxError("the name of the case is empty", "name a bundled case, a TOML file or a case's folder")
    if os.path.isdir(path):
        hint = "name a bundled case, a TOML file or a case's folder"
        if os.path.isfile(path / "case" / FILE):
            hint = f"it is a run: go on with it by --restart {quote(text)}, or name its case, {quote(f'{text}/case')}"
        raise HiresxError(f"{text}: this folder holds no {FILE}", hint)
    if (kind := describe_path(path)) != ABSENT:
        raise HiresxError(f"{text} {kind}", "name a bundled case, a TOML file or a case's folder")
    if looks_like_path:
        near = sorted(str(other) for other in path.parent.glob("*.toml")) if os.path.isdir(path.parent) else []
        raise HiresxError(f"{text}: no such file", did_you_mean(text, near, "case files there"))
    raise HiresxError(f'no bundled case "{text}"', did_you_mean(text, bundled_cases(), "bundled cases"))


def _check_presets(presets: Any, path: Path) -> None:
    if not isinstance(presets, Mapping):
        raise HiresxError(f"{path}: presets must be a table of tables", "write [presets.<name>]")
    for name, table in presets.items():
        if not isinstance(table, Mapping):
            raise HiresxError(f"{path}: presets.{name} must be a table", f"write [presets.{name}]")


def _validate(
    data: Mapping[str, Any], path: Path, layers: tuple[Any, ...], preset: str | None, complete: bool = True
) -> Case:
    origin = Origin(str(path), layers)
    found = resolve_relations(data, path.parent, str(path), lambda key: default_of(data, key, default))
    case = Case.model_validate(found.data, context={"origin": origin})
    case._directory, case._formulas, case._derived = path.parent, found.formulas, found.derived
    case._name = path.parent.absolute().name if path.name == FILE else path.stem
    case._preset = preset
    if not complete:
        return case
    for place, name in _named_functions(case):
        try:
            functions.function(case.directory, name)
        except HiresxError as error:
            raise HiresxError(f"{path}: {place}: {error.message}", error.hint) from None
    of_faces = (name for _, values in face_formulas(case).values() for name in values)
    used = {*found.named, *found.derived, *source_formulas(case)[1], *of_faces}
    asked = [name for name in case.parameters if name not in used]
    functions.check_parameters(case.directory, asked, str(path))
    return case


def _named_functions(case: Case) -> list[tuple[str, str]]:
    """Yield (dotted key, function name) for every function that the case names."""
    named = [("initial.function", case.initial.function)]
    named += [(f"boundary.{n}.function", getattr(item, "function", None)) for n, item in enumerate(case.boundary)]
    named += [(f"sponge.{n}.function", item.function) for n, item in enumerate(case.sponge)]
    several = isinstance(case.turbulence.initial, dict)
    for variable in transported_scalars(case.turbulence):
        place = f"turbulence.initial.{variable.name}" if several else "turbulence.initial"
        named.append((place, _text(variable.initial)))
    named += [(f"scalar.{n}.initial", _text(scalar.initial)) for n, scalar in enumerate(case.scalar)]
    for n, item in enumerate(case.boundary):
        given = getattr(item, "scalars", {})
        named += [(f"boundary.{n}.scalars.{name}", _text(value)) for name, value in given.items()]
    named += [(f"monitors.{n}", name) for n, name in enumerate(case.monitors)]
    return [(place, name) for place, name in named if name is not None]


def _text(value: float | str | None) -> str | None:
    """Return the name of the function for the value of a scalar."""
    return value if isinstance(value, str) else None


def merge(
    base: Mapping[str, Any], over: Mapping[str, Any], path: tuple[str, ...] = (), groups: Sequence[Any] = ()
) -> dict[str, Any]:
    """Return a copy of `base` into which `over` is merged, both nested dictionaries of a case. `path`: the keys that
    lead to the two dictionaries. `groups`: groups of names of parameters that exclude each other.

    Tables are merged recursively, other values are replaced. Three kinds of keys of `base` are removed: keys that keys
    of `over` exclude (by `groups`, or by ALTERNATIVES in this file); keys that a table no longer has because `over`
    changes its kind, such as the grid generator; and keys whose values follow from the `scheme.choice` in `over`.
    """
    base = without_governed(path, base, over)
    groups = groups if path else over.get("alternatives", base.get("alternatives", ()))
    result = copy.deepcopy(dict(base))
    if path in KINDS and (kind := KINDS[path](over)) not in (None, KINDS[path](base)):
        result = {key: value for key, value in result.items() if key in kind.model_fields}
    excluding = map(frozenset, valid_groups(groups)) if path == ("parameters",) else ALTERNATIVES.get(path, ())
    for group in excluding:
        if group & over.keys():
            result = {key: value for key, value in result.items() if key not in group}
    if path == ("time",) and over.get("integrator") == IMPLICIT:
        result = {key: value for key, value in result.items() if key not in UNSTEADY}
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), Mapping):
            result[key] = merge(base[key], value, (*path, key), groups)
        else:
            result[key] = copy.deepcopy(value)
    return result


def parse_override(text: str) -> tuple[list[str], Any]:
    """Return the keys and the value of the override `text`, "dotted.key=value". The value is written in TOML. Numbers
    such as .5 and 1., which are not valid in TOML, are also accepted. Any other value is a string."""
    key, equals, value = text.partition("=")
    keys = _keys(key if equals else None, text)
    try:
        found = tomllib.loads(f"value = {value.strip()}")
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return keys, float(value) if _NUMBER.fullmatch(value.strip()) else value.strip()
    # after a line break another key could follow the value
    return keys, found["value"] if found.keys() == {"value"} else value.strip()


def by_key(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the overrides, each a text "dotted.key=value", as a dictionary from dotted keys to parsed values."""
    return {".".join(keys): value for keys, value in map(parse_override, overrides)}


def _overrides(overrides: Sequence[str] | Mapping[str, Any]) -> Iterator[_Override]:
    """Yield the overrides, those that remove a key with the value None."""
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            text = "" if value is None else f"{key}={format_value(plain(value))}"
            yield _Override(text, _keys(key, str(key)), plain(value))
        return
    for text in overrides:
        yield _Override(text, *parse_override(text))


def plain(value: Any) -> Any:
    """Return `value` in types that TOML has: tuples and arrays become lists, NumPy's numbers Python's numbers, and
    paths strings."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return str(value) if isinstance(value, Path) else value


def _keys(key: Any, text: str, option: str = "--set") -> list[str]:
    """Return the parts of a dotted key."""
    keys = key.strip().split(".") if isinstance(key, str) else []
    if not keys or not all(re.fullmatch(r"[A-Za-z0-9_-]+", part) for part in keys):
        form, example = ("key=value", "time.cfl=0.4") if option == "--set" else ("key", "implicit")
        raise HiresxError(f"{option} {text}: not of the form {form}", f"write for instance {option} {example}")
    return keys


def _nest(keys: Sequence[str], value: Any) -> dict[str, Any]:
    """Return {"a": {"b": value}} for the keys ["a", "b"]."""
    *outer, last = keys
    nested = {last: value}
    for key in reversed(outer):
        nested = {key: nested}
    return nested


def _set(data: Mapping[str, Any], keys: Sequence[str], value: Any, override: str) -> dict[str, Any]:
    """Return a copy of `data` in which the entry at `keys` is `value`. Digits are indexes of lists."""
    for depth in range(1, len(keys)):
        holder: Any = data
        for key in keys[:depth]:
            holder = holder.get(key) if isinstance(holder, Mapping) else None
        if isinstance(holder, list):
            entry = _set_in_list(holder, keys[depth:], value, override)
            return merge(data, _nest(keys[:depth], entry))
    return merge(data, _nest(keys, value))


def _set_in_list(items: list[Any], keys: Sequence[str], value: Any, override: str) -> list[Any]:
    if not (keys[0].isdigit() and int(keys[0]) < len(items)):
        raise HiresxError(
            f"--set {override}: the list has no entry {keys[0]}", f"its entries are 0 to {len(items) - 1}"
        )
    result = copy.deepcopy(items)
    index = int(keys[0])
    if len(keys) == 1:
        result[index] = value
    elif isinstance(items[index], Mapping):
        result[index] = _set(items[index], keys[1:], value, override)
    elif isinstance(items[index], list):
        result[index] = _set_in_list(items[index], keys[1:], value, override)
    else:
        raise HiresxError(f"--set {override}: entry {keys[0]} is not a table", "name the entry itself")
    return result
