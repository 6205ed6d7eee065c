"""NVIDIA's run-time compiler through CuPy's bindings; no GPU is needed.

`python -m hiresx.device.nvrtc` compiles the kernels for several architectures and reports registers, spills and stack.

CuPy's own compile helpers are not used: they always flush subnormal numbers to zero, which changes FP32 results.
"""

import argparse
import dataclasses
import json
import re
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from hiresx import kernels
from hiresx.base import optional
from hiresx.base.notify import notify
from hiresx.device import cache
from hiresx.device.batch_wrappers import Entry, Form, generate_batched
from hiresx.device.compiler import COMPILING, first_errors
from hiresx.device.configuration import FOLDERS, Configuration
from hiresx.device.wrappers import generate
from hiresx.equations.diffusivity import transported_schmidt
from hiresx.equations.stencil import suited_weights
from hiresx.errors import HiresxError

HINT = "pip install 'hiresx[cuda13]' (hiresx[cuda12] for a driver older than 580)"

# -Xptxas=-v writes the resources of every kernel to the log.
OPTIONS = ("-std=c++17", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-fmad=true", "-Xptxas=-v")

# With a driver, NVRTC caches images, and a cached image has no log. Older versions do not have this option.
NO_CACHE = "--no-cache"

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")

_RESOURCES = re.compile(
    r"Compiling entry function '(?P<kernel>\w+)' for '(?P<architecture>\w+)'.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<spill_stores>\d+) bytes spill stores, "
    r"(?P<spill_loads>\d+) bytes spill loads.*?Used (?P<registers>\d+) registers",
    re.DOTALL,
)


class CompiledImage(NamedTuple):
    """Kernels compiled for one architecture. `image`: a cubin, or PTX if NVRTC does not know the architecture. `log`:
    the messages of the compilers."""

    image: bytes
    log: str


class Resources(NamedTuple):
    """The resources of one kernel on an architecture: registers per thread, and bytes of local memory per thread."""

    kernel: str
    architecture: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int


def bindings() -> Any:
    """Return CuPy's NVRTC module. Raises HiresxError if CuPy or the NVRTC library is not installed."""
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except (RuntimeError, OSError) as error:
        raise HiresxError(f"CUDA kernels need the NVRTC library: {error}", HINT) from None
    except Exception as error:
        raise HiresxError(
            f"CUDA kernels need CuPy, which {optional.describe_import_error('cupy_backends', error)}", HINT
        ) from None
    return nvrtc


def version() -> str:
    """ "major.minor" of NVRTC. Raises as `bindings`."""
    return ".".join(map(str, bindings().getVersion()))


def target(capability: int) -> str:
    """Return what to compile for on a GPU of a compute capability (90 for 9.0): its own architecture, such as "sm_90".
    For a GPU that NVRTC does not know yet it is PTX of the newest architecture that NVRTC knows, such as "compute_120",
    which the driver translates."""
    known = bindings().getSupportedArchs()
    return f"sm_{capability}" if capability in known else f"compute_{max(known)}"


def compile(text: str, architecture: str) -> CompiledImage:
    """Compile `text` for `architecture` ("sm_90"; "compute_90" gives PTX). Raises HiresxError with the messages of the
    compiler if it fails."""
    nvrtc = bindings()
    program = nvrtc.createProgram(text, "kernels.cu", (), ())
    try:
        options = (*OPTIONS, f"-arch={architecture}")
        try:
            try:
                nvrtc.compileProgram(program, (*options, NO_CACHE))
            except nvrtc.NVRTCError:
                if NO_CACHE not in nvrtc.getProgramLog(program):
                    raise
                nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program).strip("\0\n ") or str(error)
            known = ", ".join(f"sm_{number}" for number in nvrtc.getSupportedArchs())
            raise HiresxError(
                f"NVRTC does not compile the kernels for {architecture}:\n  {first_errors(log)}",
                f"NVRTC {version()} knows {known}",
            ) from None
        ptx = architecture.startswith("compute_")
        image = nvrtc.getPTX(program) if ptx else nvrtc.getCUBIN(program)
        return CompiledImage(image.encode() if isinstance(image, str) else image, nvrtc.getProgramLog(program))
    finally:
        nvrtc.destroyProgram(program)


