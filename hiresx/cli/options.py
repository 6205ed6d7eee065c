"""Arguments and options that several verbs share."""

from typing import Annotated

import typer

CaseName = Annotated[str, typer.Argument(metavar="NAME|FILE.toml", help="A bundled case, a case file or its folder.")]
Preset = Annotated[str | None, typer.Option("--preset", metavar="P", help="A preset of the case, merged over it.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. --set time.cfl=0.4; may be repeated."),
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="auto|cpu|cuda|emulated",
        help="Where to compute; auto: a GPU if there is one. On several ranks also a list by rank: cuda:2,cpu:4.",
    ),
]
Ranks = Annotated[int | None, typer.Option("--ranks", metavar="N", min=1, help="How N ranks share the grid.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


def numbers(text: str | None, option: str, example: str) -> list[float] | None:
    """The numbers of a list with commas. Raises HiresxError for anything else."""
    from hiresx.errors import HiresxError

    if text is None:
        return None
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise HiresxError(f'{option} "{text[:40]}": not a list of numbers', f"e.g. {option} {example}") from None
