"""The machine: what it is, which rank should take which GPU, and whether that really happened.

It knows nothing of flows: a byte matrix comes in, a placement goes out. Nothing is imported before it is used, so that
what needs no library works without any.

    from hiresx.topology.discover import discover
    from hiresx.topology.cost import traffic
    from hiresx.topology.place import plan

    machine = discover()                     # or hiresx.topology.load.load(Path("machine.json"))
    made = plan(machine, traffic(bytes_between_ranks))
    made.strategies["optimal"].placement     # GPU of each rank

machine: the description; levels: words and speeds; cpus: sets of CPUs. Sources: discover (nvml, hwloc_library, sysfs)
and load (parse_smi, parse_hwloc_xml, snapshots). groups, cost, place (place_paper, place_optimal): the plan.
binding, memory, cuda, measure, verify: what acts on the machine. problems, report, picture: what is shown.
"""
