"""Arguments and options that several commands share."""

import math
from typing import Annotated, Any, overload

import typer

from hiresx.errors import HiresxError


def _finite(param: typer.CallbackParam, value: Any) -> Any:
    """Return the `value` of an option. Raises HiresxError for nan and inf."""
    if isinstance(value, float) and not math.isfinite(value):
        raise HiresxError(f"{param.opts[0]} {value:g} is not a finite number", "give a number, or leave the option out")
    return value


def option(name: str, metavar: str | None, text: str, also: str | None = None, **more: Any) -> Any:
    """Return the declaration of a command-line option for the library Typer. `name`: the option, such as "--out".
    `metavar`: the name of its value in the help. `text`: its help text. `also`: a second name. `more`: further
    arguments of typer.Option."""
    return typer.Option(*filter(None, (name, also)), metavar=metavar, help=text, **{"callback": _finite, **more})


def argument(metavar: str, text: str, **more: Any) -> Any:
    """Return the declaration of a positional command-line argument for the library Typer. `metavar`: its name in the
    help. `text`: its help text. `more`: further arguments of typer.Argument."""
    return typer.Argument(metavar=metavar, help=text, **more)


CaseName = Annotated[str, argument("NAME|FILE.toml", "A bundled case, a case file or its folder.")]
Preset = Annotated[
    list[str] | None,
    option(
        "--preset", "P", "A preset of the case, merged over it; of several, in the order given, the later one wins."
    ),
]
Overrides = Annotated[
    list[str] | None, option("--set", "KEY=VALUE", "Override a key, e.g. --set time.cfl=0.4; may be repeated.")
]
Unset = Annotated[
    list[str] | None,
    option(
        "--unset",
        "KEY",
        "Remove a key or a table of the case and its presets, ahead of --set, e.g. --unset implicit; may be repeated.",
    ),
]
Backend = Annotated[
    str,
    option(
        "--backend",
        "auto|cpu|cuda|emulated",
        "Where to compute; auto: a GPU if there is one. On several ranks also a list by rank: cuda:2,cpu:4.",
    ),
]
Ranks = Annotated[int | None, option("--ranks", "N", "Show how N ranks share the grid.", min=1)]
Json = Annotated[bool, option("--json", None, "Print JSON, and nothing else, on stdout.")]


@overload
def numbers(text: str, option: str, example: str, *counts: int) -> tuple[float, ...]:
    """Return the numbers in `text`, the value of the command-line option `option`, separated by commas. If there are
    `counts`, the number of entries must be one of them. For other texts raises HiresxError with the valid value
    `example`."""


@overload
def numbers(text: str | None, option: str, example: str, *counts: int) -> tuple[float, ...] | None:
    """Return the numbers in `text`, separated by commas, or None if `text` is None. `option`: the command-line option
    with the value `text`. `example`: a valid value, for the error message. `counts`: the allowed numbers of entries;
    none: any number."""


def numbers(text: str | None, option: str, example: str, *counts: int) -> tuple[float, ...] | None:
    """Return the numbers in `text`, the value of the command-line option `option`, separated by commas; None if `text`
    is None. `example`: a valid value, for the error message. `counts`: the allowed numbers of entries; none: any
    number. Raises HiresxError for a text that is not such a list."""
    if text is None:
        return None
    try:
        found = tuple(float(word) for word in text.split(","))
        right = not counts or (len(found) in counts and all(map(math.isfinite, found)))
    except ValueError:
        right = False
    if not right:
        wanted = f"{' or '.join(map(str, counts))} numbers" if counts else "a list of numbers"
        raise HiresxError(f'{option} "{text[:40]}": not {wanted}', f"e.g. {option} {example}")
    return found
