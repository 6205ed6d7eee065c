"""Tables of a machine and its plans as Rich renderables, which the command line prints."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hiresx.base.plural import plural
from hiresx.topology.connection_levels import NVLINK, PCIE_SHARE, assumed_pcie_speed, generation, nvlinks
from hiresx.topology.cpus import format_list
from hiresx.topology.domains import nvlink_domains
from hiresx.topology.groups import groups
from hiresx.topology.layout import Branch, device_tree
from hiresx.topology.machine import GPU, NIC, Machine, Matrix, to_json
from hiresx.topology.place import EXPLICIT, PlacementPlan, is_even
from hiresx.topology.problems import problems

if TYPE_CHECKING:  # Rich is imported when something is printed
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text
    from rich.tree import Tree

STYLES = {"PSB": "cyan", "PIX": "cyan", "PXB": "blue", "PHB": "yellow", "NODE": "magenta", "SYS": "red", "X": "dim"}
GIB = 2**30


def document(machine: Machine) -> dict[str, Any]:
    """Return the description of a machine and its evaluation (problems, groups of GPUs, tree of devices) as JSON data.
    `hiresx topo --from` can read it."""
    return {
        **to_json(machine),
        "live": machine.live,
        "nvlink_bandwidth": [NVLINK.get(generation(gpu.model) or "") for gpu in machine.gpus],
        "problems": problems(machine),
        "groups": {level: [list(part) for part in parts] for level, parts in groups(machine).items()},
        "tree": _tree_json(device_tree(machine), machine),
    }


def _tree_json(branch: Branch, machine: Machine) -> dict[str, Any]:
    found: dict[str, Any] = {"level": branch.level, "gpus": list(branch.gpus)}
    if branch.numa is not None:
        found["numa"] = branch.numa
    if branch.nics:
        found["nics"] = [machine.nics[n].name for n in branch.nics]
    if branch.children:
        found["children"] = [_tree_json(child, machine) for child in branch.children]
    return found


def renderables(machine: Machine) -> list["RenderableType"]:
    """Return the report on a machine as a list of Rich renderables (texts, a tree, tables), in the order of
    printing."""
    from rich.text import Text

    first = machine.host or machine.product or "a machine"
    title = Text(f"{first}: {plural(len(machine.gpus), 'GPU')}, {plural(len(machine.nics), 'network adapter')}", "bold")
    about = ", ".join(part for part in (machine.product if machine.host else "", machine.cpu.strip()) if part)
    here = "" if machine.live else " (not this machine)"
    lines: list[RenderableType] = [title, Text(f"source: {machine.source}{here}", "dim")]
    if about:
        lines.append(Text(about, "dim"))
    lines += [Text(), picture_tree(machine)]
    adapters = [nic.name for nic in machine.nics]
    if machine.gpus:
        lines += [gpu_table(machine), matrix_table(machine)]
        if machine.nics:
            names = [f"GPU {gpu.index}" for gpu in machine.gpus]
            lines.append(_levels_table("GPU to network adapter", names, machine.nic_levels, adapters))
    if len(machine.nics) > 1 and any(word for row in machine.nic_pairs for word in row if word != "X"):
        lines.append(_levels_table("NIC to NIC", adapters, machine.nic_pairs, adapters))
    if machine.gpus:
        if machine.measured:
            lines.append(measured_table(machine))
        rows = ([at, "  ".join("{" + format_list(p) + "}" for p in parts)] for at, parts in groups(machine).items())
        lines += [_table("groups", ["level", "GPUs"], rows), Text()]
    if machine.caches or machine.cores:
        lines.append(processor_table(machine))
    if machine.devices:
        lines.append(device_table(machine))
    for domain, members in nvlink_domains([machine]).items():
        lines.append(
            Text(f"NVLink domain {domain}, which may reach over hosts: GPU {format_list(g for _, g in members)}")
        )
    found = problems(machine)
    lines += [Text(f"! {line}", "yellow") for line in found] or [Text("no problem found", "green")]
    return lines


def _table(title: str, columns: Iterable[str], rows: Iterable[Iterable["str | Text"]]) -> "Table":
    """Return a table whose cells are printed unchanged: a name in brackets is not markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def level_text(level: str) -> "Text":
    """Return the name of a level of connection (PIX, NODE, NV4, ...) as Rich text in the colour of this level; "?" if
    empty."""
    from rich.text import Text

    return Text(level or "?", STYLES.get(level, "bold green" if nvlinks(level) else ""))


