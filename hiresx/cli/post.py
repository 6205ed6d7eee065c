"""`hiresx post`: analysis of runs. The functions here declare the options of the commands. `_analysis` makes the
commands from them, which return the exit status 0; errors are raised as HiresxError."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from hiresx.cli import options, terminal
from hiresx.cli.look_options import LookOptions
from hiresx.cli.option_groups import Only, expand_option_groups, with_parameters
from hiresx.cli.options import argument, option
from hiresx.errors import HiresxError

Folder = Annotated[Path, argument("RUN", "Folder of a run.")]
Out = Annotated[
    Path | None,
    option("--out", "DIR|FILE", "Folder for all files, or one file: .nc, .csv, .png, .svg, .pdf. RUN/post if absent."),
]
Subset = Annotated[str, option("--subset", "NAME", "Use this output.subset.")]
PointsPerWave = Annotated[
    float | None, option("--points-per-wave", "N", "Points per wavelength that resolve sound; 8.", min=2)
]
Segments = Annotated[int, option("--segments", "N", "Number of segments of a spectrum.")]
Others = Annotated[list[Path] | None, option("--with", "RUN", "Also draw another run; may be repeated.")]
SurfaceFile = Annotated[
    Path | None, option("--out", "FILE|DIR", ".png, .svg, .pdf; .vtp, .ply, .stl: the surface itself.")
]
SurfaceLook = Annotated[LookOptions, Only("limits", "symmetric", "colours", "title", "width", "height", "font")]
FilmLook = Annotated[
    LookOptions,
    Only("plane", "limits", "symmetric", "colours", "exponent", "zoom", "title", "width", "height", "font"),
]


@dataclass(frozen=True)
class TimeRange:
    """Options that choose a range of times, in L / c_ref."""

    start: Annotated[float | None, option("--from", "T", "Leave out earlier times.")] = None  # fmt: skip
    end: Annotated[float | None, option("--to", "T", "Leave out later times.")] = None  # fmt: skip


@dataclass(frozen=True)
class Welch:
    """Options of a power spectrum by Welch's method."""

    segments: Segments = 8
    window: Annotated[str, option("--window", "W", "Of SciPy: hann, hamming, boxcar, ...")] = "hann"
    overlap: Annotated[float, option("--overlap", "X", "Overlap of segments, as a part of one.")] = 0.5


@dataclass(frozen=True)
class Strouhal:
    """Options that give the scales of a Strouhal number."""

    length: Annotated[float, option("--length", "L", "Length of the Strouhal number, in L.")] = 1.0
    velocity: Annotated[float, option("--velocity", "U", "Velocity of the Strouhal number, in c_ref.")] = 1.0


@dataclass(frozen=True)
class Frame:
    """Options that choose the fields of one time."""

    step: Annotated[
        int | None, option("--step", "N", "Fields of step N; -1 or absent: the last, -2: the one before.")
    ] = None
    time: Annotated[float | None, option("--time", "T", "Fields nearest to this time.")] = None

    def arguments(self) -> dict[str, Any]:
        """Return {"which": value}, an argument of `Run.fields`: the number of the time step (an integer) or the time (a
        float) of the fields to read. Raises HiresxError if both --step and --time are given."""
        if self.step is not None and self.time is not None:
            raise HiresxError("--step and --time both choose the fields", "give one of them")
        return {"which": self.step if self.time is None else self.time}


