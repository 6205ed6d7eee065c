"""The choice of a plan: the requested one, or the backend's default, or the compact plan where only that fits the
memory."""

from hiresx.case import Case
from hiresx.case.error_messages import did_you_mean
from hiresx.decomposition import Domain
from hiresx.device.interface import Backend
from hiresx.errors import HiresxError
from hiresx.estimate import device_bytes
from hiresx.grid.size import in_bytes
from hiresx.rhs import compact
from hiresx.rhs.plans import default_plan, inviscid_plan

# The plans of each backend, without the compact one.
_OF_BACKEND = {"cpu": ("pencils", "decomposed"), "cuda": ("fused", "decomposed"), "emulated": ("fused", "decomposed")}


def check_plan(plan: str, backend: str) -> None:
    """Raise HiresxError if the backend named `backend` cannot compute by the plan (order of computation) named
    `plan`."""
    if inviscid_plan(plan, backend) not in _OF_BACKEND[backend]:
        own = (*_OF_BACKEND[backend], compact.NAME)
        if plan not in {compact.NAME, *(name for of_one in _OF_BACKEND.values() for name in of_one)}:
            raise HiresxError(f'no plan is called "{plan}"', did_you_mean(plan, own))
        raise HiresxError(f'the {backend} backend has no plan "{plan}"', f"take {', '.join(own)}, or auto")


def choose_plan(case: Case, backend: Backend, domain: Domain, asked: str | None = None, there: int = 0) -> str:
    """Return the name of the plan, the order in which kernels compute the right-hand side: `asked`, or, if this is
    None, the key `plan` of the case. If neither is set, return the default of the backend, or on all ranks "compact" if
    the GPU of a rank has too little memory for the arrays of its blocks. `domain`: the grid and its division among the
    ranks. `there`: the number of bytes of these arrays that are allocated on the device already. All ranks must call
    this; no memory is allocated.

    Raises HiresxError for a plan that the backend does not have or that does not support the case, and if the arrays do
    not fit into the memory of a GPU.
    """
    comm, own = domain.comm, default_plan(backend.name)
    blocks = [domain.cut.blocks[n] for n in domain.mine]
    why = compact.obstacle(case, domain.cut)
    wanted = asked or (None if case.plan == "auto" else case.plan)
    free = backend.free_memory()
    free = None if free is None else free + there
    with comm.together():
        if wanted is not None:
            check_plan(wanted, backend.name)
        compact.check(case, wanted, domain.cut)
    plan = wanted or own
    if wanted is None and why is None and case.gas.reynolds is not None:
        short = free is not None and device_bytes(case, blocks, backend.name, plan) > free
        if comm.max([float(short)])[0]:
            plan = compact.NAME
    with comm.together():
        if free is not None and (needed := device_bytes(case, blocks, backend.name, plan)) > free:
            points = sum(block.points for block in blocks)
            raise HiresxError(
                f"{points:,} nodes take {in_bytes(needed)} on a GPU by the plan {plan}, {in_bytes(free)} are free",
                'take a coarser grid, precision = "fp32" or more GPUs, or end what else uses the GPU',
            )
    return plan