SHARED = {"PHB": "host bridge", "PXB": "PCIe switches", "PIX": "PCIe switch", "PSB": "board"}


def picture_tree(machine: Machine) -> "Tree":
    """Return a Rich tree of the processor packages, NUMA nodes, PCIe switches, GPUs and network adapters of a machine.
    If the PCI bridges are not known, the tree follows from the levels of connection of all pairs of devices."""
    from rich.text import Text
    from rich.tree import Tree

    top = Tree("machine")
    for part in groups(machine)["NV"]:
        if len(part) > 1:
            top.add(Text(f"NVLink joins GPU {format_list(part)}", "bold green"))
    if machine.gpus and not any(gpu.path for gpu in machine.gpus):
        whole = device_tree(machine)
        for branch in whole.children:
            members = [machine.gpus[g] for g in branch.gpus]
            cpus = members[0].cpus
            name = "NUMA node" if branch.numa is None else f"NUMA node {branch.numa}"
            where = f"CPUs {format_list(cpus)}" if cpus and all(gpu.cpus == cpus for gpu in members) else "CPUs ?"
            alone = len(whole.children) == 1 and branch.numa is None and not cpus
            _grow(top if alone else top.add(f"{name}: {where}"), branch, machine)
        for nic in whole.own()[1]:
            top.add(Text(f"NIC {machine.nics[nic].name}"))
        return top
    nodes = {}
    packages = list(machine.packages)
    branches = {
        package.index: top.add(f"package {package.index}: CPUs {format_list(package.cpus) or '?'}")
        for package in packages
    }
    for node in machine.numa:
        home = next((p.index for p in packages if node.cpus and node.cpus <= p.cpus), None)
        memory = (
            "memory unknown" if node.memory is None else f"{node.memory / GIB:.0f} GiB" if node.memory else "no memory"
        )
        inside = top if home is None else branches[home]
        nodes[node.index] = inside.add(f"NUMA node {node.index}: {memory}, CPUs {format_list(node.cpus) or 'none'}")
    bridges: dict[tuple[str, ...], Any] = {}
    devices: list[GPU | NIC] = [*machine.gpus, *machine.nics]
    for device in devices:
        path = _bridges_to_show(device.path, devices)
        inside = nodes.get(device.numa, top) if device.numa is not None else top
        for n in range(len(path)):
            key = path[: n + 1]
            if key not in bridges:
                bridges[key] = inside.add(Text(f"{'PCIe switch' if n else 'PCIe'} {path[n]}", "dim"))
            inside = bridges[key]
        if isinstance(device, GPU):
            inside.add(Text.assemble((f"GPU {device.index}", "bold"), f" {device.model} {device.bus_id}".rstrip()))
        else:
            inside.add(Text(f"NIC {device.name}{' (RDMA)' if device.rdma else ''} {device.bus_id}".rstrip()))
    return top


def _grow(inside: "Tree", branch: Branch, machine: Machine) -> None:
    from rich.text import Text

    for child in branch.children:
        _grow(inside.add(Text(SHARED[child.level], "dim")), child, machine)
    gpus, nics = branch.own()
    for gpu in gpus:
        inside.add(Text.assemble((f"GPU {gpu}", "bold"), f" {machine.gpus[gpu].model}".rstrip()))
    for nic in nics:
        inside.add(Text(f"NIC {machine.nics[nic].name}"))


