"""The page docs/case-file.md, from the schema: `python -m hiresx.case.reference --out docs/case-file.md`.

What a key is, wants and defaults to is said once, in the models; a test holds the committed page to what this gives.
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

HEAD = """\
<!-- Generated from the schema: python -m hiresx.case.reference --out docs/case-file.md -->

# Case file

A case is a TOML file, usually `case.toml` in a folder of its own, and beside it a file `case.py` with the functions
that it names. Every table and key there is stands on this page; a key that does not is an error that names the key and
the one you probably meant. `hiresx check FILE` reads a case and everything that follows from it without running it.

```toml
title = "A box of gas at rest"

[grid]
generator = "box"
n = [16, 16, 1]
lower = [0.0, 0.0, 0.0]
upper = [1.0, 1.0, 0.0]

[time]
steps = 10

[initial]
state = { rho = 1.0, p = 0.7142857142857143 }

[[boundary]]
faces = "all"
type = "slip-wall"
```

## Scales

Density and **sound speed** of the ambient gas (or the free stream) and a length L: velocities are in c_ref, time in
L / c_ref, pressure in rho_ref c_ref^2. The ambient gas then has rho = 1, p = 1/gamma, T = gamma p / rho = 1.

## Presets and overrides

`[presets.NAME]` holds any of the keys below. `--preset NAME` merges it over the case: tables are merged, lists
(`boundary`, `sponge`, ...) replaced whole. `--set KEY=VALUE` comes last and may be repeated; the value is TOML (or a
number like `.5` and `1.`), and what is no TOML is taken as text; `--set boundary.0.type=symmetry` reaches into a list.
A layer that gives one of two keys that exclude each other takes the other one away: `time.dt` and `time.cfl`,
`initial.state` and `initial.function`, `every_time` and `every_steps` of `[output]`, `every` and `every_time` of
`[extrema]`, `[conservation]`, `[kinetic_energy]` and `[average]`. One that changes `grid.generator` or
`gas.viscosity.law` drops the keys that the new kind does not have. All presets of a file are checked whenever it is
read.

## Numbers that follow from others

A text that begins with `=` stands for a number, wherever a number is wanted: an expression of dotted keys of the same
case, numbers, `+ - * / **` and `min`, `max`, `sqrt`, `abs`, `round`. Entries of lists are counted from 0, in brackets.
It is computed last, after preset and overrides, so that what it places moves with the key that it names:

```toml
[[sponge]]
axis = "x"
start = "= grid.upper[0] - 0.2"                  # a larger box moves the sponge
end = "= grid.upper[0]"
strength = 1.0
state = { rho = 1.0, p = 0.7142857142857143 }

[[probe]]
name = "axis"
line = { start = [0.0, 0.5, 0.0], end = ["= sponge[0].start", 0.5, 0.0], n = "= round(20 * grid.upper[0]) + 1" }
```

