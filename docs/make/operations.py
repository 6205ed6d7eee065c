"""Counts the arithmetic of each kernel: its CUDA form runs on the CPU with numbers that count (counted.h)."""

import ctypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import kernel_times

from hiresx.device import emulated
from hiresx.device.configuration import Configuration

HEADER = Path(__file__).with_name("counted.h")
# Nodes along each direction: what a fused kernel computes twice where its pieces meet is a small share.
NODES = 24

# What a sweep is, in the kernels of the paper's plan.
SWEEPS = ("inviscid_sweep", "sweep_along", "sweep_across")
PARTS = ("interpolate", "physical_flux", "numerical_flux", "flux_difference")


class CountingProgram(emulated.EmulatedProgram):
    """Emulated kernels that count their floating-point operations."""

    @property
    def operations(self) -> int:
        """Number of floating-point operations since the process began."""
        total = 0
        for library in {*self._of_kernel.values()}:
            library.hx_counted.restype = ctypes.c_longlong
            total += library.hx_counted()
        return total


class CountedEvent:
    """An event whose clock is the number of operations done."""

    def __init__(self, backend: "CountingBackend"):
        self._backend, self._at = backend, 0

    def record(self) -> None:
        """Keep the number of operations so far."""
        self._at = self._backend.operations

    def elapsed_time(self, start: "CountedEvent") -> int:
        """Number of operations since the event `start`."""
        return self._at - start._at


class CountingBackend(emulated.EmulatedBackend):
    """The emulated backend for one configuration, with numbers that count; events count operations, not seconds."""

    program = CountingProgram
    # With the header's content, as what was compiled with another one must not be taken.
    flags = (
        f'-DHX_COUNTED="{HEADER}"', f"-DHX_COUNTED_TEXT={crc32(HEADER.read_bytes())}", "-O1", "-std=c++17", "-fPIC",
        "-shared", "-Wl,-Bsymbolic",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.threads = 1  # each counts for itself
        self._compiled: Any = None

    def compile(self, configuration: Configuration) -> Any:
        self._compiled = super().compile(configuration)
        return self._compiled

    @property
    def operations(self) -> int:
        """Number of floating-point operations since the process began."""
        found: int = self._compiled.operations
        return found

    def event(self) -> Any:
        """An event that counts operations instead of seconds."""
        return CountedEvent(self)


@cache
def per_point(plan: str) -> Mapping[tuple[str, str | None], float]:
    """Floating-point operations per point, by kernel and direction, of the kernels of `kernel_times.stage_rows` that
    visit all points of a block, run by `plan`. A sum, a product, a quotient and a root are one each, so that a fused
    multiply-add is two; comparisons are none. A fused sweep is given the operations of the kernels of the paper's plan
    that it replaces: operations that it repeats at the joints of its pieces do not count."""
    found = dict(_count("decomposed"))
    if plan in ("pencils", "decomposed"):  # written with packs, which do not count
        own: Mapping[tuple[str, str | None], float] = found
    else:
        own = _count(plan)
    swept = {d: sum(found.get((name, d), found.get((name, None), 0.0) / 3) for name in PARTS) for d in "ijk"}
    return {**found, **own} | {(name, d): operations for name in SWEEPS for d, operations in swept.items()}


@cache
def _count(plan: str) -> Mapping[tuple[str, str | None], float]:
    rows = kernel_times.stage_rows(*kernel_times.prepare(CountingBackend(), NODES, "fp64", plan), repeats=1)
    # The events of this backend give operations where others give seconds.
    return {(r["kernel"], r["direction"]): r["ns_per_point"] / 1e9 for r in rows if r["bytes_per_point"] is not None}
