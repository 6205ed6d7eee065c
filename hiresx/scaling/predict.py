"""Prediction of how a case scales on another machine, from measured rates, the byte matrix and the cost of its links.

A step of N ranks takes as long as its slowest rank:

    points * ns_per_point_step + fixed + max(exchange - overlap * work, 0)

`work` is the first term. The points and the bytes between ranks are those of the partition that a run would take; the
seconds of the exchange come from `hiresx.topology.cost` on the placement that a run would take (GPUs), or from the rate
at which one rank copies what another one wrote (`copy_gb_per_s`, CPU ranks).
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, ValidationError

from hiresx.base.plural import plural
from hiresx.base.whole_files import io_error
from hiresx.case import Case
from hiresx.case.error_messages import Origin, describe_validation_error
from hiresx.case.model import Table
from hiresx.decomposition import decompose, split
from hiresx.decomposition.halo_bytes import halo_bytes
from hiresx.decomposition.partition import partition
from hiresx.decomposition.parts import points_by_rank
from hiresx.errors import HiresxError
from hiresx.estimate import exchanged_bytes
from hiresx.grid import build
from hiresx.time.integrators import integrator
from hiresx.topology import cost
from hiresx.topology import machine as machines
from hiresx.topology import place as placing

NotNegative = Annotated[float, Field(ge=0)]


class Rates(Table):
    """The measured rates of a machine that a prediction needs, in the form of a JSON file.

    `ns_per_point_step`: nanoseconds per point and step of one rank with all its threads, for this case.
    `rank_slowdown`: the factor by which a rank is slower if all ranks of the host work, because of shared resources (1:
    not slower). `fixed_us`: microseconds of a step that do not depend on the size. `exchange_us`: microseconds of an
    exchange with a neighbour that do not depend on the number of bytes. `copy_gb_per_s`: rate of copies between CPU
    ranks of a host. `overlap`: fraction of the work that can overlap with the exchange of halos. `topology`: a
    recording by `hiresx topo --save`, None for CPU ranks of one host. `source`: the origin of these values.
    """

    ns_per_point_step: NotNegative
    source: str
    rank_slowdown: NotNegative = 1.0
    fixed_us: NotNegative = 0.0
    exchange_us: NotNegative = 0.0
    copy_gb_per_s: NotNegative | None = None
    overlap: NotNegative = 0.5
    topology: str | None = None

    @classmethod
    def read(cls, path: Path) -> "Rates":
        """Return the measured rates of a machine that the JSON file `path` contains. Raises HiresxError for a file that
        cannot be read, lacks a rate, or has an unknown one."""
        try:
            rates = cls.model_validate(json.loads(path.read_bytes()))
        except ValidationError as error:
            raise describe_validation_error(error, cls, Origin(str(path))) from None
        except OSError as error:
            raise io_error(path, error, "read") from None
        except ValueError as error:
            raise HiresxError(f"{path}: {error}", "give a file as docs/parallel.md describes") from None
        if rates.topology is None and rates.copy_gb_per_s is None:
            raise HiresxError(f"{path}: neither topology nor copy_gb_per_s is given", "give one of the two")
        if rates.topology is None:
            return rates
        return rates.model_copy(update={"topology": str(path.parent / rates.topology)})


def curve(cases: Sequence[tuple[int, Case]], rates: Rates) -> list[dict[str, Any]]:
    """Return the predicted time of a step for every pair (number of ranks, case) in `cases`: the dictionary that
    `predict` returns (seconds, and the busiest link), with `speedup` and `efficiency` relative to the fewest ranks in
    addition. `rates`: measured rates of the machine."""
    found = [predict(case, ranks, rates) for ranks, case in cases]
    first = min(found, key=lambda row: row["ranks"])
    base = first["points"] / first["step_s"] / first["ranks"]
    for row in found:
        row["speedup"] = row["points"] / row["step_s"] / base
        row["efficiency"] = row["speedup"] / row["ranks"]
    return found


def predict(case: Case, ranks: int, rates: Rates) -> dict[str, Any]:
    """Return the predicted times of one step of `case` on `ranks` ranks: `step_s`, `work_s` and `exchange_s` (in s) of
    the slowest rank, and `busiest`, the name of the link that takes longest to send its messages (None if `rates` has
    no topology). `rates`: measured rates of the machine. Raises HiresxError for more ranks than the machine has
    GPUs."""
    whole = decompose(case, build(case.grid, case.directory))
    cut = split(whole, partition(whole, ranks))
    points = points_by_rank(cut.parts, ranks)
    viscous = case.gas.reynolds is not None
    stages = integrator(case.time.integrator).stages
    sent = np.array(stages * halo_bytes(cut, exchanged_bytes(case)), dtype=float)
    np.fill_diagonal(sent, 0.0)
    exchange, busiest = _exchange(sent, rates)
    count = stages * (2 if viscous else 1)  # of the state and, in viscous flow, of the viscous fluxes
    neighbours = ((sent + sent.T) > 0).sum(axis=1)
    exchange = exchange + 1e-6 * rates.exchange_us * count * neighbours
    work = 1e-9 * rates.ns_per_point_step * points * (rates.rank_slowdown if ranks > 1 else 1.0)
    step = work + 1e-6 * rates.fixed_us + np.maximum(exchange - rates.overlap * work, 0)
    slowest = int(np.argmax(step))
    return {
        "ranks": ranks,
        "points": int(points.sum()),
        "step_s": float(step[slowest]),
        "work_s": float(work[slowest]),
        "exchange_s": float(exchange[slowest]),
        "busiest": busiest,
    }


def _exchange(sent: np.ndarray, rates: Rates) -> tuple[np.ndarray, str | None]:
    """Return the seconds that each rank's halos need per step, and the busiest link."""
    ranks = len(sent)
    if rates.topology is None:
        assert rates.copy_gb_per_s is not None  # one of the two is not zero
        both_ways = np.maximum(sent.sum(axis=0), sent.sum(axis=1))
        return both_ways / (1e9 * rates.copy_gb_per_s), None
    path = Path(rates.topology)
    machine = machines.from_json(machines.read_text(path), str(path))
    if ranks > len(machine.gpus):
        raise HiresxError(
            f"{path}: {plural(ranks, 'rank')}, but {plural(len(machine.gpus), 'GPU')}",
            "ask for no more ranks than GPUs",
        )
    demand = cost.traffic(sent)
    gpus = placing.place(machine, demand)
    estimate = cost.Model(machine).estimate(demand, gpus)
    return np.full(ranks, estimate.seconds), estimate.busiest
