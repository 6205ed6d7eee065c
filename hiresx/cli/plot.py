"""`hiresx plot`: pictures of a run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from hiresx.cli import options, terminal
from hiresx.cli.look_options import LookOptions
from hiresx.cli.option_groups import expand_option_groups
from hiresx.cli.options import argument, option
from hiresx.cli.other_paths import refuse_no_fields
from hiresx.errors import HiresxError

FIELDS, TIMES = "Fields", "Over time"
_SIZES = ("--width", "--height", "--font")


@expand_option_groups
def plot(
    directory: Annotated[
        Path, argument("DIR|FILE", "Folder of a run, a field file; with --grid, --quality a grid file.")
    ],
    variable: Annotated[
        str | None, option("--variable", "V[,V...]", "Variables to draw, e.g. rho,mach.", rich_help_panel=FIELDS)
    ] = None,
    line: Annotated[
        str | None, option("--line", "y=0[,z=0]", "Draw values along a line.", rich_help_panel=FIELDS)
    ] = None,
    subset: Annotated[
        str | None, option("--subset", "NAME", "Draw this output.subset.", rich_help_panel=FIELDS)
    ] = None,
    step: Annotated[
        int | None, option("--step", "N", "Fields of step N; the last if absent.", rich_help_panel=FIELDS)
    ] = None,
    animate: Annotated[
        bool, option("--animate", None, "All steps as a GIF, or as the MP4 of --out.", rich_help_panel=FIELDS)
    ] = False,
    fps: Annotated[
        float | None, option("--fps", "N", "Frames per second of an animation; 10.", rich_help_panel=FIELDS)
    ] = None,
    history: Annotated[
        str | None,
        option(
            "--history",
            "NAME[.COLUMN,...]",
            "Draw a history over time, e.g. residual or probe1.p.",
            rich_help_panel=TIMES,
        ),
    ] = None,
    spectrum: Annotated[
        str | None, option("--spectrum", "NAME[.COLUMN,...]", "Draw the spectrum of a history.", rich_help_panel=TIMES)
    ] = None,
    start: Annotated[float | None, option("--from", "T", "Leave out earlier times.", rich_help_panel=TIMES)] = None,
    reference: Annotated[
        Path | None,
        option("--reference", "CSV", "Also draw these points; the header names the columns (x, time or f, ...)."),
    ] = None,
    against: Annotated[
        list[Path] | None,
        option("--against", "RUN", "Also draw curves of another run; repeatable. For colours: the difference from it."),
    ] = None,
    *,
    looks: LookOptions,
    out: Annotated[
        Path | None,
        option("--out", "FILE|DIR", "Picture to write: .png, .svg, .pdf; .gif, .mp4. Beside the fields if absent."),
    ] = None,
    grid: Annotated[bool, option("--grid", None, "Draw the lines of the grid of a run, case or grid file.")] = False,
    every: Annotated[
        int | None, option("--every", "N", "Every N-th line of the grid; by their number if absent.")
    ] = None,
    quality: Annotated[bool, option("--quality", None, "Draw a grid file, and its worst cells.")] = False,
    json: options.Json = False,
) -> int:
    """Draw the fields of a run, its histories and their spectra, or an animation; or where a grid is worst.

    Exit status: 0 done; 2 an error to correct."""
    of_fields = {"--variable": variable, "--line": line, "--subset": subset, "--step": step}
    of_time = {"--history": history, "--spectrum": spectrum, "--from": start}
    of_films = {"--animate": animate or None, "--fps": fps}
    beside = {"--reference": reference, "--against": against or None}
    moving = animate or (out is not None and out.suffix.lower() in (".gif", ".mp4"))
    with terminal.only_json(json):
        look, looked = looks.look(), looks.given_options()
        if not grid:
            _refuse({"--every": every}, "only for --grid")
        about: dict[str, Any] = {
            "variable": variable, "out": out, "line": line, "reference": reference, "subset": subset
        }  # fmt: skip
        if quality or grid:
            if quality and grid:
                raise HiresxError("--grid and --quality are two pictures", "ask for one after the other")
            allowed = (*_SIZES, "--plane", "--zoom", "--title") if grid else _SIZES
            _refuse(of_fields | of_time | of_films | beside | _less(looked, allowed), "not for a grid")
            if grid:
                from hiresx.output.show.plot_grid import plot_grid

                pictures = plot_grid(directory, out, every, look)
            else:
                from hiresx.output.show.plot_quality import plot_quality

                pictures = plot_quality(directory, out=out, look=look)
        elif history is not None or spectrum is not None:
            ignored = _less(looked, (*_SIZES, "--zoom", "--title", "--range"))
            _refuse(of_fields | of_films | ignored, "not for histories and spectra")
            if history is not None and spectrum is not None:
                raise HiresxError("--history and --spectrum are two pictures", "ask for one after the other")
            if history is not None:
                from hiresx.output.show.plot_history import plot_history

                pictures = plot_history(directory, history, out, reference, against, start, look)
            else:
                pictures = _spectrum(directory, spectrum, out, reference, against or (), start, look)
        elif moving:
            _refuse({"--from": start, "--step": step, "--against": against or None}, "not for animations")
            from hiresx.output.show.run_plot import animate_run

            refuse_no_fields(directory)
            pictures = animate_run(directory, fps=10.0 if fps is None else fps, look=look, **about)
        else:
            _refuse({"--from": start}, "only for histories and spectra")
            _refuse({"--fps": fps}, "only for animations")
            from hiresx.output.show.run_plot import plot_run

            refuse_no_fields(directory)
            pictures = plot_run(directory, step=step, against=against, look=look, **about)
    if json:
        terminal.print_json({"pictures": pictures})
    else:
        for picture in pictures:
            terminal.say(f"wrote {picture}")
    return 0


def _spectrum(
    run: Path, signals: str | None, out: Path | None, reference: Path | None, others: Sequence[Path],
    start: float | None, look: Any,
) -> list[Path]:  # fmt: skip
    """Return the spectrum of `hiresx post spectrum`. Raises HiresxError with the optional packages to install if they
    are missing."""
    from hiresx.output.show.run_plot import picture_path
    from hiresx.post.spectrum import spectrum

    found = spectrum(run, str(signals), start, others=others, reference=reference, look=look)
    picture = picture_path(run / "spectrum.nc", out, ".png", str(signals).replace(".", "_"), *others)
    return found.write(picture)


def _less(given: Mapping[str, object], allowed: Sequence[str]) -> dict[str, object]:
    return {option: value for option, value in given.items() if option not in allowed}


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Raises HiresxError for options without effect."""
    named = [option for option, value in given.items() if value is not None]
    if named:
        raise HiresxError(f"{', '.join(named)}: {why}", "leave it out; see hiresx plot --help")