In the `planar-jet`, `= grid.length` is where the sponge behind the jet begins. A key that is not given has its default.
Names that are not there, circles and what is no number are errors that name the key. Of grids whose size no key says,
of files above all, the ends of a sponge are named by a region or a face, at which it is then placed (see
[`[[sponge]]`](#sponge)):

```toml
[[sponge]]
axis = "x"
start = { region = "outlet", offset = -12.0 }
end = { region = "outlet" }                      # or { face = "imax", block = "wake" }
strength = 1.0
state = { rho = 1.0, p = 0.7142857142857143 }
```

A function `derived` of case.py gives further parameters: `derived(*, ...) -> {name: value}`, called when the case is
read, with the parameters that are given. What it returns other functions take like any parameter, and `hiresx check`
lists it. A `ValueError` that it raises says why there is no such flow. Where several parameters say the same in other
words, `alternatives` names them: one of each group is given, a preset or `--set` that gives another one takes its
place, and two that contradict each other are refused.

```toml
alternatives = [["pressure_ratio", "NPR", "Mj"]]

[parameters]
pressure_ratio = 2.09                            # --set parameters.Mj=1.32 takes its place
```

## Functions in case.py

Keyword-only arguments of a function get their values by name from `[parameters]`, and `gamma`, `prandtl`, `reynolds`
from `[gas]`. A parameter that no function and no formula takes is an error: it would be a misspelt one. x, y, z are
arrays of one shape; each of the values returned is an array that broadcasts to it, or a number.

| function | named by | called |
|---|---|---|
| `f(x, y, z, *, ...) -> (rho, u, v, w, p)` | `initial.function` | once, or for each piece of a large block |
| `f(x, y, z, t, *, ...) -> (rho, u, v, w, p)` | `boundary.function` | once, or at every stage if not `steady` |
| `f(x, y, z, *, ...) -> s` | `scalar.initial` | as `initial.function` |
| `f(x, y, z, t, *, ...) -> s` | `boundary.scalars` | once; on a `profile-inflow` that is not `steady` at every stage |
| `f(x, y, z, *, ...) -> (rho, u, v, w, p)` | `sponge.function` | once |
| `f(simulation, *, ...) -> {name: number}` | `monitors` | every `monitor.every` steps |
| `derived(*, ...) -> {name: value}` | its own name | when the case is read: parameters that follow from others |
| `exact(x, y, z, t, *, ...) -> (rho, u, v, w, p)` | its own name | by `hiresx plot`, which draws it beside 1-D fields |

A function of a boundary that is not `steady` may give a quantity that swings at known frequencies as
`hiresx.Waves(mean, frequency, cos, sin)`: it is then called at the start alone, and the device computes the sums
([how](how-do-i.md#give-my-own-boundary-profile-or-initial-state)).

What they return at a node may depend on that node alone: a grid may be cut among ranks, and initial states of blocks
with many nodes are made in pieces, several at a time on threads of their own.

### When it is executed

case.py is a program, and reading a case runs it: all that it says outside its functions, with the rights of whoever
gave the command. Nothing shields the machine from it, so **look into a case.py that came from someone else before
giving its folder to any of these**:

- `hiresx run`, `launch`, `check`, `scaling`, `info` and `topo plan --case` of a case, and `load` and `Simulation` in
  Python, run the case.py beside the case file, `check` and `info` too, though they compute no step;
- a run keeps its case in `RUN/case/`: `hiresx plot RUN`, and `hiresx run --restart RUN` where a boundary, a sponge or a
  monitor names a function, run `RUN/case/case.py`, whoever's run it was.

Case files without a case.py, grids, connectivity files, recordings of machines, fields, histories, averages,
checkpoints and run.json are data: nothing in them is executed, and `hiresx info RUN`, `history` and `diff` run nothing.
Compiled kernels are taken from the cache (`HIRESX_CACHE`, or `~/.cache/hiresx`), which must be nobody's but yours.

## The keys

"Default" says `required` where a key has none, and nothing where it may be absent.
"""


def page() -> str:
    """The whole page."""
    tables = [(name, field) for name, field in Case.model_fields.items() if _tables(field.annotation)]
    others = [(name, field) for name, field in Case.model_fields.items() if not _tables(field.annotation)]
    lines = [HEAD.rstrip(), "", "## Keys outside all tables", "", *_rows(others)]
    for name, field in tables:
        lines += _section(name, field, 2)
    lines += ["", "## A state", "", *_about(State), *_rows(State.model_fields.items())]
    return "\n".join(lines) + "\n"


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
    lines += [_escaped(_sentence(field.description or ""))]
    shared = [name for name in models[0].model_fields if all(name in m.model_fields for m in models)]
    shared = [name for name in shared if len({m.model_fields[name].description for m in models}) == 1]
    shared = [name for name in shared if models[0].model_fields[name].description]
    if shared:
        lines += ["", "Of every kind:", "", *_rows((name, models[0].model_fields[name]) for name in shared)]
    for model in models:
        key = next((name for name, f in model.model_fields.items() if _fixed(f)), None)
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
    lines = _escaped(inspect.cleandoc(model.__doc__ or "")).splitlines()
    if issubclass(model, ViscosityLaw):
        lines.append(f"mu / mu_ref = `{model.formula}`.")
    return [*lines, ""]


def _rows(fields: Any) -> list[str]:
    """A table of keys."""
    lines = ["| key | value | default | |", "|---|---|---|---|"]
    for name, field in fields:
        kind, default = _type(field.annotation, field.metadata), _default(field)
        lines.append(f"| `{name}` | {kind} | {default} | {_escaped(field.description or '')} |")
    return lines


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "required"
    if value is None or isinstance(value, BaseModel) or value in ((), {}, ""):
        return ""
    return f"`{value_text(list(value) if isinstance(value, tuple) else value)}`"


def _type(kind: Any, metadata: Sequence[Any] = ()) -> str:
    """What a key wants, in words."""
    kind, metadata = _bare(kind, metadata)
    if listed := _listed(metadata):
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
    for extra in metadata:
        for kind, sign, name in ((Gt, ">", "gt"), (Ge, ">=", "ge"), (Lt, "<", "lt"), (Le, "<=", "le")):
            if isinstance(extra, kind):
                found.append(f" {sign} {getattr(extra, name):g}")
    return ",".join(found)


def _bare(kind: Any, metadata: Sequence[Any] = ()) -> tuple[Any, list[Any]]:
    """A type without what is annotated, and all of that in one list."""
    found = list(metadata)
    while typing.get_origin(kind) is Annotated:
        kind, *extras = typing.get_args(kind)
        for extra in extras:
            found += extra.metadata if isinstance(extra, FieldInfo) else [extra]
    return kind, found


def _listed(metadata: Sequence[Any]) -> Callable[[], list[str]] | None:
    """What lists the choices that a key is checked against."""
    for extra in metadata:
        if isinstance(extra, AfterValidator):
            return inspect.getclosurevars(extra.func).nonlocals.get("listed")
    return None


def _fixed(field: FieldInfo) -> bool:
    """Whether a key says which kind of table this is."""
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


def _escaped(text: str) -> str:
    """As Markdown would not have it otherwise."""
    for character in "\\|*<":
        text = text.replace(character, {"<": "&lt;"}.get(character, f"\\{character}"))
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the page, or write it."""
    import argparse

    parser = argparse.ArgumentParser(description="The reference of the case file, from the schema.")
    parser.add_argument("--out", type=Path, metavar="FILE.md", help="write it there instead of printing it")
    out = parser.parse_args(arguments).out
    if out is None:
        print(page(), end="")
    else:
        out.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
