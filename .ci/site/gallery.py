"""The gallery page: bundled cases in forms that take seconds, run and drawn by `hiresx` as its text says, pictures of
the tutorial, and some that lie in docs/. Nothing of what is computed is stored."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """`title`: of the picture; `run` and `plot`: what follows `hiresx run` (without --out) and `hiresx plot RUN`."""

    name: str
    title: str
    run: str
    plot: str


ENTRIES = (
    Entry(
        "riemann",
        "Four states meet in a corner: four shocks and a jet along the diagonal",
        "riemann-2d",
        "--variable rho",
    ),
    Entry("double-mach", "A Mach 10 shock is reflected twice", "double-mach --preset coarse", "--variable rho"),
    Entry(
        "blast", "A cylindrical blast of a hundred thousand times the pressure around it", "blast-2d", "--variable p"
    ),
    Entry(
        "bow-shock",
        "The bow shock of a cylinder at Mach 5",
        "cylinder-bow-shock --preset quick",
        "--variable mach",
    ),
    Entry(
        "naca0012",
        "Mach 0.8 around an airfoil: a strong shock above, a weak one below",
        "naca0012 --preset quick",
        "--variable mach --subset near",
    ),
    Entry(
        "taylor-green",
        "Vorticity of the Taylor-Green vortex as it breaks down: a cut through 32^3 nodes",
        "taylor-green --preset quick --set time.end=60",
        "--variable vorticity --plane x=0",
    ),
    Entry(
        "shu-osher",
        "A shock runs into density waves: the density along the tube",
        "shu-osher",
        "--variable rho",
    ),
)
# Pictures of the tutorial: file, what it shows, and the command that drew it.
TUTORIAL = (
    ("tutorial-schlieren.png", "Density gradient of an under-expanded jet", "hiresx plot"),
    ("tutorial-mach.png", "Mean Mach number: a slice through the averages", "hiresx post slice"),
    ("tutorial-spectrum.png", "Spectra of the pressure at both lips of the nozzle", "hiresx post spectrum"),
    ("tutorial-xt.png", "Along the shear layer, over place and time", "hiresx post xt"),
    ("tutorial-spod.png", "The mode with most energy at a frequency (SPOD)", "hiresx post spod"),
    ("tutorial-jet.png", "Shock cells and tones beside theory: of the jet's page", "hiresx post jet"),
    ("tutorial-table.png", "Spacing of the shock cells over the jet's Mach number", "hiresx sweep"),
)
STORED = (
    ("planar-jet.png", "Under-expanded planar jet, preset `quick`", "start in the [README](project.md#start)"),
    ("verification-bow-shock.png", "Bow shock of a cylinder at Mach 5", "[Verification](verification.md)"),
    ("verification-taylor-green.png", "Decay of the Taylor-Green vortex", "[Verification](verification.md)"),
)


def page(computed: bool, there: Container[str] = ()) -> tuple[str, dict[str, bytes]]:
    """The Markdown of the page and its pictures by name (PNG). `there`: names of files that the tutorial has made."""
    lines = ["# Gallery", ""]
    pictures = {}
    if computed:
        lines += ["The first pictures were computed when this site was built, each by the commands below it.", ""]
        with tempfile.TemporaryDirectory() as folder:
            for entry in ENTRIES:
                name = f"gallery-{entry.name}.png"
                commands = _commands(entry)
                pictures[name] = _made(commands, Path(folder), entry.name)
                shown = "\n".join(shlex.join(command) for command in commands)
                lines += [f"## {entry.title}", "", f"![{entry.title}]({name})", "", f"```sh\n{shown}\n```", ""]
    else:
        lines += ["This site was built without the pictures that are computed for it (`HIRESX_GALLERY=no`).", ""]
    for name, title, verb in TUTORIAL if computed else ():
        if name not in there:
            raise RuntimeError(f"gallery: the tutorial made no {name}")
        lines += [f"## {title}", "", f"![{title}]({name})", "", f"`{verb}`, in the [tutorial](tutorial-jet.md).", ""]
    for name, title, source in STORED:
        lines += [f"## {title}", "", f"![{title}]({name})", "", f"From: {source}.", ""]
    return "\n".join(lines), pictures


def _commands(entry: Entry) -> list[list[str]]:
    run = f"runs/{entry.name}"
    return [
        ["hiresx", "run", *shlex.split(entry.run), "--out", run],
        ["hiresx", "plot", run, *shlex.split(entry.plot), "--out", f"{entry.name}.png"],
    ]


def _made(commands: list[list[str]], folder: Path, name: str) -> bytes:
    for command in commands:
        program = [sys.executable, "-m", *command]
        done = subprocess.run(program, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"gallery: {shlex.join(command)} ended with {done.returncode}\n{done.stderr}")
    return (folder / f"{name}.png").read_bytes()