def _bridges_to_show(path: tuple[str, ...], devices: Sequence[GPU | NIC]) -> tuple[str, ...]:
    """Return the bridges to show above a device: the host bridge, and those below which paths separate."""
    shown = []
    for n in range(len(path)):
        below = {
            device.path[n + 1 : n + 2] or device.bus_id for device in devices if device.path[: n + 1] == path[: n + 1]
        }
        if n == 0 or len(below) > 1:
            shown.append(path[n])
    return tuple(shown)


def gpu_table(machine: Machine) -> "Table":
    """Return a Rich table with one row for each GPU: model, PCIe bandwidth, memory, NUMA node, nearest CPUs and further
    data."""
    columns = ("GPU", "model", "PCI", "PCIe", "memory", "in use", "busy", "NUMA", "nearest CPUs", "NVLinks", "MIG")
    return _table("GPUs", columns, map(_gpu_row, machine.gpus))


def _gpu_row(gpu: GPU) -> tuple[str, ...]:
    used = f"{gpu.memory_used / gpu.memory:.0%}" if gpu.memory and gpu.memory_used is not None else "-"
    return (
        str(gpu.index),
        gpu.model or "-",
        gpu.bus_id or "-",
        f"{gpu.pcie * PCIE_SHARE:.3g} GB/s" if gpu.pcie else f"{assumed_pcie_speed(gpu.model):.3g} GB/s?",
        f"{gpu.memory / GIB:.0f} GiB" if gpu.memory else "-",
        used,
        "-" if gpu.utilisation is None else f"{gpu.utilisation} %",
        str(gpu.numa) if gpu.numa is not None else format_list(gpu.nodes) if gpu.nodes else "-",
        format_list(gpu.cpus) if gpu.cpus else "-",
        _links_text(gpu),
        "slice" if gpu.mig_uuid else {None: "-", True: "on", False: "off"}[gpu.mig],
    )


def _links_text(gpu: GPU) -> str:
    speed = NVLINK.get(generation(gpu.model) or "")
    return "-" if not gpu.links else f"{gpu.links} x {speed:g} GB/s" if speed else str(gpu.links)


def matrix_table(machine: Machine) -> "Table":
    """Return a Rich table of the levels of connection (PIX, NODE, NV4, ...) of all pairs of GPUs. "!" marks pairs
    without peer access."""
    from rich.text import Text

    def cell(a: int, b: int) -> Text:
        level, peer = level_text(machine.levels[a][b]), machine.peer[a][b] if machine.peer else ""
        return level if peer in ("", "OK", "X") else Text.assemble(level, ("!", "bold red"))

    gpus = range(len(machine.gpus))
    rows: list[list[str | Text]] = [[f"GPU {a}", *(cell(a, b) for b in gpus)] for a in gpus]
    return _table("GPU to GPU (! no peer access)", ["", *map(str, gpus)], rows)


def _levels_table(title: str, names: Sequence[str], levels: Matrix, columns: Sequence[str]) -> "Table":
    """Return a table of `levels`. `names`: those of its rows."""
    rows: list[list[str | Text]] = [[n, *map(level_text, row)] for n, row in zip(names, levels, strict=True)]
    return _table(title, ["", *columns], rows)


def processor_table(machine: Machine) -> "Table":
    """Return a Rich table of the cores and caches of a machine: their number, their size, and how many hardware threads
    share one."""
    rows = []
    for package in machine.packages:
        cores = [core for core in machine.cores if core & package.cpus]
        rows.append([f"cores of package {package.index}", str(len(cores)), "-", _sizes(cores)])
    if not machine.packages:
        rows.append(["cores", str(len(machine.cores)), "-", _sizes(machine.cores)])
    kinds = {"data": "d", "instruction": "i"}
    for level, kind in sorted({(cache.level, cache.kind) for cache in machine.caches}):
        some = [cache for cache in machine.caches if (cache.level, cache.kind) == (level, kind)]
        sizes = ", ".join(map(size_text, sorted({cache.size for cache in some if cache.size}))) or "-"
        shared = _sizes([cache.cpus for cache in some])
        rows.append([f"L{level}{kinds.get(kind, '')} cache", str(len(some)), sizes, shared])
    return _table("processor", ["what", "number", "size", "hardware threads each"], rows)


