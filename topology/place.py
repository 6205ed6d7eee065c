"""The GPU of each rank by several strategies, chosen among the free GPUs.

The result only depends on the machine and the byte matrix, so that every rank computes the same.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.topology.cost import Estimate, Model, Traffic
from hiresx.topology.groups import tree
from hiresx.topology.machine import Machine
from hiresx.topology.place_paper import place_paper
from hiresx.topology.place_search import SAME, place_optimal, place_pair_sum

# optimal: the shortest exchange; pair-sum: the least total cost of all pairs; paper: the fewest bytes between groups.
STRATEGIES = ("optimal", "pair-sum", "paper", "round-robin")
EXPLICIT = "gpu-map"
# A GPU counts as idle up to these limits: its memory in use is about what the driver takes (0.5 GB of 80; X takes more
# of a small card).
BUSY_UTILISATION = 20  # per cent
BUSY_MEMORY = 10  # per cent
# No node has more ranks than this. A larger byte matrix, which would take minutes, is refused.
MOST_RANKS = 512


@dataclass(frozen=True)
class StrategyPlacement:
    """A placement and its properties. `placement`: index of the GPU of each rank. `estimate`: the estimated cost of an
    exchange. `shortest`: whether it is proven that no even placement (`is_even`) takes fewer seconds. `least_sum`:
    whether it is proven that none has a lower cost. Both are false for a placement that is not even. `evaluations`:
    number of placements, or parts of placements, whose cost was computed. `took`: seconds of the search."""

    placement: tuple[int, ...]
    estimate: Estimate
    shortest: bool
    least_sum: bool
    evaluations: int
    took: float


@dataclass(frozen=True)
class PlacementPlan:
    """The placements of all strategies, by name in `strategies`. `machine`: the machine. `demand`: the traffic between
    the ranks. `gpus`: the GPUs that may be used. `left_out`: reasons why others are not, by index. `bound`: a lower
    bound of the seconds of all even placements (`is_even`) on them; 0 if none was computed."""

    machine: Machine
    demand: Traffic
    gpus: tuple[int, ...]
    left_out: dict[int, str]
    strategies: dict[str, StrategyPlacement]
    bound: float = 0.0

    @property
    def most(self) -> int:
        """Largest number of ranks on one GPU if the ranks are distributed evenly over the usable GPUs."""
        return -(-self.demand.ranks // len(self.gpus))

    @property
    def best(self) -> str:
        """Name of the recommended strategy: the placement that the user requested, if any; otherwise the strategy with
        the shortest estimated exchange and, among equal ones, the one with the lowest summed cost."""
        if EXPLICIT in self.strategies:
            return EXPLICIT

        def key(name: str) -> tuple[float, float, int]:
            estimate = self.strategies[name].estimate
            return float(f"{estimate.seconds:.9g}"), float(f"{estimate.cost:.9g}"), list(self.strategies).index(name)

        return min(self.strategies, key=key)

    def gain(self, name: str) -> float:
        """Return the fraction of the estimated exchange time of round-robin placement that the strategy `name` saves; 0
        if round-robin was not computed."""
        base = self.strategies["round-robin"].estimate.seconds if "round-robin" in self.strategies else 0.0
        return 1 - self.strategies[name].estimate.seconds / base if base > 0 else 0.0


def free_gpus(
    machine: Machine,
    asked: Sequence[int] | None = None,
    busy_utilisation: float = BUSY_UTILISATION,
    busy_memory: float = BUSY_MEMORY,
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Return the indexes of the GPUs to use, and a dictionary with the reason why each other GPU is left out. If
    `asked` is given, exactly these GPUs are used, even if they are busy. Otherwise GPUs are left out whose utilisation
    or used memory exceeds `busy_utilisation` or `busy_memory`, in per cent. A slice of a GPU that MIG has divided
    counts as a GPU; a GPU in MIG mode without slices is not used. Raises HiresxError if no GPU is left, if a GPU in
    `asked` does not exist, and if a limit is not a percentage."""
    for option, limit in (("--busy", busy_utilisation), ("--busy-memory", busy_memory)):
        if not 0 <= limit <= 100:
            raise HiresxError(f"{option} {limit:g}: no percentage", "give a number from 0 to 100; 100 leaves none out")
    if not machine.gpus:
        if machine.live:
            raise HiresxError("this machine has no GPU to place ranks on", "plan from a recording with --from FILE")
        raise HiresxError("the recording has no GPU to place ranks on", "take the recording of a machine that has GPUs")
    if asked is not None:
        chosen = check_gpus(machine, asked)
        return chosen, {gpu.index: "not asked for" for gpu in machine.gpus if gpu.index not in chosen}
    left_out = {}
    for gpu in machine.gpus:
        memory = 100 * gpu.memory_used / gpu.memory if gpu.memory and gpu.memory_used is not None else 0
        if gpu.mig and not gpu.mig_uuid:
            left_out[gpu.index] = "MIG is on: its parts have no peer access"
        elif gpu.utilisation is not None and gpu.utilisation > busy_utilisation:
            left_out[gpu.index] = f"busy: {gpu.utilisation} % utilisation"
        elif memory > busy_memory:
            left_out[gpu.index] = f"busy: {memory:.0f} % of its memory in use"
    chosen = tuple(gpu.index for gpu in machine.gpus if gpu.index not in left_out)
    if not chosen:
        raise HiresxError(
            f"{'the GPU is' if len(machine.gpus) == 1 else f'all {len(machine.gpus)} GPUs are'} left out: GPU 0 is "
            f"{left_out[0]}",
            "name those to use with --gpus, e.g. --gpus 0,1",
        )
    return chosen, left_out


