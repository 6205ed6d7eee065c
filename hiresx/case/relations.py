"""Numbers of a case that are computed from other numbers: by expressions in the case file, or by the function of
case.py that derives parameters.

A text that begins with "=" stands for a number, for example `end = "= grid.length + grid.sponge_length"`. It is an
expression of dotted keys of the same case. The preset and the overrides are applied first, and keys that are not given
have their defaults. Therefore a position given in this way changes together with the keys in its expression.
"""

import ast
import math
import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiresx.case import functions
from hiresx.case.error_messages import did_you_mean, dotted_key
from hiresx.errors import HiresxError

# Name of the function of case.py that computes further parameters.
DERIVED = "derived"
# Relative difference up to which two numbers count as equal.
SAME = 1e-9
# TOML's integers have 64 bits.
LARGEST_INTEGER = 2**63 - 1
# Keys whose values are texts for people and no formulas.
_PROSE = ("title", "description", "length_symbol", "presets")
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "abs": abs,
    "round": lambda value, digits=0: round(value, max(-400, min(digits, 400))) if digits else round(value),
}

# The least and the largest number of arguments of functions with more than one.
_ARGUMENTS: dict[str, tuple[int, float]] = {"min": (2, math.inf), "max": (2, math.inf), "round": (1, 2)}

Key = tuple[str | int, ...]


@dataclass(frozen=True)
class ResolvedRelations:
    """The tables of a case after its formulas were evaluated. `data`: the tables, with numbers in place of formulas.
    `formulas`: the text of each formula, by key. `derived`: the names of the parameters that case.py computed. `named`:
    the names of the parameters that the formulas use."""

    data: dict[str, Any]
    formulas: dict[Key, str]
    derived: dict[str, Any]
    named: set[str]


def is_formula(value: Any) -> bool:
    """Return whether `value`, an entry of a case file, is a text that begins with "=" and so gives a number by a
    formula."""
    return isinstance(value, str) and value.lstrip().startswith("=")


def resolve_relations(
    data: Any, directory: Path | None, file: str, defaults: Callable[[Key], Any]
) -> ResolvedRelations:
    """Return the case `data`, nested dictionaries with the structure of a case file, with numbers in place of all
    formulas (texts that begin with "="). The result also contains the texts of the formulas.

    `directory`: the folder of case.py, whose function `derived` computes further parameters, or None. `defaults`
    returns the default of a key that `data` lacks, and raises KeyError with the existing keys. Raises HiresxError,
    which names `file` and key, for a formula that is not valid, refers to itself or to a value that is not a number;
    for data that are no dictionary; for an integer beyond the 64 bits of TOML; and for parameters that contradict each
    other.
    """
    if not isinstance(data, Mapping):
        kind = type(data).__name__
        raise HiresxError(f"{file}: a case is made of a dictionary, not of a {kind}", "see docs/python.md")
    _check_integers(data, file)
    formulas = {path: text for path, text in _texts(data) if is_formula(text)}
    found = _Formulas(data, formulas, file, defaults)
    own = {path: found.value(path) for path in formulas if path[0] in ("parameters", "gas")}
    related = _with(data, own)
    more = _derived_parameters(related, directory, file)
    if more:
        parameters = {**related.get("parameters", {}), **more}
        related = {**related, "parameters": parameters}
    found.data = related
    related = _with(related, {path: found.value(path) for path in formulas})
    return ResolvedRelations(related, formulas, more, found.named)


def texts_back(dump: Mapping[str, Any], formulas: Mapping[Key, str], derived: Sequence[str]) -> dict[str, Any]:
    """Return the case `dump`, nested dictionaries with all defaults, in which formulas replace the numbers that were
    computed from them. `formulas`: the text of each formula by its key, a tuple such as ("time", "end"). `derived`: the
    names of parameters that case.py computes, which are left out."""
    result = _with(dump, {path: text for path, text in formulas.items() if _holds(dump, path)})
    kept = {name: value for name, value in (result.get("parameters") or {}).items() if name not in derived}
    return {**result, "parameters": kept}


