"""The hardware topology of a machine, the assignment of ranks to GPUs, and the verification of a placement.

This package does not depend on fluid dynamics: its input is a matrix of bytes between ranks, and its result a
placement. Modules are only imported when they are used, so that functions that need no external library work without
it.

    from hiresx.topology.discover import discover
    from hiresx.topology.cost import traffic
    from hiresx.topology.place import plan

    machine = discover()                     # or hiresx.topology.load.load(Path("machine.json"))
    made = plan(machine, traffic(bytes_between_ranks))
    made.strategies["optimal"].placement     # GPU of each rank

    from hiresx.topology import nearest

    near = nearest()                         # of this process's GPU: near.nic, near.numa, near.cores

Modules. machine: the description of a machine, and its JSON recording. connection_levels: PCIe and NVLink levels and
their speeds. cpus: sets of CPUs. pci: classes of devices. discover (with nvml, hwloc_library, sysfs) and load (with
parse_smi, smi_rows, smi_affinities, smi_report, infer, parse_hwloc_xml, parse_nccl_xml, xml_tree): sources of a
description. groups, cost, place (with place_paper, place_search, gpu_slots): the placement of ranks. near: the adapter,
NUMA node and cores nearest to a GPU. domains: NVLink domains over several hosts. binding, memory, libcuda, link_speeds:
binding, allocation and measurements on the machine. problems, layout, report, diagram: presentation."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hiresx.topology.near import Nearest, nearest

__all__ = ["Nearest", "nearest"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from hiresx.topology import near

        return getattr(near, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
