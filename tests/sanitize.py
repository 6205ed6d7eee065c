"""Looks for kernels that access memory out of bounds, read uninitialised memory, or depend on the order of threads.

    python tests/sanitize.py [--tools memcheck,initcheck,racecheck] [--flows "jet,round jet"] [--json]
    python tests/sanitize.py --on cuda

Small flows (sanitize_flows.py) take two steps by the plans that suit them. Without a GPU this is done with
the CUDA form of the kernels on the CPU (tests/sanitize_backend.py). The entry "every kernel" of --flows launches each
kernel by itself, with its arguments of `hiresx verify kernels`. Without a GPU only memcheck takes this entry.

  memcheck   compiled with AddressSanitizer and UndefinedBehaviorSanitizer, arrays of exactly their size, each between
             two regions of 256 KiB that nobody may access
  initcheck  new device memory holds signalling NaNs: no bit of the answer changes
  racecheck  blocks, threads, lanes between two meetings of a warp and launches of one level in other orders, copies
             that come when they are waited for: no bit of the answer changes. Atomic adds are no exception: of one
             launch, each goes to an address of its own

With a GPU NVIDIA's compute-sanitizer runs the same flows with its tools of these names; it comes with the CUDA toolkit.
Its initcheck takes memory that was zeroed for written. On an H200 (22 November 2026, compute-sanitizer 2025.3.1) none
of them found anything in any flow, memcheck found a planted write behind an array, racecheck a warp that does not meet.
The entry "every kernel" has not been run on a GPU.
Exit status 0 if nothing was found, 1 if something was, 2 where it could not be looked for. g++ 12 or later is wanted.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sanitize_backend import CheckingBackend
from sanitize_flows import BY_ITSELF, FLOWS, computed

from hiresx.device import backend, emulated
from hiresx.device.compiler import compiler
from hiresx.errors import HiresxError
from hiresx.kernels import ROOT

TOOLS = ("memcheck", "initcheck", "racecheck")
# Backwards, and by chance.
ORDERS = (1, 2, 3)
# Compiled otherwise the same kernels differ by round-off, which the limiter's decisions amplify: up to so many square
# roots of it. What is wrong is far from that: numbers that nobody wrote are NaNs, or of the order of 1e300.
ROUND_OFF = 100
# Status of compute-sanitizer where it found something, and lines of a report that are shown.
FOUND, SHOWN = 9, 12
# What compute-sanitizer is asked for besides: room between allocations, where nothing else lies.
OPTIONS = {"memcheck": ("--padding", "512")}
MARKS = ("ERROR: AddressSanitizer", "runtime error:", "========= ")


class Finding(NamedTuple):
    """What `tool` says of a flow computed by a plan; empty `fault`: nothing."""

    flow: str
    plan: str
    tool: str
    fault: str


def changes(found: Sequence[np.ndarray], usual: Sequence[np.ndarray]) -> str:
    """What is another in two lists of arrays; empty if nothing is to the last bit."""
    for n, (one, other) in enumerate(zip(found, usual, strict=True)):
        # NaNs are equal to themselves where both have them
        differ = one.view(f"u{one.itemsize}") != other.view(f"u{other.itemsize}")
        if differ.any():
            first = tuple(int(m) for m in np.argwhere(differ)[0])
            return (
                f"{int(differ.sum())} of {one.size} values of array {n} change, first {first}: {one[first]:.6g}, "
                f"not {other[first]:.6g}"
            )
    return ""


def findings(flow: str, plan: str, tools: Sequence[str], root: Path = ROOT) -> Iterator[Finding]:
    """What the emulated form of the kernels in `root` does. With memcheck a fault of theirs ends this process, with a
    report on its standard error."""
    memory = "memcheck" in tools
    if plan == BY_ITSELF:
        if memory:
            computed(flow, plan, CheckingBackend(0, poisoned=False, memory=True, root=root))
            yield Finding(flow, plan, "memcheck", "")
        return
    plain = computed(flow, plan, emulated.EmulatedBackend(root))
    usual, fault = _tried(flow, plan, CheckingBackend(0, poisoned=False, memory=memory, root=root))
    if not fault and not all(starmap(_close, zip(usual, plain, strict=True))):
        fault = "what was fetched and not waited for, or never written, is read from a block's or a thread's own memory"
    if memory:
        yield Finding(flow, plan, "memcheck", "")

    def changed(order: int, poisoned: bool) -> str:
        found, failed = _tried(flow, plan, CheckingBackend(order, poisoned, memory, root))
        return failed or changes(found, usual)

    if "initcheck" in tools:
        yield Finding(flow, plan, "initcheck", fault or changed(0, poisoned=True))
    if "racecheck" in tools:
        faults = {order: fault or changed(order, poisoned=False) for order in ORDERS}
        said = [f"order {order}: {fault}" for order, fault in faults.items() if fault]
        yield Finding(flow, plan, "racecheck", "; ".join(said))


def _tried(flow: str, plan: str, device: CheckingBackend) -> tuple[list[np.ndarray], str]:
    """What is computed, or why it is not."""
    try:
        return computed(flow, plan, device), ""
    except (ArithmeticError, HiresxError) as error:
        return [], f"the flow does not survive: {error}"


def _close(array: np.ndarray, other: np.ndarray) -> bool:
    """To the round-off of another compilation."""
    scale = max(1.0, float(np.abs(other).max(initial=0)))
    return bool(np.abs(array - other).max(initial=0) <= ROUND_OFF * np.finfo(array.dtype).eps ** 0.5 * scale)


def _inside(options: argparse.Namespace) -> int:
    """Goes through the flows in this process, one line of JSON for each finding and for what is begun."""
    if options.on == "cuda":
        import cupy

        # Every array an allocation of its own, of its size: within CuPy's pool nothing has bounds, and what was freed
        # counts as written.
        cupy.cuda.set_allocator(None)
    for flow in options.flows:
        for plan in FLOWS[flow].plans:
            print(json.dumps({"begun": [flow, plan]}), flush=True)
            if options.on == "cuda":
                computed(flow, plan, backend("cuda"))
                continue
            for finding in findings(flow, plan, options.tools):
                print(json.dumps(finding._asdict()), flush=True)
    return 0


def preloaded() -> dict[str, str]:
    """The environment of a process whose kernels may be compiled with memory=True: the library of AddressSanitizer is
    loaded ahead of all others. Raises HiresxError."""
    command, _ = compiler()
    found = subprocess.run([*command, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(found):
        raise HiresxError(f"{command[0]} has no AddressSanitizer", "apt install libasan8, or leave memcheck out")
    return {
        **os.environ,
        "LD_PRELOAD": found,
        "ASAN_OPTIONS": "detect_leaks=0:exitcode=1",
        "UBSAN_OPTIONS": "halt_on_error=1",
    }


def _emulated(options: argparse.Namespace) -> Iterator[Finding]:
    """The findings of a process of its own, one for all flows; where it ends early, what it was at."""
    environment = preloaded() if "memcheck" in options.tools else dict(os.environ)
    done = _ran(_again(options, options.tools, options.flows), environment)
    flow = plan = ""
    for line in done.stdout.splitlines():
        found = json.loads(line)
        if "begun" in found:
            flow, plan = found["begun"]
        else:
            yield Finding(**found)
    if done.returncode:
        fault = _report(done.stderr)
        if not any(mark in fault for mark in MARKS):
            raise HiresxError(f"{flow}, {plan}: {fault}", "see that `hiresx run --backend emulated` works")
        yield Finding(flow, plan, "memcheck", fault)


def _cuda(options: argparse.Namespace) -> Iterator[Finding]:
    """The findings of compute-sanitizer."""
    program = shutil.which("compute-sanitizer")
    if program is None:
        raise HiresxError("there is no compute-sanitizer", "apt install cuda-sanitizer, or --on emulated")
    for flow in options.flows:
        for tool in options.tools:
            command = [program, "--tool", tool, "--error-exitcode", str(FOUND), *OPTIONS.get(tool, ())]
            done = _ran([*command, *_again(options, [tool], [flow])], dict(os.environ))
            if done.returncode not in (0, FOUND):
                raise HiresxError(
                    f"{flow}: {_report(done.stderr or done.stdout)}", "see that `hiresx doctor` finds a GPU"
                )
            yield Finding(flow, ", ".join(FLOWS[flow].plans), tool, _report(done.stdout) if done.returncode else "")


def _ran(command: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def _again(options: argparse.Namespace, tools: Sequence[str], flows: Sequence[str]) -> list[str]:
    given = ["--inside", "--on", options.on, "--tools", ",".join(tools), "--flows", ",".join(flows)]
    return [sys.executable, __file__, *given]


def _report(text: str) -> str:
    """Of what a sanitizer printed the first lines that say something."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip(" =") and not line.startswith('{"begun"')]
    first = next((n for n, line in enumerate(lines) if any(mark in line for mark in MARKS)), max(0, len(lines) - SHOWN))
    return "\n".join(lines[first : first + SHOWN])


def _names(known: Sequence[str]) -> Any:
    def names(text: str) -> list[str]:
        found = [name.strip() for name in text.split(",")]
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(f'no "{name}": there are {", ".join(known)}')
        return found

    return names


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python tests/sanitize.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tools", type=_names(TOOLS), default=list(TOOLS), help=f"of {', '.join(TOOLS)}")
    parser.add_argument("--flows", type=_names(tuple(FLOWS)), default=list(FLOWS), help=f"of {', '.join(FLOWS)}")
    parser.add_argument("--on", choices=("emulated", "cuda"), default="emulated", help="where kernels run")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        return _inside(options)
    found: list[Finding] = []
    try:
        for finding in _cuda(options) if options.on == "cuda" else _emulated(options):
            found.append(finding)
            if not options.json:
                print(
                    f"{finding.flow:17} {finding.plan:11} {finding.tool:10} {finding.fault or 'nothing found'}",
                    flush=True,
                )
    except HiresxError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps([finding._asdict() for finding in found], indent=1))
    return int(any(finding.fault for finding in found))


if __name__ == "__main__":
    sys.exit(main())
