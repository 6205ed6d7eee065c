"""The sweeps that precondition the implicit integrator, by the storage of the blocks of neighbours: what they read and
what they cost."""

import time
from collections import defaultdict
from statistics import median
from typing import Any, cast

import numpy as np

from hiresx.base.arrays import Reals
from hiresx.bench.kernel_times import TimingBackend
from hiresx.bench.rhs import LEAST_NODES
from hiresx.case import load
from hiresx.device.interface import Backend
from hiresx.equations.storage import BLOCK_BITS, BlockStorage, neighbour_reals
from hiresx.errors import HiresxError
from hiresx.solver import Solver
from hiresx.time.linearised import Implicit

# Sweeps over both colours that are timed at once.
SWEEPS = 4


def decoded(blocks: Reals, storage: BlockStorage, variables: int = 5, transported: bool = False) -> Reals:
    """Return the blocks of neighbours (side, row, column, k, j, i) that the field `implicit_blocks` holds, whose arrays
    have ghosts. `transported`: whether the last variable is that of a model of turbulence."""
    shape, squares = blocks.shape[1:], variables**2
    kept = np.ascontiguousarray(blocks[squares:]).reshape(-1).view(np.uint8)
    points = int(np.prod(shape))
    entries, bits = 6 * squares * points, BLOCK_BITS[storage]
    kind = {32: np.float32, 16: np.float16, 8: np.int8}[bits]
    found: Reals = kept[: entries * bits // 8].view(kind).astype(float).reshape(6, variables, variables, *shape)
    if bits < 32:
        exponents = kept[entries * bits // 8 :][: 6 * variables * points].reshape(6, variables, 1, *shape)
        found *= 2.0 ** (exponents.astype(int) - 127)
        found[:, :, variables - transported :] /= 1024.0
    return found


def bytes_of_sweep(storage: BlockStorage, lines: bool, variables: int = 5) -> int:
    """Return the bytes per node that a sweep over both colours must move at least: the blocks, the right-hand side, and
    the update, which is read and written. Over lines the inverses of pivots are read forth and back, and one block of a
    neighbour and the update once more."""
    block, vector, beside = 8 * variables**2, 8 * variables, 8 * neighbour_reals(storage, variables)
    forth = block + beside + 3 * vector
    return forth + block + beside // 6 + 2 * vector if lines else forth


def measure(device: Backend, nodes: int, storage: BlockStorage, lines: str, repeats: int) -> dict[str, Any]:
    """Time sweeps over both colours on `nodes`^3 nodes of a Taylor-Green vortex. `lines`: as implicit.lines.

    Returns `ns_per_node` of one sweep (the median of `repeats`; of its kernels alone); on a CPU `processor_ns`, what
    the processor worked for it, ghosts included; the `bytes_per_node` that a sweep must move and the `gb_per_s` that
    makes; the `block_bytes` of a node; and `kernels_ns`, the nanoseconds per node of each kernel, what makes the blocks
    and inverts them among them. Raises HiresxError for too few nodes."""
    if nodes < LEAST_NODES:
        raise HiresxError(f"{nodes} points in a direction are too few", f"take at least {LEAST_NODES}")
    case = load(
        "taylor-green",
        overrides=[
            f"grid.n=[{nodes},{nodes},{nodes}]", 'scheme.precision="fp64"', 'time.integrator="bdf2"',
            "implicit.krylov=1", f"implicit.sweeps={SWEEPS}", f'implicit.storage="{storage}"',
            f'implicit.lines="{lines}"',
        ],
    )  # fmt: skip
    timed = TimingBackend(device)
    solver = Solver(case, timed)
    solver.initialize()
    linear, system = cast(Implicit, solver.integrator).linearised, solver.system
    x, right, found = (system.vector() for _ in range(3))
    system.state(x)
    linear.begin()
    linear.change(x, right)
    seconds: dict[str, list[float]] = defaultdict(list)
    worked: list[float] = []
    for repeat in range(repeats + 1):
        timed.launches = []
        linear.assemble(x, 0.01)
        began = time.process_time()
        linear.precondition(right, found)
        worked.append(1e9 * (time.process_time() - began) / SWEEPS / solver.points)
        launches, timed.launches = timed.launches, None
        timed.synchronize()
        taken: dict[str, float] = defaultdict(float)
        for launch in launches:
            taken[launch.kernel] += launch.seconds
        for kernel, sum_of_kernel in taken.items() if repeat else ():
            seconds[kernel].append(sum_of_kernel)
    of_kernels = {kernel: 1e9 * median(samples) / solver.points for kernel, samples in seconds.items()}
    per_node = sum(ns for kernel, ns in of_kernels.items() if kernel in ("colour_sweep", "line_sweep")) / SWEEPS
    moved = bytes_of_sweep(storage, lines != "none")
    return {
        "storage": storage,
        "lines": lines,
        "nodes": nodes,
        "ns_per_node": per_node,
        "processor_ns": median(worked[1:]) if hasattr(device, "threads") else None,
        "bytes_per_node": moved,
        "gb_per_s": moved / per_node,
        "block_bytes": 8 * (25 + neighbour_reals(storage, 5)),
        "kernels_ns": of_kernels,
    }