def _near_our_cpus(
    machine: Machine, chosen: tuple[int, ...], left_out: dict[int, str], ranks: int
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Leave out GPUs that are far from the CPUs that the scheduler has given, if the near ones suffice for the
    ranks."""
    if not machine.live or machine.allowed is None:
        return chosen, left_out
    allowed = machine.allowed
    near = tuple(gpu for gpu in chosen if not (cpus := machine.gpus[gpu].cpus) or cpus & allowed)
    if len(near) < ranks:
        return chosen, left_out
    far = {gpu: "none of its nearest CPUs is among those this process may use" for gpu in chosen if gpu not in near}
    return near, left_out | far


def check_gpus(machine: Machine, asked: Sequence[int]) -> tuple[int, ...]:
    """Return the GPU indexes `asked` in ascending order, each once. Raises HiresxError for an index that the machine
    does not have, and for an empty list."""
    for gpu in asked:
        if not 0 <= gpu < len(machine.gpus):
            raise HiresxError(
                f"there is no GPU {gpu}",
                f"{'this machine' if machine.live else 'the recording'} has {len(machine.gpus)}: 0 to "
                f"{len(machine.gpus) - 1}",
            )
    if not asked:
        raise HiresxError("no GPU is named", "name some, e.g. 0,1")
    return tuple(sorted(set(asked)))


def plan(
    machine: Machine,
    demand: Traffic,
    *,
    strategies: Sequence[str] = STRATEGIES,
    gpus: Sequence[int] | None = None,
    gpu_map: Sequence[int] | None = None,
    busy_utilisation: float = BUSY_UTILISATION,
    busy_memory: float = BUSY_MEMORY,
) -> PlacementPlan:
    """Compute the placement of ranks on GPUs by each of the `strategies`, and return the placements with their
    estimated costs. `demand`: the bytes that ranks send to each other. `gpu_map`: a placement of the user, the GPU of
    each rank, which is evaluated as well. `gpus`: indexes of the GPUs that may be used. By default these are all GPUs
    whose utilisation and used memory do not exceed `busy_utilisation` and `busy_memory` in per cent; if enough of them
    are near the CPUs that this process may use, only these. Raises HiresxError for an unknown strategy, for an invalid
    `gpu_map`, and if no GPU can be used."""
    if demand.ranks > MOST_RANKS:
        raise HiresxError(f"{demand.ranks} ranks on one host", f"plan for at most {MOST_RANKS}")
    check_strategies(strategies)
    if gpu_map is not None:
        if len(gpu_map) != demand.ranks:
            raise HiresxError(
                f"--gpu-map names {plural(len(gpu_map), 'GPU')} for {plural(demand.ranks, 'rank')}", "name one per rank"
            )
        check_gpus(machine, gpu_map)
    chosen, left_out = free_gpus(machine, gpus, busy_utilisation, busy_memory)
    if gpus is None:
        chosen, left_out = _near_our_cpus(machine, chosen, left_out, demand.ranks)
    model = Model(machine)
    found: dict[str, tuple[int, ...]] = {}
    took: dict[str, float] = {}
    bound, shortest, least_sum, evaluations = 0.0, False, False, 0
    for name in ("round-robin", "paper", "pair-sum", "optimal"):
        since = time.perf_counter()
        starts = [list(entry) for entry in reversed(found.values())]
        if name == "round-robin":
            found[name] = tuple(chosen[rank % len(chosen)] for rank in range(demand.ranks))
        elif name == "paper":
            found[name] = tuple(place_paper(demand, tree(machine, chosen)))
        elif name == "pair-sum" and {"pair-sum", "optimal"} & set(strategies):
            best = place_pair_sum(model, demand, list(chosen), starts)
            found[name], least_sum = tuple(best.placement), best.proven
        elif name == "optimal" and "optimal" in strategies:
            best = place_optimal(model, demand, list(chosen), starts)
            found[name] = tuple(best.placement)
            bound, shortest, evaluations = best.bound, best.proven, best.evaluations
        took[name] = time.perf_counter() - since
    if gpu_map is not None:
        found[EXPLICIT], took[EXPLICIT] = tuple(gpu_map), 0.0
    estimates = {name: model.estimate(demand, placement) for name, placement in found.items()}
    even = {name for name, placement in found.items() if is_even(placement, chosen)}
    least = min(estimates[name].cost for name in even)
    quickest = min(estimates[name].seconds for name in even)
    placed = {
        name: StrategyPlacement(
            placement=found[name],
            estimate=estimates[name],
            shortest=shortest and name in even and estimates[name].seconds <= quickest * (1 + SAME),
            least_sum=least_sum and name in even and estimates[name].cost <= least * (1 + 1e-12),
            evaluations=evaluations if name == "optimal" else 0,
            took=took[name],
        )
        for name in (EXPLICIT, *STRATEGIES)
        if name in found and name in (EXPLICIT, *strategies)
    }
    return PlacementPlan(machine, demand, chosen, left_out, placed, bound)


def is_even(placement: Sequence[int], gpus: Sequence[int]) -> bool:
    """Return whether a placement uses only the GPUs `gpus`, and the numbers of ranks on any two of these GPUs differ by
    one at most. `placement`: the GPU of each rank."""
    ranks = [placement.count(gpu) for gpu in gpus]
    return sum(ranks) == len(placement) and max(ranks) - min(ranks) <= 1


def check_strategies(names: Iterable[str]) -> None:
    """Raise HiresxError for the first of `names` that is not the name of a placement strategy."""
    for name in names:
        if name not in STRATEGIES:
            raise HiresxError(f'no placement strategy "{name}"', f"the strategies are {', '.join(STRATEGIES)}")


def place(machine: Machine, demand: Traffic, strategy: str = "optimal", **options: Any) -> tuple[int, ...]:
    """Return the index of the GPU of each rank, as one strategy places them. `demand`: the bytes that ranks send to
    each other. `strategy`: "optimal", "pair-sum", "paper" or "round-robin". `options`: further arguments of `plan`.
    Raises HiresxError if an argument is invalid or no GPU can be used."""
    return plan(machine, demand, strategies=(strategy,), **options).strategies[strategy].placement


def to_json(made: PlacementPlan) -> dict[str, Any]:
    """Return the placements of all strategies in `made` and their estimated costs as JSON data:
    strategies.NAME.placement, .cost (s), .seconds, .busiest_link and further entries."""
    return {
        "machine": {"source": made.machine.source, "host": made.machine.host, "gpus": len(made.machine.gpus)},
        "ranks": made.demand.ranks,
        "bytes": float(made.demand.bytes.sum()),
        "off_host_bytes": float(made.demand.off_host.sum()),
        "gpus": list(made.gpus),
        "left_out": {str(gpu): reason for gpu, reason in made.left_out.items()},
        "recommended": made.best,
        "bound_seconds": made.bound,
        "strategies": {
            name: {
                "placement": list(entry.placement),
                "cost": entry.estimate.cost,
                "seconds": entry.estimate.seconds,
                "busiest_link": entry.estimate.busiest,
                "busiest_link_bytes": entry.estimate.busiest_bytes,
                "gain_over_round_robin": made.gain(name),
                "shortest": entry.shortest,
                "least_sum": entry.least_sum,
                "evaluations": entry.evaluations,
                "planning_seconds": entry.took,
            }
            for name, entry in made.strategies.items()
        },
    }


def even_traffic(ranks: int) -> np.ndarray:
    """Return a matrix of bytes (ranks, ranks) in which each rank sends 1 MiB to the previous and to the next rank. It
    is used if the real traffic is unknown."""
    matrix = np.zeros((ranks, ranks))
    for rank in range(ranks - 1):
        matrix[rank, rank + 1] = matrix[rank + 1, rank] = 2**20
    return matrix