def _texts(value: Any, path: Key = ()) -> Iterator[tuple[Key, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            if path or key not in _PROSE:
                yield from _texts(entry, (*path, key))
    elif isinstance(value, list | tuple):
        for n, entry in enumerate(value):
            yield from _texts(entry, (*path, n))


def _check_integers(data: Any, file: str, path: Key = ()) -> None:
    """Raises HiresxError, which names `file` and key, for an integer in `data` that TOML does not have."""
    if type(data) is int and abs(data) > LARGEST_INTEGER:
        raise HiresxError(f"{file}: {dotted_key(path)} is an integer of more than 64 bits", "give a smaller one")
    if isinstance(data, Mapping):
        for key, entry in data.items():
            _check_integers(entry, file, (*path, key))
    elif isinstance(data, list | tuple):
        for n, entry in enumerate(data):
            _check_integers(entry, file, (*path, n))


def _with(data: Any, values: Mapping[Key, Any]) -> Any:
    """Return a copy of `data` with these values at their positions."""
    if () in values:
        return values[()]
    if not values:
        return data
    within: dict[str | int, dict[Key, Any]] = {}
    for path, value in values.items():
        within.setdefault(path[0], {})[path[1:]] = value
    if isinstance(data, Mapping):
        return {key: _with(entry, within.get(key, {})) for key, entry in data.items()}
    return [_with(entry, within.get(n, {})) for n, entry in enumerate(data)]


def _holds(data: Any, path: Key) -> bool:
    for key in path:
        if isinstance(data, Mapping):
            there = key in data
        else:
            there = isinstance(data, list | tuple) and isinstance(key, int) and 0 <= key < len(data)
        if not there:
            return False
        data = data[key]
    return True


class _Formulas:
    """The formulas of a case. Each is evaluated when its value is needed. `named`: the parameters that they have
    used."""

    def __init__(self, data: Mapping[str, Any], formulas: Mapping[Key, str], file: str, defaults: Callable[[Key], Any]):
        self.data, self.named = data, set[str]()
        self._formulas, self._file, self._defaults = formulas, file, defaults
        self._known: dict[Key, Any] = {}
        self._open: list[Key] = []

    def value(self, path: Key) -> Any:
        """The number that the formula at `path` stands for."""
        if path in self._known:
            return self._known[path]
        if path in self._open:
            raise self._fault(path, f"it depends on itself, by {dotted_key(self._open[-1])}", "break the circle")
        self._open.append(path)
        text = self._formulas[path].lstrip()[1:].strip()
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._fault(path, "it is not an expression", 'write for instance "= grid.length + 5"') from None
        try:
            result = self._number(tree.body, path)
        except (ArithmeticError, TypeError, ValueError) as error:
            # the OverflowError of ** has its number before its text
            raise self._fault(path, f"it cannot be computed: {error.args[-1]}", "correct it") from None
        except RecursionError:
            what = "it has too many terms, or is the end of too long a chain of formulas"
            raise self._fault(
                path, what, "write it with fewer steps, or compute it in the function derived of case.py"
            ) from None
        if isinstance(result, complex) or not math.isfinite(result):
            raise self._fault(path, f"it is {result}", "correct it")
        if abs(result) > LARGEST_INTEGER:
            result = float(result)
        self._open.pop()
        self._known[path] = result
        return result

    def _number(self, node: ast.expr, path: Key) -> Any:
        """Return the value of `node`. Raises OverflowError for an integer beyond the range of real numbers, to bound
        its size."""
        value = self._compute(node, path)
        if type(value) is int:
            float(value)
        return value

    def _compute(self, node: ast.expr, path: Key) -> Any:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self._number(node.operand, path)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = self._number(node.left, path), self._number(node.right, path)
            if isinstance(node.op, ast.Pow) and abs(right) > 1000:
                raise self._fault(path, f"the exponent {right:g} is too large", "correct it")
            return _OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            self._check_arguments(node, node.func.id, path)
            return _FUNCTIONS[node.func.id](*(self._number(argument, path) for argument in node.args))
        key = _key(node)
        if key is None:
            raise self._fault(
                path,
                f"{ast.unparse(node)} is not allowed in it",
                f"it may hold numbers, dotted keys as grid.length or probe[0].x, + - * / **, {', '.join(_FUNCTIONS)}",
            )
        return self._of_key(key, path)

    def _check_arguments(self, call: ast.Call, name: str, path: Key) -> None:
        """Raises HiresxError for named arguments of a function, and for a wrong number of arguments."""
        if call.keywords:
            what = f"{ast.unparse(call)}: arguments have no names in it"
            raise self._fault(path, what, "give the numbers alone, as in max(1, 2)")
        least, most = _ARGUMENTS.get(name, (1, 1))
        if not least <= len(call.args) <= most:
            takes = f"{least}" if least == most else f"{least} or {most}" if most < math.inf else f"{least} or more"
            raise self._fault(path, f"{ast.unparse(call)}: {name} takes {takes}, not {len(call.args)}", "correct it")

    def _of_key(self, key: Key, path: Key) -> Any:
        if key[0] == "parameters" and len(key) > 1:
            self.named.add(str(key[1]))
        if key in self._formulas:
            return self.value(key)
        if _holds(self.data, key):
            value: Any = self.data
            for part in key:
                value = value[part]
        else:
            self._check_places(key, path)
            try:
                value = self._defaults(key)
            except KeyError as error:
                (there,) = error.args
                raise self._fault(
                    path, f"there is no {_formula_name(key)}", did_you_mean(dotted_key(key), there, "keys")
                ) from None
        if type(value) not in (int, float):
            what = "has no value" if value is None else f"is not a number: {value!r:.40}"
            raise self._fault(path, f"{_formula_name(key)} {what}", "name a key that is a number")
        return value

    def _check_places(self, key: Key, path: Key) -> None:
        """Raises HiresxError for an index in brackets beyond the end of a list of the case."""
        for n, part in enumerate(key):
            if isinstance(part, int) and _holds(self.data, key[:n]) and not _holds(self.data, key[: n + 1]):
                hint = f"the entries of {_formula_name(key[:n])} count from 0; without brackets where it is no list"
                raise self._fault(path, f"there is no {_formula_name(key[: n + 1])}", hint)

    def _fault(self, path: Key, what: str, hint: str) -> HiresxError:
        text = self._formulas[path]
        shown = text if len(text) <= 200 else f"{text[:200]}..."
        return HiresxError(f'{self._file}: {dotted_key(path)} = "{shown}": {what}', hint)


def _key(node: ast.expr) -> Key | None:
    """Return the key that consists of a name, attributes and indexes in brackets; None for another expression."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        before = _key(node.value)
        return before and (*before, node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is int:
        before = _key(node.value)
        return before and (*before, node.slice.value)
    return None


def valid_groups(alternatives: Any) -> tuple[tuple[str, ...], ...]:
    """Return the valid groups of the key `alternatives` of a case, each a tuple of names of parameters that exclude
    each other. Entries that are not lists, and names that are not strings, are left out; `Case` reports them as
    errors."""
    listed = alternatives if isinstance(alternatives, list | tuple) else ()
    return tuple(
        tuple(name for name in group if isinstance(name, str)) for group in listed if isinstance(group, list | tuple)
    )


def _derived_parameters(data: Mapping[str, Any], directory: Path | None, file: str) -> dict[str, Any]:
    """Return the parameters that the function `derived` of case.py computes. Of mutually exclusive parameters it
    receives the first one; the others must agree with its result."""
    call = functions.public_functions(directory).get(DERIVED)
    given = data.get("parameters") or {}
    if call is None or not isinstance(given, Mapping):
        return {}
    groups = valid_groups(data.get("alternatives"))
    passed = dict(given)
    for group in groups:
        there = [name for name in group if name in given]
        for name in there[1:]:
            del passed[name]
    table = data.get("gas")
    gas = types.SimpleNamespace(gamma=1.4, prandtl=0.72, reynolds=None)
    vars(gas).update(table if isinstance(table, Mapping) else {})
    try:
        values = functions.arguments(call, passed, gas)
        with functions.wrap_user_call(call, f'function "{DERIVED}"'):
            try:
                found = call(**values)
            except ValueError as error:
                # A ValueError says that the parameters do not describe a flow.
                raise HiresxError(f"parameters: {error}", "change these parameters") from None
    except HiresxError as error:
        raise HiresxError(f"{file}: {error.message}", error.hint) from None
    if not isinstance(found, Mapping):
        raise HiresxError(
            f'{file}: function "{DERIVED}" returned no dictionary', "it must return {name: value} of further parameters"
        )
    for name in given.keys() & found.keys():
        _agree(name, given, found[name], groups, file)
    return {
        str(name): value.item() if hasattr(value, "item") else value
        for name, value in found.items()
        if name not in given
    }


def _agree(name: str, given: Mapping[str, Any], value: Any, groups: Sequence[Sequence[str]], file: str) -> None:
    mine = given[name]
    same = mine == value
    if isinstance(mine, int | float) and isinstance(value, int | float):
        same = math.isclose(mine, value, rel_tol=SAME, abs_tol=SAME)
    if same:
        return
    group = next((group for group in groups if name in group), ())
    first = next((other for other in group if other in given), None)
    if first is not None and first != name:
        raise HiresxError(
            f"{file}: parameters: {first} = {given[first]:g} and {name} = {mine:g} contradict each other: with that "
            f"{first}, {name} is {value:.6g}",
            f"give one of {', '.join(group)}",
        )
    raise HiresxError(
        f"{file}: parameters.{name} = {mine} follows from the other parameters, and is {value:.6g}", "leave it out"
    )


def _formula_name(key: Key) -> str:
    """Return the key in the form of formulas, with indexes in brackets."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).removeprefix(".")