def resources(log: str) -> list[Resources]:
    """Return the resources of every kernel from the log of a compilation, sorted by name."""
    found = []
    for match in _RESOURCES.finditer(log):
        counts = map(int, match.group(*Resources._fields[2:]))
        found.append(Resources(match["kernel"], match["architecture"], *counts))
    return sorted(found)


def build(text: str, architecture: str) -> Path:
    """Return the path of the image of `text` for `architecture`, such as "sm_90". It is compiled unless the cache has
    it. Raises HiresxError as `compile`."""
    ending = "ptx" if architecture.startswith("compute_") else "cubin"
    name = f"cuda-{architecture}-{cache.key([text, *OPTIONS, architecture, version()])}.{ending}"

    def make(private: Path) -> Path:
        notify(COMPILING)
        made = private / name
        made.write_bytes(compile(text, architecture).image)
        return made

    return cache.find_or_make(name, make)


def has_kernel(image: bytes, kernel: str) -> bool:
    """True if a cubin or PTX contains `kernel`: a cubin has a section of its name, PTX an entry."""
    return f".text.{kernel}\0".encode() in image or f".entry {kernel}(".encode() in image


def report(
    configurations: Iterable[Configuration],
    architectures: Sequence[str] = ARCHITECTURES,
    root: Path = kernels.ROOT,
    batched: bool = False,
) -> list[dict[str, Any]]:
    """Compile every configuration for every architecture. Returns one dict each of `configuration` (its differences
    from the default), `architecture`, `seconds` and `kernels`, a list of Resources as dicts. `batched`: compile the
    wrappers of batches instead of single launches. Raises HiresxError."""
    default = Configuration()
    entries = []
    for configuration in configurations:
        differing = {
            field.name: getattr(configuration, field.name)
            for field in dataclasses.fields(configuration)
            if getattr(configuration, field.name) != getattr(default, field.name)
        }
        text, found = generate(configuration, "cuda", root)
        if batched:
            text = generate_batched(configuration, "cuda", (Entry(name, form) for name in found for form in Form), root)
        for architecture in architectures:
            start = time.perf_counter()
            log = compile(text, architecture).log
            entries.append(
                {
                    "configuration": differing,
                    "architecture": architecture,
                    "seconds": round(time.perf_counter() - start, 3),
                    "kernels": [found._asdict() for found in resources(log)],
                }
            )
    return entries


def each_choice(root: Path = kernels.ROOT) -> list[Configuration]:
    """Return the default configuration, inviscid and viscous; with passive scalars; and with every other choice in
    kernels/, every model of turbulence with its constant, and every other viscosity law, one at a time."""
    from hiresx.case.viscosity import VISCOSITIES

    viscous = Configuration(viscosity="sutherland")
    found = [Configuration(), viscous, dataclasses.replace(viscous, precision="fp32")]
    found.append(dataclasses.replace(viscous, schmidt=(0.7, 0.4)))
    for folder in FOLDERS:
        chosen: list[dict[str, Any]] = [{folder: name} for name in kernels.choices(folder, root)]
        found += [_with_suited_weights(dataclasses.replace(viscous, **choice), root) for choice in chosen]
    found += [dataclasses.replace(viscous, viscosity=law) for law in VISCOSITIES]
    for name in kernels.choices("turbulence", root):
        if kernels.trait("turbulence", name, "eddy_fields", root):
            constant = kernels.fractions("turbulence", name, "usual_constant", root)[0]
            schmidt = transported_schmidt(name, root)
            model = dataclasses.replace(viscous, turbulence=name, eddy_constant=constant, schmidt=schmidt)
            has_length = kernels.trait("turbulence", name, "transported_has_length", root, silent=0)
            lengths = kernels.choices("detached_eddies", root) if has_length else ["none"]
            found += [dataclasses.replace(model, detached_eddies=length) for length in lengths]
    found.append(dataclasses.replace(viscous, precision="mixed"))
    found.append(dataclasses.replace(viscous, precision="differences", reference=(1.0, 0.0, 0.0, 0.0, 1.0)))
    return list(dict.fromkeys(found))


