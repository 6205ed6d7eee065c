"""Estimates of the memory, time step, number of steps and computing time of a case. Nothing is compiled, and no fields
are allocated."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.base.plural import plural
from hiresx.case import Case
from hiresx.case.grid_file import GridFile
from hiresx.case.intervals import intervals
from hiresx.case.named_scheme import keys_in_force
from hiresx.case.schema import monitor_keys
from hiresx.case.turbulence_table import SST
from hiresx.decomposition import Decomposition, padded_shape, split
from hiresx.decomposition.halo_bytes import halo_bytes
from hiresx.decomposition.partition import best_partition
from hiresx.device import cuda
from hiresx.device.averaging import kinds, lanes, quantities
from hiresx.device.fields import Layout
from hiresx.device.rates import known_rate
from hiresx.equations import DIRECTIONS, equations
from hiresx.equations.diffusivity import largest_diffusivity
from hiresx.equations.stencil import DIFFERENCE_REACH, largest_diffusion
from hiresx.equations.storage import STORAGE
from hiresx.equations.system import transported_names
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid, build
from hiresx.grid.blocks import AXES
from hiresx.grid.counting import file_nodes
from hiresx.grid.size import MAKING, in_bytes, refuse, refuse_places
from hiresx.rhs.compact import NAME as COMPACT
from hiresx.rhs.compact import obstacle as compact_obstacle
from hiresx.rhs.layers import place_sponges
from hiresx.rhs.plans import default_plan, needed_fields
from hiresx.rhs.sponge import layer_reals
from hiresx.time.integrators import integrator, remarks, viscous_limit
from hiresx.time.linearised import VECTORS as IMPLICIT_VECTORS
from hiresx.time.linearised import linear_solver
from hiresx.time.reduction import scratch_reals
from hiresx.time.step_rule import largest_step, steps_towards

# Number of nodes per block at which the initial state is evaluated to estimate the step.
SAMPLES = 200_000
# A number of steps that no run reaches; the estimate is then left out.
MOST_STEPS = 1e15
# Bytes per node while the quality of a grid is computed.
CHECKING = 200


def refuse_oversized(
    case: Case, backend: str = "", nodes: int | None = None, hosts: int = 1, for_grid: float = MAKING
) -> None:
    """Raise HiresxError, before anything is allocated, if the memory of this machine is too small for the grid of
    `case` or the stencils of its probes. On a CPU (`backend` "cpu" or "emulated", or "auto" without a GPU) it must also
    be large enough for 1/`hosts` of the fields. `hosts`: the number of machines among which the run is divided.
    `nodes`: number of nodes of a grid that exists already; None: the number in the case. `for_grid`: bytes per node
    that are needed to make the grid; these bytes are not counted for a grid file, since the nodes of large files are
    read gradually."""
    for n, probe in enumerate(case.probe):
        refuse_places(f"probe.{n}", probe.count, _dimensions(case))
    if nodes is None and isinstance(case.grid, GridFile):
        for_grid = 0  # coordinates of large files stay in the file
    nodes = grid_nodes(case) if nodes is None else nodes
    if nodes is not None:
        if backend == "auto" and cuda.largest_memory() is None:
            backend = "cpu"
        fields = _bytes_per_point(case, backend) / hosts if backend in ("cpu", "emulated") else 0
        refuse(nodes, for_grid, fields)


def _dimensions(case: Case) -> int:
    """Return the least number of dimensions that the grid of a case has."""
    size = getattr(case.grid, "n", None)
    return sum(n > 1 for n in size) if isinstance(size, tuple) else 1


def refuse_on_gpus(case: Case, backend: str, ranks: int) -> None:
    """Raise HiresxError, before anything is allocated, if the memory of `ranks` GPUs is too small for the fields of
    `case`. All GPUs are assumed to be as large as the largest that this process can use. Nothing is checked if the case
    is not computed on GPUs or its number of nodes is unknown. The free memory of each GPU is checked later
    (`hiresx.solver.plan_choice`). `backend`: the name of the backend."""
    nodes = grid_nodes(case)
    if nodes is None or backend not in ("auto", "cuda"):
        return
    largest = cuda.largest_memory()
    if largest is None:
        return
    least = "compact" if case.plan == "auto" and compact_obstacle(case) is None else None
    needed = nodes * _bytes_per_point(case, "cuda", least)
    if needed > ranks * largest:
        raise HiresxError(
            f"grid: the fields of {nodes:,} nodes take {in_bytes(needed)}, "
            f"{'the GPU has' if ranks == 1 else f'{ranks} GPUs have'} {in_bytes(ranks * largest)} of memory",
            'ask for fewer nodes, for precision = "fp32", or for more GPUs',
        )


def grid_nodes(case: Case) -> int | None:
    """Return the number of nodes of the grid of `case`, before it is made or read; None if it is unknown."""
    if isinstance(case.grid, GridFile):
        return file_nodes(case.grid, case.directory)
    return case.grid.nodes


def estimate(case: Case, backend: str = "cpu", grid: Grid | None = None) -> dict[str, Any]:
    """Return an estimate of the resources that a run of `case` needs, as a dictionary: points, device memory (fields,
    reductions, sponges, averages), time step, number of steps and seconds. The time step is computed from the initial
    state at a sample of the nodes. Edges of cells replace the metrics, so it is accurate on nearly orthogonal grids.
    The seconds follow from the last rate that `hiresx bench` measured on this machine and backend; without such a
    measurement they are None. `grid`: the grid of the case, if it was made before. Raises HiresxError if the time step
    is not positive and finite."""
    grid = build(case.grid, case.directory) if grid is None else grid
    case = place_sponges(case, grid.blocks)
    is_viscous = case.gas.reynolds is not None
    points = sum(block.points for block in grid.blocks)
    memory = memory_bytes(case, grid.blocks, backend)
    compact_bytes = memory_bytes(case, grid.blocks, backend, "compact")
    with np.errstate(all="ignore"):  # the result is checked below
        of_nodes = [_radii(case, block) for block in grid.blocks]
        radii = np.max([(inviscid.max(), viscous.max()) for inviscid, viscous, _ in of_nodes], axis=0).tolist()
        dt = case.time.dt or largest_step(case.time.cfl or 0.0, case.time.viscous_cfl, *radii)
    if not 0 < dt < math.inf:
        raise HiresxError(
            f"the time step of the initial state is {dt:g}",
            "check time.cfl, gas.reynolds and the lengths of the grid",
        )
    steps = _steps(case, dt)
    scheme = integrator(case.time.integrator)
    rate = known_rate(backend, is_viscous, case.scheme.precision)
    seconds = (
        None
        if rate is None or steps is None or scheme.implicit
        else rate["ns_per_point_rhs"] * 1e-9 * points * steps * scheme.stages
    )
    return {
        "points": points,
        "reals_per_padded_point": _layout(case, backend).numbers_per_point + equations(case).variables * _vectors(case),
        "bytes_per_point": memory / points,
        "memory_bytes": memory,
        "variables": list(equations(case).conserved_names),
        "additions": list(_additions(case)),
        "plans": {name: default_plan(name) if case.plan == "auto" else case.plan for name in ("cpu", "cuda")},
        "compact_bytes_per_point": compact_bytes / points if compact_obstacle(case) is None else None,
        "integrator": {
            "name": case.time.integrator,
            "order": scheme.order,
            "stages": scheme.stages,
            "reals_per_padded_point": equations(case).variables * (scheme.registers + _vectors(case)),
            "cfl": scheme.cfl,
            "viscous_cfl": viscous_limit(case),
            "steady": scheme.steady,
            "implicit": scheme.implicit,
            **({"products": case.implicit.krylov, "largest_cfl": case.implicit.largest_cfl} if scheme.steady else {}),
            **(
                {"newton_steps": case.implicit.newton_steps, "tolerance": case.implicit.tolerance}
                if scheme.implicit and not scheme.steady
                else {}
            ),
        },
        "notes": [*remarks(case), *remarks_on_step(case, *radii), *_remarks_on_model(case, dt, of_nodes)],
        "dt": dt,
        "steps": steps,
        "ns_per_point_rhs": None if rate is None else rate["ns_per_point_rhs"],
        "rate_from": "not measured yet: hiresx bench" if rate is None else rate["from"],
        "seconds": seconds,
    }


def estimate_ranks(
    case: Case, decomposition: Decomposition, ranks: int, weights: Sequence[float] | None = None
) -> dict[str, Any]:
    """Divide the blocks of `decomposition` among `ranks` ranks of the relative speeds `weights`, and return the
    estimated loads as a dictionary. Its entry `bytes` is a matrix (from rank, to rank) of the bytes sent in a step, and
    `per_rank` has a dictionary for each rank: `parts`, its boxes of nodes; `points`, the number of its nodes;
    `of_its_share`, this number divided by the share for its speed; `neighbours`, the ranks with which it exchanges
    ghost nodes; `bytes_per_step`, the bytes that it sends in a step; and `memory_bytes`, its device memory. Raises
    HiresxError if the grid cannot be divided among so many ranks, and unless `weights` is None (equal speeds) or has
    one positive number for each rank."""
    if ranks > decomposition.points:
        raise HiresxError(f"{plural(ranks, 'rank')} for {decomposition.points} points", "ask for fewer")
    case = place_sponges(case, decomposition.blocks)
    found = best_partition(decomposition, ranks, weights)
    cut = split(decomposition, found.parts)
    per_stage = halo_bytes(cut, exchanged_bytes(case))
    matrix = integrator(case.time.integrator).stages * per_stage
    share = np.ones(ranks) / ranks if weights is None else np.array(weights) / np.sum(weights)
    held: list[list[int]] = [[] for _ in range(ranks)]
    for n, part in enumerate(found.parts):
        held[part.rank].append(n)
    rows, names = [], decomposition.names_of_grid
    for rank, mine in enumerate(held):
        parts = [found.parts[n] for n in mine]
        points = sum(part.points for part in parts)
        # Sponges name whole blocks.
        blocks = [replace(cut.blocks[n], name=names[found.parts[n].whole]) for n in mine]
        rows.append(
            {
                "rank": rank,
                "parts": [{"block": decomposition.blocks[part.whole].name, "box": part.box} for part in parts],
                "points": points,
                "of_its_share": points / (decomposition.points * share[rank]),
                "neighbours": np.flatnonzero(matrix[rank] + matrix[:, rank]).tolist(),
                "bytes_per_step": int(matrix[rank].sum()),
                "memory_bytes": memory_bytes(case, blocks),
            }
        )
    return {
        "ranks": ranks,
        "weights": None if weights is None else list(weights),
        "method": found.method,
        "parts": len(found.parts),
        "imbalance": max(row["of_its_share"] for row in rows) - 1,
        "bytes_per_step": int(matrix.sum()),
        "per_rank": rows,
        "bytes": matrix,
    }


def memory_bytes(case: Case, blocks: Sequence[Block], backend: str = "cpu", plan: str | None = None) -> int:
    """Return the device memory, in bytes, that a run of `case` needs for fields, reductions, sponges and averages on
    `blocks`. `backend`: the name of the backend. `plan`: the name of an order of computation in hiresx.rhs.plans; None:
    the order that the case sets or, if it sets none, the default of the backend."""
    halo = case.stencil.halo
    padded = sum(math.prod(padded_shape(block, halo)) for block in blocks)
    extra = _extra_reals(case, blocks, _layout(case, backend, plan).needed["work"]) * _item(case)
    return padded * _bytes_per_point(case, backend, plan) + extra + average_bytes(case, blocks, backend)


def device_bytes(case: Case, blocks: Sequence[Block], backend: str, plan: str) -> int:
    """Return the device memory, in bytes, that a run of `case` needs: for the arrays on `blocks` (`memory_bytes`) and,
    while it is set up, the coordinates from which metrics are computed. `plan`: the name of an order of computation in
    hiresx.rhs.plans."""
    halo = case.stencil.halo
    largest = max((math.prod(padded_shape(block, halo)) for block in blocks), default=0)
    return memory_bytes(case, blocks, backend, plan) + DIRECTIONS * 8 * largest


def layout(case: Case, plan: str) -> Layout:
    """Return which fields (named arrays at the nodes) the blocks of `case` store. `plan`: the name of an order of
    computation in hiresx.rhs.plans."""
    needed = needed_fields(case, plan) | integrator(case.time.integrator).needed_fields(case) | case.needed_fields()
    return Layout(STORAGE[case.scheme.precision], equations(case), needed, case.implicit.sweep_precision)


def exchanged_bytes(case: Case) -> int:
    """Return the number of bytes that are sent for each ghost node in a stage of a time step of `case`."""
    return layout(case, COMPACT).exchanged_bytes(case.gas.reynolds is not None)  # the same for every plan


def _layout(case: Case, backend: str, plan: str | None = None) -> Layout:
    return layout(case, plan or (default_plan(backend) if case.plan == "auto" else case.plan))


def _bytes_per_point(case: Case, backend: str, plan: str | None = None) -> int:
    """Return the bytes per padded point of the fields of a block and of the vectors that its integrator needs."""
    of_vectors = _vectors(case) * equations(case).variables * _item(case)
    return _layout(case, backend, plan).bytes_per_point + of_vectors


def _vectors(case: Case) -> int:
    """Return the number of vectors of an integrator that iterates, including those of its history and of the start of a
    step."""
    scheme = integrator(case.time.integrator)
    of_krylov = 0
    if scheme.implicit:
        of_direction = linear_solver(case.implicit).vectors_of_direction
        of_krylov = of_direction * case.implicit.krylov + IMPLICIT_VECTORS
    return scheme.vectors + scheme.history + 1 + of_krylov if scheme.iterates else 0


def _item(case: Case) -> int:
    return STORAGE[case.scheme.precision].sizes[0]


def _extra_reals(case: Case, blocks: Sequence[Block], work: int) -> int:
    """Return the number of reals of reductions and sponge layers."""
    real, _, kept, _ = STORAGE[case.scheme.precision].sizes
    halo = case.stencil.halo
    in_reals = [work * kept * math.prod(padded_shape(block, halo)) // real for block in blocks]
    reductions = sum(scratch_reals(block.size, room) for block, room in zip(blocks, in_reals, strict=True))
    return reductions + sum(layer_reals(spec, block) for spec in case.sponge for block in blocks)


def average_bytes(case: Case, blocks: Sequence[Block], backend: str) -> int:
    """Return the device memory, in bytes, of the time averages of `case` on `blocks`. For averages over index
    directions it includes the partial sums on the device. If the blocks are divided along such directions among ranks,
    a little more is needed: the averages of one sample. `backend`: the name of the backend."""
    if case.average is None:
        return 0
    count, over = quantities(kinds(case.average), equations(case).scalars), case.average.over
    if not over:
        return 8 * count * sum(block.points for block in blocks)
    kept = sum(math.prod(1 if d in over else n for d, n in zip(AXES, block.size, strict=True)) for block in blocks)
    return 8 * (count * kept + (count + 1) * sum(math.prod(lanes(block.size, over, backend)) for block in blocks))


def _steps(case: Case, dt: float) -> int | None:
    wanted = [] if case.time.steps is None else [case.time.steps]
    free = case.time.local or case.implicit.tolerance is not None
    if case.time.end is not None and not free and case.time.end / dt < MOST_STEPS:
        wanted.append(_steps_to_the_end(case, case.time.end, dt))
    return min(wanted) if wanted else None


def _steps_to_the_end(case: Case, end: float, dt: float) -> int:
    """Return the number of steps `dt` to the end of the run. Steps before a time at which something is sampled or
    written are shorter, or evenly spread (hiresx.time.step_rule); the interval that causes most steps counts."""
    lengths = [end, *(min(every, end) for key, every in intervals(case, monitor_keys()).items() if key != "checkpoint")]
    fixed = case.time.dt is not None
    steps = [math.ceil(length / dt - 1e-9) if fixed else steps_towards(length, dt) for length in lengths]
    return max(math.ceil(end / length * n - 1e-9) for length, n in zip(lengths, steps, strict=True))


def _additions(case: Case) -> Iterator[str]:
    """Yield the additions of a case to the equations and the scheme, in a few words each."""
    if keys := keys_in_force(case):
        yield f"scheme.choice {case.scheme.choice} ({keys})"
    if case.scheme.inviscid != "afweno":
        yield f"{case.scheme.inviscid} inviscid terms{' (experimental)' * (case.scheme.inviscid == 'regularised')}"
    if case.turbulence.model != "none":
        yield f"eddy viscosity ({case.turbulence.model})"
    if any(condition.type == "modelled-wall" for condition in case.boundary):
        yield "wall model"
    if case.body_force is not None:
        yield "body force" if case.body_force.keep is None else "body force that keeps the mass flow"
    if case.source is not None:
        yield f"sources of {', '.join(case.source.texts())}"
    if case.filter is not None:
        yield f"filter of order {case.filter.order}, {_every(case.filter.every)}"


def _every(steps: int) -> str:
    return "every step" if steps == 1 else f"every {steps} steps"


def remarks_on_step(case: Case, inviscid: float, viscous: float) -> list[str]:
    """Return warnings about the time step of `case`: a constant step `time.dt` with which the time integrator is
    unstable, and sponges that are too strong for the step. `inviscid`, `viscous`: the largest spectral radii of the
    flow, in c_ref / L."""
    name, time = case.time.integrator, case.time
    scheme = integrator(name)
    stable = largest_step(scheme.cfl, viscous_limit(case), inviscid, viscous)
    found = []
    if time.dt is not None and time.dt > stable:
        found.append(f'time.dt = {time.dt:g} is above {stable:.3g}, up to which "{name}" is stable with this flow')
    if not scheme.implicit:
        step = time.dt or largest_step(time.cfl or 0.0, time.viscous_cfl, inviscid, viscous)
        strongest = scheme.viscous_cfl * largest_diffusion(DIFFERENCE_REACH) / step
        found += [
            f'sponge.{n}.strength = {sponge.strength:g} is above {strongest:.3g}, up to which "{name}" is stable with '
            f"steps of {step:.3g}"
            for n, sponge in enumerate(case.sponge)
            if sponge.strength > strongest
        ]
    return found


def _remarks_on_model(case: Case, dt: float, of_nodes: Sequence[tuple[np.ndarray, ...]]) -> list[str]:
    """Yield remarks on a turbulence model: a far field without eddy viscosity, and the largest far-field value for
    which the estimated step `dt` is valid, by the spectral radii `of_nodes` of blocks (see `_radii`)."""
    given, said = case.turbulence, []
    key, usual = ("far_field_k", "0.009") if given.model == SST else ("far_field", "3 to 5")
    initial = given.initial.get(transported_names(SST)[0]) if isinstance(given.initial, dict) else given.initial
    if given.transported and getattr(given, key) == 0 and initial in (None, 0.0):
        said.append(
            f"turbulence.{key} = 0, and nothing at the beginning: the model makes no eddy viscosity where there is "
            f"none, the flow stays laminar; {usual} is usual"
        )
    elif given.transported and getattr(given, key) == 0:
        said.append(f"turbulence.{key} = 0: what enters carries no eddy viscosity; {usual} is usual")
    if given.model == "none" or case.time.dt is not None:
        return said
    with np.errstate(all="ignore"):  # a radius of 0 belongs to a ring around a pole
        room = min(float(np.nanmin((case.time.viscous_cfl / dt - viscous) / eddies)) for _, viscous, eddies in of_nodes)
    return [
        *said,
        "the time step is that without eddy viscosity. In a run it is smaller if the eddy viscosity exceeds "
        f"{max(room, 0.0):.3g} mu_ref in the narrowest cells; in wider cells it may be larger",
    ]


def _radii(case: Case, block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the inviscid and the viscous spectral radius of the initial state at a sample of the nodes of a block, and
    the increase of the latter by an eddy viscosity of mu_ref (kernels/timestep.h). All are one-dimensional, in c_ref /
    L."""
    stride = max(1, round((block.points / SAMPLES) ** (1 / max(len(block.active), 1))))
    sample = tuple(slice(None, None, stride) for _ in range(3))
    x, y, z = (c[sample] for c in (block.x, block.y, block.z))
    if case.initial.state is not None:
        s = case.initial.state
        rho, u, v, w, p = (np.full(x.shape, value) for value in (s.rho, s.u, s.v, s.w, s.p))
    else:
        rho, u, v, w, p = case.evaluate(case.initial.function or "", x, y, z)
    sound = np.sqrt(case.gas.gamma * p / rho)
    radius, inverse = np.zeros(x.shape), []
    for d in block.active:
        ex, ey, ez = (e[sample] for e in _edges(block, d))
        squares = ex * ex + ey * ey + ez * ez
        squares = np.where(squares > 0, squares, np.inf)  # rings around a pole
        inverse.append(1 / np.sqrt(squares))
        radius += np.abs(u * ex + v * ey + w * ez) / squares + sound * inverse[-1]
    if case.gas.reynolds is None:
        return radius.ravel(), np.zeros(1), np.zeros(1)
    mu = case.gas.viscosity.viscosity(case.gas.gamma * p / rho)
    diffusion = sum(i * i for i in inverse) / (case.gas.reynolds * rho)
    largest = largest_diffusivity(case.gas.gamma, case.gas.prandtl, [scalar.schmidt for scalar in case.all_scalars])
    eddies, schmidt = case.turbulence, [case.turbulence.schmidt] if case.all_scalars else []
    of_eddies = largest_diffusivity(case.gas.gamma, eddies.prandtl, schmidt)
    return radius.ravel(), (largest * mu * diffusion).ravel(), (of_eddies * diffusion).ravel()


def _edges(block: Block, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x, y, z of the edge vector through every node in direction d, (nk, nj, ni)."""
    return triple(np.gradient(c, axis=2 - d) for c in (block.x, block.y, block.z))
