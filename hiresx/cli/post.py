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
LOOK = "Look"
Subset = Annotated[str, typer.Option("--subset", metavar="NAME", help="Use this output.subset.")]
Plane = Annotated[str | None, typer.Option("--plane", metavar="z=0", help="Of a 3-D field.", rich_help_panel=LOOK)]
Range = Annotated[
    str | None, typer.Option("--range", metavar="A,B", help="Least and greatest colour.", rich_help_panel=LOOK)
]
Symmetric = Annotated[bool, typer.Option("--symmetric", help="Colours alike around 0.", rich_help_panel=LOOK)]
Colours = Annotated[
    str | None, typer.Option("--colours", metavar="MAP", help="A map of matplotlib.", rich_help_panel=LOOK)
]
Zoom = Annotated[
    str | None,
    typer.Option("--zoom", metavar="A,B,C,D", help="Least, greatest horizontal, then vertical.", rich_help_panel=LOOK),
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="In place of ours.", rich_help_panel=LOOK)]
Width = Annotated[float, typer.Option("--width", metavar="INCHES", help="Of the picture.", rich_help_panel=LOOK)]
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


def _look(
    plane: str | None, limits: str | None, symmetric: bool, colours: str | None, zoom: str | None, title: str | None,
    width: float = 7.0,
) -> Any:  # fmt: skip
    from hiresx.errors import HiresxError
    from hiresx.post.view import Look

    ends, box = options.numbers(limits, "--range", "0,2"), options.numbers(zoom, "--zoom", "0,10,-3,3")
    if ends is not None and len(ends) != 2:
        raise HiresxError(f'--range "{limits}" is not two numbers', "e.g. --range 0,2")
    if box is not None and len(box) != 4:
        raise HiresxError(f'--zoom "{zoom}" is not four numbers', "e.g. --zoom 0,10,-3,3")
    if not 2 <= width <= 30:
        raise HiresxError(f"a picture {width:g} inches wide cannot be", "give --width between 2 and 30")
    return Look(plane, tuple(ends) if ends else None, symmetric, colours, tuple(box) if box else None, width, title)


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
    contours: Annotated[
        str | None, typer.Option("--contours", metavar="V", help="Lines of this variable over it.")
    ] = None,
    levels: Annotated[
        str, typer.Option("--levels", metavar="N|A,B,...", help="Number of the lines, or their values.")
    ] = "10",
    plane: Plane = None,
    limits: Range = None,
    symmetric: Symmetric = False,
    colours: Colours = None,
    zoom: Zoom = None,
    title: Title = None,
    width: Width = 7.0,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """One variable on a plane of fields or averages: contour lines, zoom, colours as asked."""

    def make() -> Any:
        from hiresx.post.slice import slice as analyse

        values = options.numbers(levels, "--levels", "0.5,1")
        chosen = int(values[0]) if levels.strip().isdigit() else tuple(values)
        look = _look(plane, limits, symmetric, colours, zoom, title, width)
        return analyse(run, variable, step if time is None else time, averages, subset, contours, chosen, look)

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
    plane: Plane = None,
    limits: Range = None,
    symmetric: Symmetric = False,
    colours: Colours = None,
    zoom: Zoom = None,
    title: Title = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help=".mp4 or .gif; RUN/post/animate_V.mp4 if absent.")
    ] = None,
    json: options.Json = False,
) -> int:
    """A film of one variable, MP4 or GIF."""
    with terminal.only_json(json):
        from hiresx.post.animate import animate as make

        look = _look(plane, limits, symmetric, colours, zoom, title)
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
    zoom: Zoom = None,
    out: Out = None,
    json: options.Json = False,
) -> int:
    """Modes that carry most energy at each frequency (spectral proper orthogonal decomposition) of plane fields."""

    def make() -> Any:
        from hiresx.post.spod import spod as analyse

        look = _look(None, None, False, None, zoom, None)
        return analyse(run, variable, start, end, length, overlap, frequency, subset, look)

    return _give(run, out, json, make)


@post.command("farfield")
def farfield(
    run: Folder,
    surface: Annotated[str, typer.Argument(metavar="SURFACE", help="Name of a [[surface]] of the case.")],
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
        bool, typer.Option("--still", help="Before the first sample the surface was as in it: of runs from rest.")
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
