"""Times of the sweeps that precondition the implicit integrator, and the bytes that they move, for each storage of the
matrix blocks of neighbours."""

import time
from collections import defaultdict
from statistics import median
from typing import Any, cast

from launch_times import TimingBackend

from hiresx.bench.rhs import LEAST_NODES
from hiresx.case import load
from hiresx.device.interface import Backend
from hiresx.equations.storage import (
    MATRIX_FREE,
    BlockStorage,
    SweepPrecision,
    block_reals,
    line_words,
    neighbour_words,
    packed_reals,
)
from hiresx.errors import HiresxError
from hiresx.solver import Solver
from hiresx.time.linearised import ImplicitIntegrator

# The kernels of a sweep.
SWEEPING = (
    "colour_sweep", "line_right", "line_sweep", "line_sweep_ahead", "turn_lines", "product_sweep", "split_sweep",
    "product_right", "face_sweep", "face_right",
)  # fmt: skip
# Number of sweeps over both colours in one measurement.
SWEEPS = 4


def bytes_of_sweep(storage: BlockStorage, precision: SweepPrecision, lines: bool, variables: int = 5) -> int:
    """Return the least number of bytes per node that a sweep of the preconditioner over both colours moves, with
    `variables` conservative variables. It moves the blocks of the neighbours, the inverse of the diagonal block, the
    right-hand side, and the update, which is read and written.

    If the sweep goes over grid `lines`, the factors of the lines take the place of two of these blocks (in FP64 only of
    the inverse, which is read twice), and each node has a right-hand side and an intermediate result that are stored in
    between. If the blocks of neighbours are not stored, each colour reads the data from which they are computed: the
    states of all nodes and the areas and Jacobians of all faces. Sweeps over nodes are then those of the Steger-Warming
    flux. They read four numbers of a state, two more of each node of the colour, and no inverses.
    `storage`: the number format of the blocks. `precision`: the number format of the sweeps.
    """
    inverse = 8 * packed_reals(variables**2, precision)
    number = 8 if precision == "fp64" else 4
    update = number * variables
    along = 8 * 2 * line_words(storage, variables, precision) + inverse * (precision == "fp64") + 4 * update
    if storage == MATRIX_FREE:
        if not lines:
            four = 8 if precision == "fp16" else 4 * number  # of the state, and of each face
            return 2 * 4 * four + 2 * number + 3 * update
        # each colour reads the states and faces of all nodes, but only the time steps of its own nodes
        return number * (2 * (variables + 12) + 1) + inverse + 3 * update + along
    block = 8 * neighbour_words(storage, variables)
    forth = inverse + 8 * variables + 2 * update
    return forth + 4 * block + along if lines else forth + 6 * block


def measure(
    device: Backend, nodes: int, storage: BlockStorage, precision: SweepPrecision, lines: str, repeats: int
) -> dict[str, Any]:
    """Time sweeps over both colours on `nodes`^3 nodes of a Taylor-Green vortex. `device`: the backend. `storage` and
    `precision`: the storage of the blocks and the precision of the sweeps. `lines`: a value of the key implicit.lines.
    Returns the median of `repeats` of one sweep, `ns_per_node` (its kernels alone); the bytes that a sweep must move,
    `bytes_per_node`, and the rate that follows, `gb_per_s`; the size of the stored blocks of a node, `block_bytes`; and
    the time of each kernel, `kernels_ns` per node, including those that compute and invert the blocks. On a CPU also
    `processor_ns`, the processor time per node, ghosts included. Raises HiresxError for too few nodes."""
    if nodes < LEAST_NODES:
        raise HiresxError(f"{nodes} points in a direction are too few", f"take at least {LEAST_NODES}")
    case = load(
        "taylor-green",
        overrides=[
            f"grid.n=[{nodes},{nodes},{nodes}]", 'scheme.precision="fp64"', 'time.integrator="bdf2"',
            "implicit.krylov=1", f"implicit.sweeps={SWEEPS}", f'implicit.storage="{storage}"',
            f'implicit.lines="{lines}"',
            f'implicit.sweep_precision="{precision}"',
        ],
    )  # fmt: skip
    timed = TimingBackend(device)
    solver = Solver(case, timed)
    solver.initialize()
    linear, system = cast(ImplicitIntegrator, solver.integrator).linearised, solver.system
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
    per_node = sum(of_kernels.get(kernel, 0.0) for kernel in SWEEPING) / SWEEPS
    moved = bytes_of_sweep(storage, precision, lines != "none")
    return {
        "storage": storage,
        "sweep_precision": precision,
        "lines": lines,
        "nodes": nodes,
        "ns_per_node": per_node,
        "processor_ns": median(worked[1:]) if hasattr(device, "threads") else None,
        "bytes_per_node": moved,
        "gb_per_s": moved / per_node,
        "block_bytes": 8 * block_reals(storage, 5, case.implicit.stored_directions),
        "kernels_ns": of_kernels,
    }
