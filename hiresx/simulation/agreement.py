"""The agreement of the ranks of a run before it begins."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from hiresx.case import Case
from hiresx.device.rates import known_rate
from hiresx.errors import HiresxError
from hiresx.mpi.communicator import Communicator
from hiresx.output.saved import identity
from hiresx.placement.backend_selection import by_rank


def check_same(comm: Communicator, dump: Mapping[str, Any]) -> None:
    """Raise HiresxError if two ranks of `comm` were started with different cases. `dump`: the case of this rank as
    nested dictionaries with all defaults. All ranks must call this."""
    prints = comm.allgather(hashlib.sha256(json.dumps(dump, sort_keys=True, default=str).encode()).hexdigest())
    other = next((rank for rank, found in enumerate(prints) if found != prints[0]), None)
    if other is None:
        return
    difference = identity.differences(comm.bcast(dump), comm.bcast(dump, other))[0]
    error = HiresxError(
        f"ranks 0 and {other} were given different cases: {difference[0]} is {difference[1]!r} for rank 0 and "
        f"{difference[2]!r} for rank {other}",
        "start all ranks with the same case, the same --set and the same files",
    )
    error.everywhere = True
    raise error


def measured_speeds(comm: Communicator, wish: str, case: Case) -> list[float] | None:
    """Return the relative speeds of the ranks of `comm` for `case` that `hiresx bench` measured on their hosts, if the
    ranks have different backends. `wish`: the requested backends, such as "cuda:2,cpu:4". The result is None if all
    backends are the same, or if one was not measured."""
    names = by_rank(wish, comm.hosts)
    if len(set(names)) == 1:
        return None
    rate = known_rate(names[comm.rank], case.gas.reynolds is not None, case.scheme.precision)
    speeds = comm.allgather(None if rate is None else 1 / rate["ns_per_point_rhs"])
    return None if None in speeds else speeds
