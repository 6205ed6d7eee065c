"""Binds this process to some of the CPUs that the scheduler allows, and reports the resulting binding.

If the kernel refuses, as in some containers, a warning is issued and the run continues without the binding.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hiresx.topology.cpus import format_list, parse_list


@dataclass(frozen=True)
class Binding:
    """The binding of a process to logical CPUs. `gpu`: the index of its GPU; None without one. `asked`: the requested
    CPUs. `is_`: the CPUs to which it is bound now, as the operating system reports them. `by`: the function that bound
    it, or "nothing". `warnings`: warnings, as sentences."""

    gpu: int | None
    asked: frozenset[int]
    is_: frozenset[int]
    by: str
    warnings: tuple[str, ...] = ()


def bound_cpus() -> frozenset[int]:
    """Return the logical CPUs on which the main thread of this process may run, as the operating system reports
    them."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return frozenset(os.sched_getaffinity(0))
    line = next((line for line in status.splitlines() if line.startswith("Cpus_allowed_list:")), "")
    return parse_list(line.partition(":")[2]) or frozenset(os.sched_getaffinity(0))


def bind(cpus: frozenset[int], gpu: int | None = None, warnings: tuple[str, ...] = ()) -> Binding:
    """Bind all threads of this process to the logical CPUs `cpus`, and return a `Binding` with the CPUs to which the
    process is bound afterwards. `gpu`: the index of the GPU of this process, stored in the result. `warnings`:
    sentences with which the warnings of the result begin. If the operating system refuses the binding, the result has a
    further warning; no error is raised."""
    messages = list(warnings)
    if not cpus:
        return Binding(gpu, cpus, bound_cpus(), "nothing", (*messages, "no CPU to bind to"))
    by = "sched_setaffinity"
    try:
        for thread in _threads():
            with suppress(ProcessLookupError):  # a thread that has ended since it was listed
                os.sched_setaffinity(thread, cpus)
    except OSError as refusal:
        by = "nothing"
        messages.append(f"binding to CPUs {format_list(cpus)} was refused: {refusal.strerror}")
    is_ = bound_cpus()
    if by != "nothing" and is_ != cpus:
        messages.append(f"asked for CPUs {format_list(cpus)}, bound to {format_list(is_)}")
    return Binding(gpu, cpus, is_, by, tuple(messages))


def _threads() -> Iterator[int]:
    try:
        yield from (int(path.name) for path in Path("/proc/self/task").iterdir())
    except OSError:
        yield 0
