"""`hiresx post`: analysis of runs."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hiresx.cli import look_options as looks
from hiresx.cli import options, terminal

if TYPE_CHECKING:
    from hiresx.post import jet_theory

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
Subset = Annotated[str, typer.Option("--subset", metavar="NAME", help="Use this output.subset.")]
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
    """Whether a value is rows of numbers and names; what is nested deeper is printed line by line."""
    rows = isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
    return rows and not any(isinstance(cell, dict | list) for row in value for cell in row.values())


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
    others: Annotated[
        list[Path] | None, typer.Option("--with", metavar="RUN", help="Another run to draw beside; may be repeated.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", metavar="CSV", help="Levels to draw beside: columns f, level.")
    ] = None,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """Spectra of probes and other histories (Welch), their peaks, coherence and phase of pairs."""

    def make() -> Any:
        from hiresx.post.spectrum import spectrum as analyse

        return analyse(
            run, signals, start, end, segments, window, overlap, ambient, length, velocity, prominence, cross,
            others or (), reference,
        )  # fmt: skip

    return _give(run, out, json, make)


@post.command("jet")
def jet(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs; several share the page.")],
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
        float | None,
        typer.Option(
            "--total-temperature", metavar="T", help="Of the jet, over the ambient one; the case's if absent."
        ),
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", metavar="planar|round", help="Of the nozzle; the grid's if absent.")
    ] = None,
    points: Annotated[
        list[Path] | None,
        typer.Option("--points", metavar="CSV", help="Measured points with the columns Mj and Ls or St; repeatable."),
    ] = None,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """Under-expanded jets: shock cells, core, screech and its mode, beside theory; writes a page, jet.html.

    Several runs come onto one page, into the first one's folder; options that name a jet or its probes are for the
    first."""

    def make() -> Any:
        from hiresx.post.jet import jet as analyse

        return analyse(
            runs[0], start, end, lips, line, segments, pressure_ratio, exit_mach, total_temperature,
            cast("jet_theory.Shape | None", shape), runs[1:], points or (),
        )  # fmt: skip

    return _give(runs[0], out, json, make)


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


@post.command("azimuthal")
def azimuthal(
    run: Folder,
    signals: Annotated[str, typer.Argument(metavar="NAME[.COLUMN]", help="A probe with a ring, e.g. lip.p.")],
    start: From = None,
    end: To = None,
    segments: Segments = 8,
    length: Annotated[float, typer.Option("--length", metavar="L", help="Length of the Strouhal number, in L.")] = 1.0,
    velocity: Annotated[
        float, typer.Option("--velocity", metavar="U", help="Velocity of the Strouhal number, in c_ref.")
    ] = 1.0,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """Azimuthal modes of a ring of places around the x axis: axisymmetric, helical and flapping tones."""

    def make() -> Any:
        from hiresx.post.azimuthal import azimuthal as analyse

        return analyse(run, signals, start, end, segments, length, velocity)

    return _give(run, out, json, make)


@post.command("xt")
def xt(
    run: Folder,
    signals: Annotated[str, typer.Argument(metavar="NAME[.COLUMN]", help="A probe with a line, e.g. axis.p.")],
    start: From = None,
    end: To = None,
    fluctuations: Annotated[bool, typer.Option("--fluctuations", help="Less the mean at each place.")] = False,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """What the places of a probe see, over place and time."""

    def make() -> Any:
        from hiresx.post.xt import xt as analyse

        return analyse(run, signals, start, end, fluctuations)

    return _give(run, out, json, make)


@post.command("profile")
def profile(
    run: Folder,
    lines: Annotated[list[str], typer.Argument(metavar="LINE...", help="E.g. y=0, or x=2 x=5; in space y=0,z=0.")],
    variable: Annotated[
        str, typer.Option("--variable", metavar="V[,V...]", help="Variables and moments: u, rms_u, u_v, tke, ...")
    ] = "u",
    step: Annotated[
        int | None, typer.Option("--step", metavar="N", help="Fields of step N (-1: the last), not the averages.")
    ] = None,
    others: Annotated[
        list[Path] | None, typer.Option("--with", metavar="RUN", help="Another run to draw beside; may be repeated.")
    ] = None,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """Averages, or fields, along lines."""

    def make() -> Any:
        from hiresx.post.profile import profile as analyse

        return analyse(run, lines, [name.strip() for name in variable.split(",")], step, others or ())

    return _give(run, out, json, make)


@post.command("slice")
def slice(
    run: Folder,
    variable: Annotated[str, typer.Argument(metavar="VARIABLE", help="What to show, e.g. mach; of averages rms_p.")],
    step: Annotated[int, typer.Option("--step", metavar="N", help="Fields of step N; -1: the last.")] = -1,
    time: Annotated[float | None, typer.Option("--time", metavar="T", help="Fields nearest to this time.")] = None,
    averages: Annotated[bool, typer.Option("--averages", help="Show the averages.")] = False,
    subset: Subset = "fields",
    contours: looks.Contours = None,
    levels: looks.Levels = "10",
    plane: looks.Plane = None,
    limits: looks.Range = None,
    symmetric: looks.Symmetric = False,
    colours: looks.Colours = None,
    exponent: looks.Exponent = 0.5,
    zoom: looks.Zoom = None,
    title: looks.Title = None,
    width: looks.Width = 7.0,
    height: looks.Height = 9.2,
    font: looks.Font = 9.0,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """One variable on a plane of fields or averages: contour lines, zoom, colours as asked."""

    def make() -> Any:
        from hiresx.post.slice import slice as analyse

        look = looks.made(
            plane, limits, symmetric, colours, zoom, title, levels, contours=contours, exponent=exponent,
            width=width, height=height, font=font,
        )  # fmt: skip
        return analyse(run, variable, step if time is None else time, averages, subset, look)

    return _give(run, out, json, make)


@post.command("isosurface")
def isosurface(
    run: Folder,
    variable: Annotated[str, typer.Argument(metavar="VARIABLE", help="Of which, e.g. q_criterion.")],
    values: Annotated[str, typer.Argument(metavar="A[,B...]", help="Values that the surfaces have.")],
    by: Annotated[str | None, typer.Option("--by", metavar="V", help="Colours by this variable.")] = None,
    step: Annotated[int, typer.Option("--step", metavar="N", help="Fields of step N; -1: the last.")] = -1,
    time: Annotated[float | None, typer.Option("--time", metavar="T", help="Fields nearest to this time.")] = None,
    subset: Subset = "fields",
    clip: Annotated[
        str | None, typer.Option("--clip", metavar="A,B,...", help="Box: x from, to, y from, to, z from, to.")
    ] = None,
    camera: Annotated[
        str | None,
        typer.Option("--camera", metavar="A,E[,Z]", help="Azimuth and elevation in degrees, and zoom; or xy, xz, yz."),
    ] = None,
    opacity: Annotated[float, typer.Option("--opacity", metavar="X", help="Of the surfaces, above 0 to 1.")] = 1.0,
    limits: looks.Range = None,
    symmetric: looks.Symmetric = False,
    colours: looks.Colours = None,
    title: looks.Title = None,
    width: looks.Width = 7.0,
    font: looks.Font = 9.0,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE|DIR", help=".png, .svg, .pdf; .vtp, .ply, .stl: the surface itself."),
    ] = None,
    json: options.Json = False,
) -> int:
    """Surfaces on which a variable of a 3-D field has a value, coloured by another one (needs PyVista)."""

    def make() -> Any:
        from hiresx.post.isosurface import isosurface as analyse

        levels = options.numbers(values, "VALUES", "0.5,1") or ()
        box = options.numbers(clip, "--clip", "0,10,-3,3,-1,1")
        look = looks.made(None, limits, symmetric, colours, None, title, width=width, font=font)
        return analyse(run, variable, levels, by, step if time is None else time, subset, box, camera, opacity, look)

    return _give(run, out, json, make)


@post.command("animate")
def animate(
    run: Folder,
    variable: Annotated[str, typer.Argument(metavar="VARIABLE", help="What to show, e.g. schlieren.")],
    start: From = None,
    end: To = None,
    every: Annotated[int, typer.Option("--every", metavar="N", help="Take each N-th of the fields.")] = 1,
    fps: Annotated[float, typer.Option("--fps", metavar="N", help="Pictures a second.")] = 15.0,
    subset: Subset = "fields",
    plane: looks.Plane = None,
    limits: looks.Range = None,
    symmetric: looks.Symmetric = False,
    colours: looks.Colours = None,
    exponent: looks.Exponent = 0.5,
    zoom: looks.Zoom = None,
    title: looks.Title = None,
    width: looks.Width = 7.0,
    font: looks.Font = 9.0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help=".mp4 or .gif; RUN/post/animate_V.mp4 if absent.")
    ] = None,
    json: options.Json = False,
) -> int:
    """A film of one variable, MP4 or GIF."""
    with terminal.only_json(json):
        from hiresx.post.animate import animate as make

        look = looks.made(plane, limits, symmetric, colours, zoom, title, exponent=exponent, width=width, font=font)
        written = make(run, variable, out, start, end, every, fps, subset, look)
    if json:
        terminal.print_json({"files": [written]})
    else:
        terminal.say(f"wrote {written}")
    return 0


@post.command("spod")
def spod(
    run: Folder,
    variable: Annotated[str, typer.Argument(metavar="[VARIABLE]", help="Of what, e.g. p.")] = "p",
    start: From = None,
    end: To = None,
    length: Annotated[
        int | None,
        typer.Option("--length", metavar="N", help="Fields in a block; a quarter of them if absent."),
    ] = None,
    overlap: Annotated[float, typer.Option("--overlap", metavar="X", help="Part of a block in the next one.")] = 0.5,
    frequency: Annotated[
        float | None,
        typer.Option("--frequency", metavar="F", help="Frequency of the mode shown; the strongest if absent."),
    ] = None,
    subset: Subset = "fields",
    zoom: looks.Zoom = None,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """Modes that carry most energy at each frequency (spectral proper orthogonal decomposition) of plane fields."""

    def make() -> Any:
        from hiresx.post.spod import spod as analyse

        look = looks.made(zoom=zoom)
        return analyse(run, variable, start, end, length, overlap, frequency, subset, look)

    return _give(run, out, json, make)


@post.command("farfield")
def farfield(
    run: Folder,
    surface: Annotated[str, typer.Argument(metavar="SURFACE", help="Name of a [\\[surface]] of the case.")],
    observers: Annotated[
        str | None,
        typer.Option("--observers", metavar="X,Y,Z;...|CSV", help="Places in L, or a CSV file with columns x, y, z."),
    ] = None,
    arc: Annotated[
        str | None,
        typer.Option("--arc", metavar="R,A,B,N", help="N observers at the radius R, A to B degrees off the x axis."),
    ] = None,
    centre: Annotated[str, typer.Option("--centre", metavar="X,Y,Z", help="Of the arc.")] = "0,0,0",
    azimuth: Annotated[
        float, typer.Option("--azimuth", metavar="DEG", help="Half plane of the arc: 0 that of y > 0, 90 of z > 0.")
    ] = 0.0,
    start: From = None,
    end: To = None,
    caps: Annotated[
        str, typer.Option("--caps", metavar="average|each", help="Average the signals of several end caps, or not.")
    ] = "average",
    mach: Annotated[float, typer.Option("--mach", metavar="M", help="Of the stream outside, along x.")] = 0.0,
    ambient: Annotated[
        float | None,
        typer.Option("--ambient", metavar="PA", help="Ambient pressure in Pa: signals in Pa, levels re 20 uPa."),
    ] = None,
    still: Annotated[
        bool, typer.Option("--still", help="Runs from rest: each observer hears from its first sound on.")
    ] = False,
    segments: Segments = 8,
    window: Annotated[str, typer.Option("--window", metavar="W", help="Of SciPy: hann, hamming, boxcar, ...")] = "hann",
    overlap: Annotated[float, typer.Option("--overlap", metavar="X", help="Part of a segment in the next one.")] = 0.5,
    length: Annotated[float, typer.Option("--length", metavar="L", help="Length of the Strouhal number, in L.")] = 1.0,
    velocity: Annotated[
        float, typer.Option("--velocity", metavar="U", help="Velocity of the Strouhal number, in c_ref.")
    ] = 1.0,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """Sound that observers hear of a surface (Ffowcs Williams-Hawkings): signals, spectra, overall levels."""

    def make() -> Any:
        from hiresx.post.farfield import farfield as analyse
        from hiresx.post.observers import read

        heard = read(observers, arc, centre, azimuth)
        return analyse(
            run, surface, heard, start, end, caps, mach, ambient, still, segments, window, overlap, length, velocity
        )

    return _give(run, out, json, make)