@dataclass(frozen=True)
class Observers:
    """Options that place observers of sound."""

    observers: Annotated[
        str | None, option("--observers", "X,Y,Z;...|CSV", "Places in L, or a CSV file with columns x, y, z.")
    ] = None
    arc: Annotated[
        str | None, option("--arc", "R,A,B,N", "N observers at the radius R, A to B degrees off the x axis.")
    ] = None
    centre: Annotated[str | None, option("--centre", "X,Y,Z", "Centre of the arc; 0,0,0 if absent.")] = None
    azimuth: Annotated[
        float | None, option("--azimuth", "DEG", "Half plane of the arc: 0 (or absent) that of y > 0, 90 of z > 0.")
    ] = None
    azimuths: Annotated[
        int | None,
        option("--azimuths", "N", "So many observers around the axis at each angle of the arc, and their mean.", min=1),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Return {"observers": value}, an argument of the analysis: the positions of the observers. Raises HiresxError
        for a file or an arc of observers that is not valid."""
        from hiresx.cli.observers import read

        return {"observers": read(**vars(self))}


post = typer.Typer(
    help="Analyse a run: spectra, the jet, correlations, modes, profiles. Numbers, netCDF, CSV and a picture.",
    no_args_is_help=True,
)


def _analysis(name: str, out: Any = Out) -> Callable[[Callable[..., Any]], Callable[..., int]]:
    """Decorate a function so that its options become those of the command `hiresx post NAME`. The command calls the
    function of that name in `hiresx.post` with the options that are given, by their names; entries that the decorated
    function returns replace some of them. It also has the options --out (as `out` says) and --json, writes the `Result`
    and prints it."""
    written = [Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=out)]
    written += [Parameter("json", Parameter.KEYWORD_ONLY, default=False, annotation=options.Json)]

    def register(analysis: Callable[..., Any]) -> Callable[..., int]:
        def collect(**given: Any) -> dict[str, Any]:
            changed = analysis(**given) or {}
            return _arguments(given) | changed

        own = inspect.signature(analysis).parameters.values()
        call, function = expand_option_groups(with_parameters(collect, analysis, own)), name.replace("-", "_")

        def command(out: Path | None, json: bool, **given: Any) -> int:
            with terminal.only_json(json):
                arguments = call(**given)
                found = getattr(import_module(f"hiresx.post.{function}"), function)(**arguments)
                files = found.write(arguments["run"] / "post" if out is None else out)
            _show(found, files, json)
            return 0

        parameters = [*inspect.signature(call).parameters.values(), *written]
        return post.command(name)(with_parameters(command, analysis, parameters))

    return register


def _arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an analysis from its options and groups of options; absent options are left out."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if not is_dataclass(value):
            found[name] = value
        else:
            found |= value.arguments() if hasattr(value, "arguments") else vars(value)
    return {name: value for name, value in found.items() if value is not None}


def _show(found: Any, written: list[Path], json: bool) -> None:
    """Print a result and the names of its files."""
    if json:
        terminal.print_json({**found.summary, "files": written, "replaced": found.replaced})
        return
    tables = {key: value for key, value in found.summary.items() if _is_table(value)}
    plain = {key: value for key, value in found.summary.items() if key not in tables and key != "warnings"}
    terminal.mapping(found.name, plain)
    for key, rows in tables.items():
        terminal.table(key.replace("_", " "), list(rows[0]), [list(row.values()) for row in rows])
    for warning in found.summary.get("warnings", ()):
        terminal.say(f"warning: {warning}")
    for path in written:
        terminal.say(f"wrote {path}{', in place of the one that was there' if path in found.replaced else ''}")


def _is_table(value: Any) -> bool:
    """True if a value consists of rows of numbers and names; deeper values are printed line by line."""
    rows = isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
    return rows and not any(isinstance(cell, dict | list) for row in value for cell in row.values())


@_analysis("spectrum")
def spectrum(
    run: Folder,
    signals: Annotated[str, argument("NAME[.COLUMN_PLACE,...]", "A history, e.g. lips.p or lips.p_0,p_1.")],
    times: TimeRange,
    welch: Welch,
    ambient: Annotated[
        float | None, option("--ambient", "PA", "Ambient pressure in Pa: levels of p are dB re 20 uPa.")
    ] = None,
    *,
    strouhal: Strouhal,
    prominence: Annotated[
        float | None, option("--prominence", "DB", "Height of a peak over its minima; by statistics if absent.")
    ] = None,
    cross: Annotated[bool, option("--cross", None, "Coherence and phase of the first signal with the others.")] = False,
    others: Others = None,
    reference: Annotated[Path | None, option("--reference", "CSV", "Also draw levels: columns f, level.")] = None,
    points_per_wave: PointsPerWave = None,
) -> Any:
    """Compute power spectra of histories by Welch's method, their peaks, and coherence and phase of pairs of signals.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""


@_analysis("jet")
def jet(
    run: Annotated[list[Path], argument("RUN...", "Folders of runs; several share the page.")],
    times: TimeRange,
    lips: Annotated[
        str | None, option("--lips", "NAME", "History with a point at each lip; searched if absent.")
    ] = None,
    line: Annotated[
        str | None, option("--line", "NAME[.COLUMN]", "History along the shear layer; searched if absent.")
    ] = None,
    segments: Annotated[
        int | None, option("--segments", "N", "Segments of the spectra; by the expected tone if absent.")
    ] = None,
    pressure_ratio: Annotated[
        float | None, option("--pressure-ratio", "PE/P", "Exit over ambient pressure; the case's if absent.")
    ] = None,
    exit_mach: Annotated[
        float | None, option("--exit-mach", "M", "Mach number of the exit; the case's if absent.")
    ] = None,
    total_temperature: Annotated[
        float | None,
        option("--total-temperature", "T", "Total over ambient temperature; the case's if absent."),
    ] = None,
    shape: Annotated[str | None, option("--shape", "planar|round", "Nozzle's shape; the grid's if absent.")] = None,
    points: Annotated[
        list[Path] | None, option("--points", "CSV", "Measured points with the columns Mj and Ls or St; repeatable.")
    ] = None,
) -> Any:
    """Analyse under-expanded jets: shock cells, potential core, screech and its mode, compared with theory; write a
    page, jet.html.

    Several runs share one page, which is written into the folder of the first run. Options that describe the jet or its
    probes apply to the first run. The result is printed and written to files. Exit status: 0 done; 2 an error to
    correct."""
    return {"run": run[0], "others": run[1:]}


@_analysis("correlate")
def correlate(
    run: Folder,
    signals: Annotated[str, argument("NAME[.COLUMN]", "A probe with a line, e.g. shear.v.")],
    times: TimeRange,
    at: Annotated[
        float | None, option("--at", "S", "Distance of the reference point from the first; middle if absent.")
    ] = None,
    longest: Annotated[float | None, option("--lag", "T", "The largest lag.")] = None,
    reach: Annotated[float, option("--reach", "S", "Distance downstream for convection velocities.")] = 1.5,
) -> Any:
    """Compute correlations in space and time along the line of a probe, integral scales and convection velocities.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""


@_analysis("azimuthal")
def azimuthal(
    run: Folder,
    signals: Annotated[str, argument("NAME[.COLUMN]", "A probe with a ring, e.g. lip.p.")],
    times: TimeRange,
    segments: Segments = 8,
    *,
    strouhal: Strouhal,
) -> Any:
    """Compute the azimuthal modes of a ring of points around the x axis: axisymmetric, helical and flapping tones.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""


@_analysis("xt")
def xt(
    run: Folder,
    signals: Annotated[str, argument("NAME[.COLUMN]", "A probe with a line, e.g. axis.p.")],
    times: TimeRange,
    fluctuations: Annotated[bool, option("--fluctuations", None, "Subtract the mean at each point.")] = False,
) -> Any:
    """Draw the values along the line of a probe over position and time.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""


@_analysis("profile")
def profile(
    run: Folder,
    lines: Annotated[list[str], argument("LINE...", "E.g. y=0, or x=2 x=5; in space y=0,z=0.")],
    variables: Annotated[str, option("--variable", "V[,V...]", "Variables and moments: u, rms_u, u_v, tke, ...")] = "u",
    which: Annotated[int | None, option("--step", "N", "Fields of step N (-1: the last), not the averages.")] = None,
    others: Others = None,
) -> Any:
    """Draw profiles of variables along straight lines, from time averages or from the fields of one time step.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""
    return {"variables": [name.strip() for name in variables.split(",")]}


@_analysis("turbulence")
def turbulence(
    run: Folder,
    over: Annotated[
        str | None, option("--over", "I[,J]", "Homogeneous index directions, e.g. i,k; found if absent.")
    ] = None,
    frame: Annotated[str, option("--frame", "xyz|wall", "Axes of velocities and stresses.")] = "xyz",
) -> Any:
    """Compute Favre stresses, profiles in wall units and budgets from averages over time and homogeneous directions.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""


@_analysis("amplification")
def amplification(
    run: Folder,
    ahead: Annotated[str | None, option("--ahead", "A,B", "Range of x ahead of the shock; found if absent.")] = None,
    behind: Annotated[str | None, option("--behind", "A,B", "Range of x behind the shock; found if absent.")] = None,
) -> Any:
    """Compute the amplification of turbulence by a plane shock from time averages, and by linear interaction analysis.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""
    return {"ahead": _range(ahead, "--ahead"), "behind": _range(behind, "--behind")}


def _range(given: str | None, name: str) -> tuple[float, float] | None:
    found = options.numbers(given, name, "1.5,4", 2)
    if found is not None and not found[0] < found[1]:
        raise HiresxError(f"{name} {given}: needs two numbers, the smaller one first", f"e.g. {name} 1.5,4")
    return None if found is None else (found[0], found[1])


@_analysis("wavenumber")
def wavenumber(
    run: Folder,
    variables: Annotated[str, argument("[V,V...]", "Variables.")] = "u,v,w,p",
    along: Annotated[
        str | None, option("--along", "I", "Homogeneous index direction i, j or k; the first if absent.")
    ] = None,
    *,
    times: TimeRange,
    every: Annotated[int, option("--every", "N", "Use every N-th of the fields.")] = 1,
    subset: Subset = "fields",
) -> Any:
    """Compute wavenumber spectra of fields in a homogeneous direction, averaged over times and other directions.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""
    return {"variables": [name.strip() for name in variables.split(",")]}


@_analysis("energy-spectrum")
def energy_spectrum(
    run: Folder,
    times: TimeRange,
    every: Annotated[int, option("--every", "N", "Use every N-th of the fields.")] = 1,
    subset: Subset = "fields",
) -> Any:
    """Compute the spectrum of the kinetic energy in a periodic box, and the scales of its turbulence.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""


@_analysis("slice")
def slice(
    run: Folder,
    variable: Annotated[str, argument("VARIABLE", "Variable, e.g. mach; for averages e.g. rms_p.")],
    frame: Frame,
    averages: Annotated[bool, option("--averages", None, "Show the averages.")] = False,
    subset: Annotated[str | None, option("--subset", "NAME", "Use this output.subset.")] = None,
    *,
    look: LookOptions,
) -> Any:
    """Draw one variable on a plane of the fields or time averages, with contour lines, zoom and choice of colours.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""
    if averages and any(given is not None for given in (frame.step, frame.time, subset)):
        raise HiresxError("--step, --time and --subset choose fields, not averages", "leave them or --averages out")


@_analysis("isosurface", SurfaceFile)
def isosurface(
    run: Folder,
    variable: Annotated[str, argument("VARIABLE", "Variable, e.g. q_criterion.")],
    values: Annotated[str, argument("A[,B...]", "Values of the variable on the surfaces.")],
    by: Annotated[str | None, option("--by", "V", "Variable that colours the surfaces.")] = None,
    *,
    frame: Frame,
    subset: Subset = "fields",
    clip: Annotated[str | None, option("--clip", "A,B,...", "Box: x from, to, y from, to, z from, to.")] = None,
    camera: Annotated[
        str | None, option("--camera", "A,E[,Z]", "Azimuth and elevation in degrees, and zoom; or xy, xz, yz.")
    ] = None,
    opacity: Annotated[float, option("--opacity", "X", "Opacity of the surfaces, above 0 to 1.")] = 1.0,
    look: SurfaceLook,
) -> Any:
    """Draw surfaces on which a variable of a 3-D field has given values, coloured by another variable (needs PyVista).

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""
    levels = options.numbers(values, "VALUES", "0.5,1")
    return {"values": levels, "clip": options.numbers(clip, "--clip", "0,10,-3,3,-1,1", 6)}


@post.command("animate")
@expand_option_groups
def animate(
    run: Folder,
    variable: Annotated[str, argument("VARIABLE", "Variable, e.g. schlieren.")],
    times: TimeRange,
    every: Annotated[int, option("--every", "N", "Use every N-th of the fields.")] = 1,
    fps: Annotated[float, option("--fps", "N", "Frames per second.")] = 15.0,
    subset: Subset = "fields",
    *,
    look: FilmLook,
    out: Annotated[Path | None, option("--out", "FILE", ".mp4 or .gif; RUN/post/animate_V.mp4 if absent.")] = None,
    json: options.Json = False,
) -> int:
    """Write a film of one variable, MP4 or GIF.

    Exit status: 0 done; 2 an error to correct."""
    with terminal.only_json(json):
        from hiresx.post.animate import animate as make

        written = make(run, variable, out, times.start, times.end, every, fps, subset, look.look())
    if json:
        terminal.print_json({"files": [written]})
    else:
        terminal.say(f"wrote {written}")
    return 0


@_analysis("spod")
def spod(
    run: Folder,
    variable: Annotated[str, argument("[VARIABLE]", "Variable, e.g. p.")] = "p",
    *,
    times: TimeRange,
    length: Annotated[int | None, option("--length", "N", "Fields in a block; a quarter of all if absent.")] = None,
    overlap: Annotated[float, option("--overlap", "X", "Overlap of blocks, as a fraction of a block.")] = 0.5,
    frequency: Annotated[
        float | None, option("--frequency", "F", "Frequency of the mode shown; the strongest if absent.")
    ] = None,
    subset: Subset = "fields",
    look: Annotated[LookOptions, Only("zoom")],
) -> Any:
    """Compute the spectral proper orthogonal decomposition of plane fields: the strongest modes at each frequency.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""


@_analysis("wall")
def wall(
    run: Folder,
    force: Annotated[
        str | None, argument("[FORCE]", "Name of a [\\[force]]; not needed if there is one; all walls without.")
    ] = None,
    at: Annotated[str | None, option("--at", "z=VALUE", "Cut the walls by this plane.")] = None,
    velocity: Annotated[
        str | None,
        option("--velocity", "U,V,W", "Velocity of the stream; that of the force or of initial.state if absent."),
    ] = None,
    pressure: Annotated[
        float | None, option("--pressure", "P", "Pressure of the stream; that of initial.state if absent.")
    ] = None,
    variables: Annotated[
        str, option("--variable", "V[,V...]", "Variables to draw: cp, cf, y_plus, p, friction, heat.")
    ] = "",
    time: Annotated[float | None, option("--time", "T", "Sample of the force's distribution at time T.")] = None,
    mean: Annotated[bool, option("--mean", None, "Mean and rms of the samples of the force's distribution.")] = False,
    *,
    times: TimeRange,
) -> Any:
    """Compute pressure, friction and heat flux along walls, their coefficients and y+, from the newest checkpoint or
    from samples of a force.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""
    return {"velocity": options.numbers(velocity, "--velocity", "0.5,0,0", 3)}


@_analysis("farfield")
def farfield(
    run: Folder,
    surface: Annotated[str, argument("SURFACE", "Name of a [\\[surface]] of the case.")],
    observers: Observers,
    *,
    times: TimeRange,
    caps: Annotated[
        str, option("--caps", "average|each", "Average the signals of several end caps, or not.")
    ] = "average",
    mach: Annotated[float, option("--mach", "M", "Mach number of the stream outside, along x.")] = 0.0,
    ambient: Annotated[
        float | None, option("--ambient", "PA", "Ambient pressure in Pa: signals in Pa, levels re 20 uPa.")
    ] = None,
    density: Annotated[
        str, option("--density", "flow|pressure", "Density on the surface: of the flow, or from its pressure.")
    ] = "flow",
    still: Annotated[bool, option("--still", None, "Runs from rest: signals begin with the first sound.")] = False,
    measured: Annotated[
        Path | None, option("--measured", "CSV", "Compare with spectra in dB: columns strouhal, angle_30, ...")
    ] = None,
    welch: Welch,
    strouhal: Strouhal,
) -> Any:
    """Compute the sound at observers from the flow on a surface (Ffowcs Williams-Hawkings): signals, spectra, levels.

    The result is printed and written to files. Exit status: 0 done; 2 an error to correct."""
