"""The machine: what it is, which rank should take which GPU, and whether that really happened.

It knows nothing of flows: a byte matrix comes in, a placement goes out. Nothing is imported before it is used, so that
what needs no library works without any.

    from hiresx.topology.discover import discover
    from hiresx.topology.cost import traffic
    from hiresx.topology.place import plan

    machine = discover()                     # or hiresx.topology.load.load(Path("machine.json"))
    made = plan(machine, traffic(bytes_between_ranks))
    made.strategies["optimal"].placement     # GPU of each rank

machine: the description; levels: words and speeds; cpus: sets of CPUs; pci: classes of devices. Sources: discover
(nvml, hwloc_library, sysfs) and load (parse_smi with smi_rows, smi_affinities, smi_report and infer; parse_hwloc_xml
and parse_nccl_xml with xml_tree; snapshots). groups, cost, place (place_paper, place_pair_sum, place_optimal, rooms):
the plan. binding, memory, cuda, measure: what acts on the machine. problems, layout, report, picture: what is shown.
"""