def _with_suited_weights(configuration: Configuration, root: Path) -> Configuration:
    """Return the same configuration, with other nonlinear weights if its own do not suit its interpolation."""
    suited = suited_weights(configuration.interpolation, root)
    if configuration.weights in suited:
        return configuration
    return dataclasses.replace(configuration, weights=next(name for name in suited if name != "linear"))


def find_growth(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return messages about resources that are larger in `now` than in `before`, two documents of `--json`: spills and
    stack, and registers if both are of the same NVRTC."""
    counts = ("spill_stores", "spill_loads", "stack", *(("registers",) if before["nvrtc"] == now["nvrtc"] else ()))
    known = {key: kernel for key, kernel in _each_kernel(before)}
    found = []
    for key, kernel in _each_kernel(now):
        for count in counts if key in known else ():
            if kernel[count] > known[key][count]:
                chosen, architecture, name = key
                found.append(f"{name} for {architecture} ({chosen}): {count} {known[key][count]} -> {kernel[count]}")
    return found


def _each_kernel(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], Mapping[str, Any]]]:
    for entry in document["entries"]:
        for kernel in entry["kernels"]:
            yield (_configuration_text(entry), entry["architecture"], kernel["kernel"]), kernel


def _configuration_text(entry: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in entry["configuration"].items()) or "default"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m hiresx.device.nvrtc",
        description="Compile the kernels for NVIDIA GPUs, without one, and list the resources of each.",
    )
    parser.add_argument(
        "--arch", default=",".join(ARCHITECTURES), help="architectures, separated by commas (default: %(default)s)"
    )
    parser.add_argument(
        "--each-choice",
        action="store_true",
        help="every flux, weights, ... once; without it the default choices, inviscid and viscous",
    )
    parser.add_argument(
        "--batched",
        action="store_true",
        help="the functions for several launches of each kernel, of equal blocks (_alike) and of others (_mixed)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="a stored result of --json: exit status 1 if a kernel takes more"
    )
    options = parser.parse_args(arguments)
    configurations = each_choice() if options.each_choice else each_choice()[:2]
    try:
        before = None if options.against is None else _read(options.against)
        entries = report(configurations, options.arch.split(","), batched=options.batched)
        compiler = version()
    except HiresxError as error:
        print(error, file=sys.stderr)
        return 2
    words = sys.argv[1:] if arguments is None else arguments
    document = {
        "kind": "registers",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "hiresx.device.nvrtc", *words]),
        "nvrtc": compiler,
        "entries": entries,
    }
    if options.json:
        print(json.dumps(document, indent=1))
    else:
        _show(document)
    more = [] if before is None else find_growth(before, document)
    for line in more:
        print(f"grown: {line}", file=sys.stderr)
    return 1 if more else 0


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        kind = found["kind"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise HiresxError(f"{path} cannot be read: {error}", "name a stored result of --json") from None
    if kind != "registers":
        raise HiresxError(f'{path} is a result of kind "{kind}"', "name a stored result of --json")
    return found


def _show(document: Mapping[str, Any]) -> None:
    print(f"NVRTC {document['nvrtc']}")
    for entry in document["entries"]:
        print(f"\n{_configuration_text(entry)}, {entry['architecture']}, compiled in {entry['seconds']:.2f} s")
        print(f"  {'kernel':24}{'registers':>10}{'spill stores':>14}{'spill loads':>13}{'stack':>7}  (bytes)")
        for kernel in entry["kernels"]:
            print("  {kernel:24}{registers:10}{spill_stores:14}{spill_loads:13}{stack:7}".format(**kernel))


if __name__ == "__main__":
    sys.exit(main())
