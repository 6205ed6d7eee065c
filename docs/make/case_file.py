"""The tables of docs/case-file.md, from the schema: `python docs/make/case_file.py --out docs/case-file.md`.

The page begins with prose that is written by hand. What a key means, takes and defaults to is taken from the models; a
test compares the committed page with the generated one.
"""

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import AfterValidator, BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from hiresx.case.model import State
from hiresx.case.schema import Case
from hiresx.case.toml import value_text
from hiresx.case.viscosity import ViscosityLaw

STATE = "[a state](#a-state)"

# Ends the prose of the page, which is written by hand.
MARK = "<!-- The rest is generated from the schema: python docs/make/case_file.py --out docs/case-file.md -->"


def page(old: str) -> str:
    """The page with the prose of the `old` one and the tables of the schema. Raises ValueError for a text without
    `MARK`."""
    prose = old[: old.index(MARK)]
    tables = [(name, field) for name, field in Case.model_fields.items() if _tables(field.annotation)]
    others = [(name, field) for name, field in Case.model_fields.items() if not _tables(field.annotation)]
    lines = [MARK, "", "## Keys outside all tables", "", *_rows(others)]
    for name, field in tables:
        lines += _section(name, field, 2)
    lines += ["", "## A state", "", *_about(State), *_rows(State.model_fields.items())]
    return prose + "\n".join(lines) + "\n"


def keys(model: type[BaseModel]) -> list[str]:
    """A table of the keys of one kind of table, for other pages."""
    return _rows(model.model_fields.items())


def _section(path: str, field: FieldInfo, level: int) -> list[str]:
    """A heading for the table at `path`, its keys, and the sections of the tables in it."""
    models = _tables(field.annotation)
    listed = _is_list(field.annotation)
    lines = ["", f"{'#' * level} `{'[[' if listed else '['}{path}{']]' if listed else ']'}`", ""]
    if len(models) == 1:
        return [*lines, *_about(models[0]), *_keys(path, models[0], level)]
    lines += [_escape_markdown(_sentence(field.description or ""))]
    shared = [name for name in models[0].model_fields if all(name in m.model_fields for m in models)]
    shared = [name for name in shared if len({m.model_fields[name].description for m in models}) == 1]
    shared = [name for name in shared if models[0].model_fields[name].description]
    if shared:
        lines += ["", "Of every kind:", "", *_rows((name, models[0].model_fields[name]) for name in shared)]
    for model in models:
        key = next((name for name, f in model.model_fields.items() if _is_kind_key(f)), None)
        kind = "Plot3D or CGNS file" if key is None else f"{key} = {value_text(model.model_fields[key].default)}"
        lines += ["", f"{'#' * (level + 1)} `{path}`: {kind if key is None else f'`{kind}`'}", "", *_about(model)]
        lines += _keys(path, model, level + 1, (*shared, *([key] if key else [])))
    return lines


def _keys(path: str, model: type[BaseModel], level: int, without: Sequence[str] = ()) -> list[str]:
    fields = [(name, field) for name, field in model.model_fields.items() if name not in without]
    if not fields:
        return ["No other keys."]
    lines = _rows(fields)
    for name, field in fields:
        if [m for m in _tables(field.annotation) if m is not State]:
            lines += _section(f"{path}.{name}", field, level + 1)
    return lines


def _about(model: type[BaseModel]) -> list[str]:
    lines = _escape_markdown(inspect.cleandoc(model.__doc__ or "")).splitlines()
    if issubclass(model, ViscosityLaw):
        lines.append(f"mu / mu_ref = `{model.formula}`.")
    return [*lines, ""]


def _rows(fields: Any) -> list[str]:
    """A table of keys."""
    lines = ["| key | value | default | |", "|---|---|---|---|"]
    for name, field in fields:
        kind, default = _type(field.annotation, field.metadata), _default(field)
        lines.append(f"| `{name}` | {kind} | {default} | {_escape_markdown(field.description or '')} |")
    return lines


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "required"
    if value is None or isinstance(value, BaseModel) or value in ((), {}, ""):
        return ""
    return f"`{value_text(list(value) if isinstance(value, tuple) else value)}`"


