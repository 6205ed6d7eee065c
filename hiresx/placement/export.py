"""A placement plan in the form that Open MPI, Slurm or a shell take."""

from collections.abc import Callable, Sequence

from hiresx.errors import HiresxError
from hiresx.placement import cores
from hiresx.placement.facts import PlacementFacts
from hiresx.topology.cpus import format_list
from hiresx.topology.machine import Machine
from hiresx.topology.place import PlacementPlan

Cpus = frozenset[int]


def export(made: PlacementPlan, form: str, hosts: Sequence[str] = ()) -> str:
    """Return the recommended placement of ranks as text in the format of another launcher. `made`: the placements of
    all strategies. `form`: "rankfile" for Open MPI's mpirun, "map_cpu" or "mask_cpu" for srun, or "visible", a script
    that sets CUDA_VISIBLE_DEVICES. `hosts`: names of hosts for the rankfile, by default the host on which mpirun runs;
    each host gets the ranks of the plan, one host after the other. The text ends with a newline. Raises HiresxError for
    an unknown form, for `hosts` with another form, and if the description of the machine lacks data that the form
    needs."""
    if form not in FORMS:
        raise HiresxError(f'no form of export "{form}"', f"the forms are {', '.join(FORMS)}")
    if hosts and form != "rankfile":
        raise HiresxError(f"--hosts is for rankfile, not for {form}", "leave it out: a plan is the same on every host")
    return FORMS[form](made, hosts)


def _rankfile(made: PlacementPlan, hosts: Sequence[str]) -> str:
    """Return the rankfile, with cores by hwloc's logical numbers, which mpirun expects."""
    machine = made.machine
    shares = _shares(made)
    order = logical_cores(machine, _allowed_cpus(machine))
    lines: list[str] = []
    for host in hosts or ("localhost",):
        for cpus in shares:
            slots = [n for n, core in enumerate(order) if core & cpus]
            lines.append(f"rank {len(lines)}={host} slot={format_list(slots)}")
    return "\n".join(lines) + "\n"


def _map_cpu(made: PlacementPlan, _: Sequence[str]) -> str:
    return f"--cpu-bind=map_cpu:{','.join(str(min(cpus)) for cpus in _shares(made))}\n"


def _mask_cpu(made: PlacementPlan, _: Sequence[str]) -> str:
    return f"--cpu-bind=mask_cpu:{','.join(hex(sum(1 << cpu for cpu in cpus)) for cpus in _shares(made))}\n"


def _visible(made: PlacementPlan, _: Sequence[str]) -> str:
    """Return a script that makes all GPUs of the plan visible to every rank, its own first: if the others were hidden,
    CUDA IPC might not work. CUDA shows a process only one MIG slice."""
    placement = made.strategies[made.best].placement
    gpus = made.machine.gpus
    lines = []
    for rank, own in enumerate(placement):
        others = sorted({*made.gpus, *placement} - {own})
        mask = gpus[own].mig_uuid or ",".join(str(_number(made.machine, gpu)) for gpu in (own, *others))
        lines.append(f"{rank}) CUDA_VISIBLE_DEVICES={mask} ;;")
    return _SCRIPT.format(ranks=len(placement), lines="\n".join(lines))


FORMS: dict[str, Callable[[PlacementPlan, Sequence[str]], str]] = {
    "rankfile": _rankfile,
    "map_cpu": _map_cpu,
    "mask_cpu": _mask_cpu,
    "visible": _visible,
}

_SCRIPT = """#!/bin/sh
# Written by hiresx topo plan. mpirun ... sh THIS PROGRAM, or srun ... sh THIS PROGRAM: a rank's own GPU is the first
# that it sees, and no other is hidden, for direct copies between ranks (CUDA IPC).
rank=${{OMPI_COMM_WORLD_LOCAL_RANK:-${{MPI_LOCALRANKID:-${{PALS_LOCAL_RANKID:-${{SLURM_LOCALID:-}}}}}}}}
case $rank in
{lines}
*)
    echo "$0: local rank '$rank' is none of the {ranks} of the plan" >&2
    exit 2
    ;;
esac
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES
exec "$@"
"""


def _number(machine: Machine, gpu: int) -> int:
    """Return the number of a GPU in the order of CUDA_VISIBLE_DEVICES, which counts cards and not MIG slices."""
    cards = list(dict.fromkeys(entry.bus_id or str(entry.index) for entry in machine.gpus))
    return cards.index(machine.gpus[gpu].bus_id or str(gpu))


def _allowed_cpus(machine: Machine) -> Cpus:
    if machine.live and machine.allowed is not None:
        return machine.allowed
    known = [*machine.cores, *(node.cpus for node in machine.numa), *(gpu.cpus or () for gpu in machine.gpus)]
    return frozenset().union(*known)


def _shares(made: PlacementPlan) -> list[Cpus]:
    """Return the CPUs of each rank, as a run would bind them."""
    machine, placement = made.machine, made.strategies[made.best].placement
    allowed = _allowed_cpus(machine)
    if not machine.cores:
        raise HiresxError(
            "the recording has no cores to bind ranks to", "record the machine with: hiresx topo --save machine.json"
        )
    if len(placement) > sum(1 for core in machine.cores if core & allowed):
        raise HiresxError(f"{len(placement)} ranks are more than the machine has cores", "plan for fewer ranks")
    ranks = {rank: PlacementFacts(machine.host, allowed) for rank in range(len(placement))}
    shares = cores.cut(machine, ranks, {rank: machine.gpus[gpu] for rank, gpu in enumerate(placement)})
    return [shares[rank].cpus for rank in ranks]


def logical_cores(machine: Machine, allowed: Cpus) -> list[Cpus]:
    """Return the logical CPUs of each physical core of `machine`, in the order in which hwloc numbers cores: by
    package, NUMA node and cache, and within these by their lowest CPU. Cores without a CPU in `allowed` are left
    out."""
    wider = [package.cpus for package in machine.packages] + [node.cpus for node in machine.numa]
    caches = sorted((cache for cache in machine.caches), key=lambda cache: -cache.level)
    wider += [cache.cpus for cache in caches if not cache.kind or cache.kind == "data"]

    def place(core: Cpus) -> list[int]:
        around = sorted((cpus for cpus in wider if core <= cpus), key=len, reverse=True)
        return [min(cpus) for cpus in (*around, core)]

    return sorted((core for core in machine.cores if core & allowed), key=place)
