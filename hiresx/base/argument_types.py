"""Check of the arguments that a script gives to a public function, against the annotations of the function."""

import functools
import inspect
import numbers
import os
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from hiresx.errors import HiresxError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def check_types(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function that checks its arguments against the annotations of `function` and then calls it. Texts,
    numbers, paths, functions, lists of texts or numbers, and dictionaries are checked; arguments with other annotations
    are not. The returned function raises HiresxError, with the name of the argument, for an argument of another
    type."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        for name, given in signature.bind(*args, **kwargs).arguments.items():
            parameter = signature.parameters[name]
            several = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            wanted = _members(parameter.annotation)
            for value in given if several else (given,):
                if all(kind in _KINDS for kind in wanted) and not any(_KINDS[kind][0](value) for kind in wanted):
                    texts = [_KINDS[kind][1] for kind in wanted]
                    what = function.__qualname__.removesuffix(".__init__")
                    raise HiresxError(f"{name}: {value!r:.60} is not {' or '.join(texts)}", f"see help(hiresx.{what})")
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


_KINDS: dict[Any, tuple[Callable[[Any], bool], str]] = {
    type(None): (lambda value: value is None, "None"),
    str: (lambda value: isinstance(value, str), "a text"),
    Path: (lambda value: isinstance(value, os.PathLike), "a path"),
    int: (lambda value: isinstance(value, int | np.integer) and not isinstance(value, bool), "a whole number"),
    float: (_is_number, "a number"),
    Callable: (callable, "a function"),
    Iterable[str]: (lambda value: isinstance(value, str) or _is_list(str, value), "a list of texts"),
    Sequence[str]: (lambda value: _is_list(str, value), "a list of texts"),
    Sequence[float]: (lambda value: _is_list(numbers.Real, value), "a list of numbers"),
    Mapping[str, Any]: (lambda value: isinstance(value, Mapping), "a dictionary"),
}
