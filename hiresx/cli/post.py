"""`hiresx post`: analysis of runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from hiresx.cli import options, terminal

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
From = Annotated[float | None, typer.Option("--from", metavar="T", help="Leave out what was before this time.")]
To = Annotated[float | None, typer.Option("--to", metavar="T", help="Leave out what was after this time.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR|FILE",
        help="Folder for all files, or one file: .nc, .csv, .png, .svg, .pdf. RUN/post if absent.",
    ),
]
Segments = Annotated[int, typer.Option("--segments", metavar="N", help="Segments that a spectrum is the mean of.")]

post = typer.Typer(
    help="Analyse a run: spectra, the jet, correlations, modes, profiles. Numbers, netCDF, CSV and a picture.",
    no_args_is_help=True,
)


def _give(run: Path, out: Path | None, json: bool, make: Callable[[], Any]) -> int:
    """Make a result, write it, and print what was found."""
    with terminal.only_json(json):
        found = make()
        written = found.write(run / "post" if out is None else out)
    if json:
        terminal.print_json({**found.summary, "files": written})
        return 0
    tables = {key: value for key, value in found.summary.items() if _is_table(value)}
    terminal.mapping(found.name, {key: value for key, value in found.summary.items() if key not in tables})
    for key, rows in tables.items():
        terminal.table(key.replace("_", " "), list(rows[0]), [list(row.values()) for row in rows])
    for path in written:
        terminal.say(f"wrote {path}")
    return 0


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


@post.command("spectrum")
def spectrum(
    run: Folder,
    signals: Annotated[
        str, typer.Argument(metavar="NAME[.COLUMN_PLACE,...]", help="A history, e.g. lips.p or lips.p_0,p_1.")
    ],
    start: From = None,
    end: To = None,
    segments: Segments = 8,
    window: Annotated[str, typer.Option("--window", metavar="W", help="Of SciPy: hann, hamming, boxcar, ...")] = "hann",
    overlap: Annotated[float, typer.Option("--overlap", metavar="X", help="Part of a segment in the next one.")] = 0.5,
    ambient: Annotated[
        float | None,
        typer.Option("--ambient", metavar="PA", help="Ambient pressure in Pa: levels of p are dB re 20 uPa."),
    ] = None,
    length: Annotated[float, typer.Option("--length", metavar="L", help="Length of the Strouhal number, in L.")] = 1.0,
    velocity: Annotated[
        float, typer.Option("--velocity", metavar="U", help="Velocity of the Strouhal number, in c_ref.")
    ] = 1.0,
    prominence: Annotated[
        float | None,
        typer.Option("--prominence", metavar="DB", help="Height of a peak over its valleys; by statistics if absent."),
    ] = None,
    cross: Annotated[
        bool, typer.Option("--cross", help="Coherence and phase of the first signal with the others.")
    ] = False,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """Spectra of probes and other histories (Welch), their peaks, coherence and phase of pairs."""

    def make() -> Any:
        from hiresx.post.spectrum import spectrum as analyse

        return analyse(
            run, signals, start, end, segments, window, overlap, ambient, length, velocity, prominence, cross
        )

    return _give(run, out, json, make)


@post.command("jet")
def jet(
    run: Folder,
    start: From = None,
    end: To = None,
    lips: Annotated[
        str | None, typer.Option("--lips", metavar="NAME", help="History with a place at each lip; found if absent.")
    ] = None,
    line: Annotated[
        str | None,
        typer.Option("--line", metavar="NAME[.COLUMN]", help="History along the shear layer; found if absent."),
    ] = None,
    segments: Annotated[
        int | None, typer.Option("--segments", metavar="N", help="Of the spectra; by the expected tone if absent.")
    ] = None,
    pressure_ratio: Annotated[
        float | None,
        typer.Option("--pressure-ratio", metavar="PE/P", help="Exit over ambient pressure; the case's if absent."),
    ] = None,
    exit_mach: Annotated[
        float | None, typer.Option("--exit-mach", metavar="M", help="Mach number of the exit; the case's if absent.")
    ] = None,
    total_temperature: Annotated[
        float, typer.Option("--total-temperature", metavar="T", help="Of the jet, over the ambient temperature.")
    ] = 1.0,
    others: Annotated[
        list[Path] | None, typer.Option("--with", metavar="RUN", help="Another run to draw beside; may be repeated.")
    ] = None,
    points: Annotated[
        list[Path] | None,
        typer.Option("--points", metavar="CSV", help="Measured points with the columns Mj and Ls or St; repeatable."),
    ] = None,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """A planar under-expanded jet: shock cells, core, screech and its mode, beside theory; writes a page, jet.html."""

    def make() -> Any:
        from hiresx.post.jet import jet as analyse

        return analyse(
            run, start, end, lips, line, segments, pressure_ratio, exit_mach, total_temperature,
            others or (), points or (),
        )  # fmt: skip

    return _give(run, out, json, make)


@post.command("correlate")
def correlate(
    run: Folder,
    signals: Annotated[str, typer.Argument(metavar="NAME[.COLUMN]", help="A probe with a line, e.g. shear.v.")],
    start: From = None,
    end: To = None,
    at: Annotated[
        float | None,
        typer.Option("--at", metavar="S", help="Distance of the reference place from the first; middle if absent."),
    ] = None,
    longest: Annotated[float | None, typer.Option("--lag", metavar="T", help="The largest lag.")] = None,
    reach: Annotated[
        float, typer.Option("--reach", metavar="S", help="How far convection velocities look downstream.")
    ] = 1.5,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """Two-point and space-time correlations along a probe, integral scales, convection velocity."""

    def make() -> Any:
        from hiresx.post.correlate import correlate as analyse

        return analyse(run, signals, start, end, at, longest, reach)

    return _give(run, out, json, make)