def _sizes(sets: Iterable[frozenset[int]]) -> str:
    return ", ".join(map(str, sorted({len(cpus) for cpus in sets}))) or "-"


def device_table(machine: Machine) -> "Table":
    """Return a Rich table of the PCI devices other than GPUs, network adapters and bridges."""
    rows = (
        [device.kind, device.bus_id or "-", device.name or "-", "-" if device.numa is None else str(device.numa)]
        for device in machine.devices
    )
    return _table("other PCI devices", ["what", "PCI", "name", "NUMA"], rows)


def measured_table(machine: Machine) -> "Table":
    """Return a Rich table of the measured bandwidths between GPUs and to the host, in GB/s. The machine must have
    measured speeds."""
    shown = machine.measured
    assert shown is not None  # or there is no such table
    gpus = range(len(machine.gpus))

    def row(a: int) -> list[str]:
        values = [*shown.device[a], *(host[a] if host else None for host in (shown.to_device, shown.to_host))]
        return [f"GPU {a}", *("-" if value is None else f"{value:.1f}" for value in values)]

    return _table("measured GB/s (row: sender)", ["", *map(str, gpus), "from host", "to host"], map(row, gpus))


def plan_table(made: PlacementPlan) -> "Table":
    """Return a Rich table that compares the placements of all strategies in `made`: GPU of each rank, exchange time,
    summed cost, busiest link, and the change against round-robin."""
    shown = f"GPU of ranks 0 to {made.demand.ranks - 1}"
    columns = ["strategy", shown, "exchange", "sum over pairs", "busiest link", "against round-robin"]
    rows = (
        [
            name + (" *" if name == made.best else ""),
            " ".join(map(str, entry.placement)),
            time_text(entry.estimate.seconds) + (" (shortest)" if entry.shortest else ""),
            time_text(entry.estimate.cost) + (" (least)" if entry.least_sum else ""),
            f"{entry.estimate.busiest}, {bytes_text(entry.estimate.busiest_bytes)}",
            "" if name == "round-robin" else f"{-made.gain(name):+.0%}",
        ]
        for name, entry in made.strategies.items()
    )
    return _table("placements", columns, rows)


def bound_text(made: PlacementPlan) -> str:
    """Return a sentence about the lower bound of the exchange time over all placements in `made`. It says whether a
    placement reaches the bound, and whether the placement that the user requested distributes ranks evenly."""
    proof = (
        f"no placement with at most {plural(made.most, 'rank')} on each of the {plural(len(made.gpus), 'GPU')} takes "
        f"less than {time_text(made.bound)}"
    )
    if any(entry.shortest for entry in made.strategies.values()):
        proof += ": proven"
    else:
        proof += "; how near to that one can come is not proven"
    asked = made.strategies.get(EXPLICIT)
    if asked is not None and not is_even(asked.placement, made.gpus):
        proof += (
            f"\n  {EXPLICIT} is none of these: it takes other GPUs or shares them unevenly, which costs time "
            "outside of the exchange"
        )
    return proof


def size_text(number: int) -> str:
    """Return a number of bytes as text with the largest fitting binary unit, such as "80 GiB"."""
    return _with_unit(number, (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)), "g")


def time_text(seconds: float) -> str:
    """Return a time, given in seconds, as text in s, ms or us."""
    return _with_unit(seconds, (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)), ".4g")


def bytes_text(number: float) -> str:
    """Return a number of bytes as text with the largest fitting decimal unit, such as "1.5 MB"."""
    return _with_unit(number, (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1)), ".4g")


def _with_unit(number: float, units: Sequence[tuple[str, float]], form: str) -> str:
    """Format `number` in the largest of the `units` (name, size) in which it is at least 1, or else in the last."""
    name, size = next((unit for unit in units if number >= unit[1]), units[-1])
    return f"{number / size:{form}} {name}"
