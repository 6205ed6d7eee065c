"""The CPUs that this process may use, and its binding to some of them."""

from hiresx.topology import binding
from hiresx.topology.binding import Binding

# The last binding of this process: (CPUs before it, CPUs since). A second case in one process is placed like the first
# one, on all CPUs with which the process was started.
_last: list[tuple[frozenset[int], frozenset[int]]] = []


def allowed_cpus() -> frozenset[int]:
    """Return the numbers of the logical CPUs that this process was allowed to use before `bind` restricted them."""
    now = binding.bound_cpus()
    return _last[0][0] if _last and _last[0][1] == now else now


def now() -> frozenset[int]:
    """Return the numbers of the logical CPUs to which this process is bound at present."""
    return binding.bound_cpus()


def bind(cpus: frozenset[int], gpu: int | None) -> Binding:
    """Bind this process and all its threads to the logical CPUs `cpus`, and return the resulting binding. If the
    operating system refuses, nothing is raised, and the result contains a warning. `gpu`: the index of the GPU of the
    process, which is stored in the result."""
    before = allowed_cpus()
    made = binding.bind(cpus, gpu)
    _last[:] = [(before, made.is_)]
    return made
