"""Reading and writing of TOML. Errors name the line. Python's standard library can read TOML, but not write it."""

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hiresx.errors import HiresxError


def read(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file as a dictionary. Raises HiresxError if the file cannot be read, and, with line
    and column, if it is not valid TOML."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))  # some editors begin a file with a byte order mark
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at (.*)\)$", str(error))
        what = str(error)[: place.start()].strip() if place else str(error)
        raise HiresxError(
            f"{path}{f', {place[1]}' if place else ''}: not valid TOML: {what}", "correct the file there"
        ) from None
    except UnicodeDecodeError as error:
        raise HiresxError(f"{path}: byte {error.start} is not UTF-8", "save the file as UTF-8") from None
    except OSError as error:
        raise HiresxError(f"{path}: cannot be read: {error.strerror}", "check the file and its permissions") from None
    except RecursionError:
        raise HiresxError(f"{path}: not valid TOML: nested too deeply", "correct the file there") from None
    except ValueError:
        # Python does not convert integers of more than 4300 digits.
        what = f"{_long_integer(path)} is an integer of more than 64 bits"
        raise HiresxError(f"{path}: {what}", "give a smaller one") from None


def _long_integer(path: Path) -> str:
    """Return the line of the first integer in a file that Python cannot convert, and the beginning of that line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = (n for n, line in enumerate(lines, 1) if re.search(r"\d{4300}", line.replace("_", "")))
    number = next(found, 1)
    return f"line {number}: {lines[number - 1].strip():.40}..."


def value_text(value: Any) -> str:
    """Return `value` in TOML's notation; a dictionary becomes an inline table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return str(value)
        text = repr(value)
        return text if re.search(r"[.e]", text) else f"{text}.0"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {value_text(item)}" for key, item in value.items() if item is not None)
        return f"{{{inside}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(value_text, value))}]"
    return str(value)


def _quote(value: str) -> str:
    # JSON's escapes are a subset of TOML's; its surrogate pairs are not, so only ASCII is escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quote(key)


def dumps(document: Mapping[str, Any]) -> str:
    """Return the nested dictionary `document` as the text of a TOML file. Entries that are None and empty tables are
    left out."""
    return "\n".join(_table(document, ())).strip() + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain, tables = [], []
    for key, value in table.items():
        here = ".".join(map(_key, (*path, key)))
        if value is None or value == {} or value == []:
            continue
        # Below the second level an inline table reads better than a header.
        if isinstance(value, Mapping) and len(path) < 1:
            tables += ["", f"[{here}]", *_table(value, (*path, key))]
        elif not path and isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            for item in value:
                tables += ["", f"[[{here}]]", *_table(item, (*path, key))]
        else:
            plain.append(f"{_key(key)} = {value_text(value)}")
    return plain + tables
