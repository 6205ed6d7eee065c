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
    typer.Option("--backend", metavar="auto|cpu|cuda|emulated", help="Where to compute; auto: a GPU if there is one."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
