"""Check of the arguments that a script gives to a public function, against the annotations of the function."""

import functools
import inspect
import numbers
import os
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from hiresx.errors import HiresxError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def check_types(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function that checks its arguments against the annotations of `function` and then calls it. Texts,
    numbers, paths, functions, lists of texts or numbers, dictionaries, and objects and lists of objects of a class of
    this package are checked; arguments with other annotations are not. The returned function raises HiresxError, with
    the name of the argument, for an argument of another type, for a missing argument and for one that `function` does
    not have."""
    signature = inspect.signature(function)
    what = function.__qualname__.removesuffix(".__init__")
    names = ", ".join(name for name in signature.parameters if name != "self")

    @functools.wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            takes = f"its arguments are {names}" if names else "it has no arguments"
            raise HiresxError(f"{what}: {error}", f"{takes}; see its documentation") from None
        for name, given in bound.arguments.items():
            parameter = signature.parameters[name]
            several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            wanted = _members(parameter.annotation)
            for value in given if several else (given,):
                kinds = [_KINDS.get(kind) or _kind_of_class(kind, alone=len(wanted) == 1) for kind in wanted]
                if all(kinds) and not any(kind.is_met(value) for kind in kinds if kind):
                    texts = [kind.text for kind in kinds if kind]
                    raise HiresxError(
                        f"{name}: {value!r:.60} is not {' or '.join(texts)}", f"see the documentation of {what}"
                    )
        return function(*args, **kwargs)

    return checked


def _members(annotation: Any) -> list[Any]:
    """Return the types of a union; of another annotation, the type alone. Callables are all of one type."""
    if isinstance(annotation, UnionType):
        return [kind for member in typing.get_args(annotation) for kind in _members(member)]
    return [Callable if typing.get_origin(annotation) is Callable else annotation]


def _is_list(kind: type, value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and _is_list(kind, value.tolist())
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return False
    return isinstance(value, Iterator) or all(isinstance(entry, kind) for entry in value)  # an iterator is used once


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real | np.floating) and not isinstance(value, bool)


class _Kind(NamedTuple):
    is_met: Callable[[Any], bool]
    text: str  # to be read after "is not"


def _kind_of_class(annotation: Any, alone: bool) -> _Kind | None:
    """Return the check of an annotation that is a class of this package or a sequence of its objects, else None.
    `alone`: whether it is not part of a union; functions check unions with classes themselves."""
    of = typing.get_args(annotation)
    if typing.get_origin(annotation) is Sequence and _is_ours(of[0]):
        return _Kind(lambda value: _is_list(of[0], value), f"a list of objects of the class {of[0].__name__}")
    if alone and _is_ours(annotation):
        return _Kind(lambda value: isinstance(value, annotation), f"an object of the class {annotation.__name__}")
    return None


def _is_ours(kind: Any) -> bool:
    return inspect.isclass(kind) and kind.__module__.partition(".")[0] == "hiresx"


_KINDS: dict[Any, _Kind] = {
    type(None): _Kind(lambda value: value is None, "None"),
    str: _Kind(lambda value: isinstance(value, str), "a text"),
    Path: _Kind(lambda value: isinstance(value, os.PathLike), "a path"),
    os.PathLike[str]: _Kind(lambda value: isinstance(value, os.PathLike), "a path"),
    int: _Kind(lambda value: isinstance(value, int | np.integer) and not isinstance(value, bool), "a whole number"),
    float: _Kind(_is_number, "a number"),
    Callable: _Kind(callable, "a function"),
    Iterable[str]: _Kind(lambda value: isinstance(value, str) or _is_list(str, value), "a list of texts"),
    Sequence[str]: _Kind(lambda value: _is_list(str, value), "a list of texts"),
    Sequence[float]: _Kind(lambda value: _is_list(numbers.Real, value), "a list of numbers"),
    Mapping[str, Any]: _Kind(lambda value: isinstance(value, Mapping), "a dictionary"),
}
