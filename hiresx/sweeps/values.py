"""The varied keys of a sweep with their values, as written in `--set KEY=V,V,...`."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hiresx.case.loader import parse_override
from hiresx.case.toml import value_text
from hiresx.errors import HiresxError

# The name of the preset among the keys.
PRESET = "preset"
MOST = 10_000
_CLOSING = {"[": "]", "{": "}"}


def split_values(text: str, what: str) -> list[str]:
    """Return the parts of `text` between commas, except commas within brackets, braces or quotes. `what`: the name of
    the option that contains the text, for messages. Raises HiresxError for an empty part and for a bracket or quote
    that is not closed."""
    parts: list[str] = []
    open_: list[str] = []
    part = quote = ""
    characters = iter(text)
    for c in characters:
        if quote:
            part += c + (next(characters, "") if c == "\\" and quote == '"' else "")
            quote = "" if c == quote else quote
            continue
        if c == "," and not open_:
            parts.append(part.strip())
            part = ""
            continue
        if c in "\"'":
            quote = c
        elif c in _CLOSING:
            open_.append(_CLOSING[c])
        elif c in _CLOSING.values() and (not open_ or open_.pop() != c):
            raise HiresxError(f'{what}: the "{c}" closes nothing', _WRITE)
        part += c
    if quote or open_:
        raise HiresxError(f"{what}: a {quote or open_[-1]} is missing", _WRITE)
    parts.append(part.strip())
    if not all(parts):
        raise HiresxError(f"{what}: a value is missing" if len(parts) > 1 else f"{what}: no value", _WRITE)
    return parts


_WRITE = "write for instance --set time.cfl=0.3,0.5, of lists --set 'grid.n=[32,32,1],[64,64,1]'"


def parse(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Return the keys of a sweep and their values from `texts`, each KEY=V,V,... with values in the notation of TOML.
    Raises HiresxError for a text of another form and for a key that occurs twice."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        key = key.strip()
        if not equals:
            raise HiresxError(f"--set {text}: not of the form key=value,value", _WRITE)
        if key in found:
            raise HiresxError(f"--set {key} is given twice", f"write all its values after one: --set {key}=V,V,...")
        found[key] = [parse_override(f"{key}={part}")[1] for part in split_values(values, f"--set {text}")]
    return found


def combinations(axes: Mapping[str, Sequence[Any]], zipped: bool) -> Iterator[dict[str, Any]]:
    """Yield the values of all keys in each run of a sweep. `axes`: the list of values of each key. If `zipped` is
    false, all combinations are made, and the last key changes first. Otherwise the first values of all keys are
    combined, then the second, and so on; a key with a single value has this value in every run. Raises HiresxError if
    the numbers of values do not match, if a key has no values, and for too many runs."""
    for key, values in axes.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise HiresxError(
                f"{key}: {values!r:.60} is not a list of values", f"write for instance {{{key!r}: [1, 2]}}"
            )
        if not values:
            raise HiresxError(f"{key}: no value", "give one or more")
    if not axes:
        raise HiresxError("there is nothing to sweep over", _WRITE)
    lengths = {key: len(values) for key, values in axes.items()}
    total = max(lengths.values()) if zipped else math.prod(lengths.values())
    if zipped and {n for n in lengths.values() if n > 1} - {total}:
        counts = ", ".join(f"{key} {n}" for key, n in lengths.items())
        raise HiresxError(
            f"--zip: the keys have different numbers of values: {counts}", "give each the same number, or one"
        )
    if total > MOST:
        raise HiresxError(
            f"{total} runs are more than the {MOST} of a sweep", "give fewer values, or make several sweeps"
        )
    if zipped:
        columns = [list(values) * (total if len(values) == 1 else 1) for values in axes.values()]
        rows: Any = zip(*columns, strict=True)
    else:
        rows = itertools.product(*axes.values())
    return (dict(zip(axes, row, strict=True)) for row in rows)


def format_value(value: Any) -> str:
    """Return `value` as text for messages and tables: a string without quotes, any other value in the notation of
    TOML."""
    return value if isinstance(value, str) else value_text(value)
