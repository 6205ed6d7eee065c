"""Groups of options that several commands share: a parameter of a command can be a dataclass whose fields are options
or arguments of Typer."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin


class Only:
    """An annotation that restricts an option group to the named fields of its dataclass, as in `Annotated[Options,
    Only("zoom")]`. The other fields keep their defaults."""

    def __init__(self, *fields: str):
        self.fields = fields


def expand_option_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for Typer that calls `command`. Each parameter of `command` that is a dataclass of options is
    replaced by one parameter for each field, in the order of the fields."""
    groups = {p.name: group for p in inspect.signature(command).parameters.values() if (group := _group(p))}

    def call(**given: Any) -> Any:
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in fields})
            for name, (kind, fields) in groups.items()
        }
        return command(**given, **made)

    shown: list[Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        _, fields = groups.get(parameter.name, (None, None))
        shown += [parameter] if fields is None else map(_parameter, fields)
    return with_parameters(call, command, shown)


def with_parameters(
    call: Callable[..., Any], command: Callable[..., Any], parameters: Iterable[Parameter]
) -> Callable[..., Any]:
    """Return a function for Typer with the signature `parameters` that calls `call`, which takes keyword arguments. The
    function has the name and the docstring of `command`, from which Typer makes the help text."""
    functools.update_wrapper(call, command)
    shown = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return call


def _group(parameter: Parameter) -> tuple[type, list["dataclasses.Field[Any]"]] | None:
    """Return the dataclass of a parameter and the fields of it that become options; None for a parameter of another
    kind."""
    kind, only = parameter.annotation, None
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        only = next((note.fields for note in notes if isinstance(note, Only)), None)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return None
    return kind, [field for field in dataclasses.fields(kind) if only is None or field.name in only]


def _parameter(field: "dataclasses.Field[Any]") -> Parameter:
    default = Parameter.empty if field.default is dataclasses.MISSING else field.default
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=field.type)
