"""Default number of ranks on this machine, and their devices."""

import os

from hiresx.device import cuda
from hiresx.errors import HiresxError
from hiresx.placement.backend_selection import AUTO, parse_backends
from hiresx.placement.facts import gather
from hiresx.placement.gpus import idle
from hiresx.topology import sysfs
from hiresx.topology.discover import discover


def default_ranks(wish: str, per_gpu: int = 1) -> tuple[int, str]:
    """Return the default number of ranks on this machine and the reason for it, as text: one rank for each GPU that no
    process uses, or one for each NUMA node. `wish`: the requested backends, such as "cuda" or "auto"; a list such as
    "cuda:2,cpu" (one backend for each rank) determines the number. `per_gpu`: number of ranks on each GPU. Raises
    HiresxError if the backend needs GPUs and there are none."""
    names = parse_backends(wish)
    if len(names) > 1 or ":" in wish:
        return len(names), f"--backend {wish}"
    if names[0] == "cuda" and (error := cuda.obstacle()):
        raise error
    if names[0] in (AUTO, "cuda"):
        facts = gather(True)
        if facts.gpus:
            free = len(idle(discover(), facts)) or len(facts.gpus)
            each = "one rank" if per_gpu == 1 else f"{per_gpu} ranks"
            return free * per_gpu, f"{each} per free GPU, of {len(facts.gpus)}"
    if per_gpu != 1:
        raise HiresxError("--ranks-per-gpu is for runs on GPUs", "name the number of ranks: -n N")
    allowed = sysfs.allowed_cpus()
    nodes = sum(1 for node in sysfs.discover().numa if node.cpus & allowed) or 1
    return nodes, "one rank per NUMA node"


def cores() -> int:
    """Return the number of physical cores among the CPUs that this process may use."""
    allowed = frozenset(os.sched_getaffinity(0))
    whole = [core for core in sysfs.discover().cores if core & allowed]
    return len(whole) or len(allowed)