def _type(kind: Any, metadata: Sequence[Any] = ()) -> str:
    """Return the type of a key in words."""
    kind, metadata = _bare(kind, metadata)
    if listed := _choice_lister(metadata):
        return " ".join(f"`{value_text(name)}`" for name in listed())
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        members = [_type(member, metadata) for member in arguments if member is not types.NoneType]
        return " or ".join(dict.fromkeys(members))
    if origin is Literal:
        return " ".join(f"`{value_text(value)}`" for value in arguments)
    if origin is tuple:
        return _list(arguments, metadata)
    if origin is dict:
        return f"table: {_type(arguments[0])} = {_type(arguments[1])}"
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        return STATE if kind is State else "table, below"
    return {float: "number", int: "whole number", str: "text", bool: "true or false"}[kind] + _limits(metadata)


def _list(arguments: Sequence[Any], metadata: Sequence[Any]) -> str:
    if arguments[-1] is not Ellipsis:
        entries = [_type(argument) for argument in arguments]
        if len(set(entries)) == 1:
            return f"list of {len(entries)}: {entries[0]}"
        return f"[{', '.join(entries)}]"
    least = next((extra.min_length for extra in metadata if isinstance(extra, MinLen)), 0)
    entry = _type(arguments[0])
    if entry == "table, below":
        return "list of tables, below"
    return f"list of {least} or more: {entry}" if least else f"list: {entry}"


def _limits(metadata: Sequence[Any]) -> str:
    found = []
    for kind, sign, name in ((Gt, ">", "gt"), (Ge, ">=", "ge"), (Lt, "<", "lt"), (Le, "<=", "le")):
        found += [f" {sign} {getattr(extra, name):g}" for extra in metadata if isinstance(extra, kind)]
    return ",".join(found)


def _bare(kind: Any, metadata: Sequence[Any] = ()) -> tuple[Any, list[Any]]:
    """A type without what is annotated, and all of that in one list."""
    found = list(metadata)
    while typing.get_origin(kind) is Annotated:
        kind, *extras = typing.get_args(kind)
        for extra in extras:
            found += extra.metadata if isinstance(extra, FieldInfo) else [extra]
    return kind, found


def _choice_lister(metadata: Sequence[Any]) -> Callable[[], list[str]] | None:
    """Return the function that lists the valid choices of a key."""
    for extra in metadata:
        if isinstance(extra, AfterValidator):
            return inspect.getclosurevars(extra.func).nonlocals.get("listed")
    return None


def _is_kind_key(field: FieldInfo) -> bool:
    """True if a key says which kind of table this is."""
    return typing.get_origin(field.annotation) is Literal and typing.get_args(field.annotation) == (field.default,)


def _tables(kind: Any) -> list[type[BaseModel]]:
    """The kinds of table that a key may hold, itself or in a list or dictionary; states do not count."""
    return [model for model in dict.fromkeys(_models(kind)) if model is not State]


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    kind, _ = _bare(kind)
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        yield kind
        return
    for argument in typing.get_args(kind):
        yield from _models(argument) if typing.get_origin(kind) is not Literal else ()


def _is_list(kind: Any) -> bool:
    kind, _ = _bare(kind)
    return typing.get_origin(kind) is tuple or any(
        _is_list(a) for a in typing.get_args(kind) if typing.get_origin(kind) in (Union, types.UnionType)
    )


def _sentence(text: str) -> str:
    return text and f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _escape_markdown(text: str) -> str:
    """As Markdown would not have it otherwise."""
    for character in "\\|*<":
        text = text.replace(character, {"<": "&lt;"}.get(character, f"\\{character}"))
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the tables of the page anew."""
    import argparse

    parser = argparse.ArgumentParser(description="Writes the reference of the case file from the schema.")
    parser.add_argument("--out", type=Path, metavar="FILE.md", required=True, help="the page, whose prose is kept")
    out = parser.parse_args(arguments).out
    out.write_text(page(out.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
