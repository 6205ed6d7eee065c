"""The cost of an exchange for a placement: its duration in seconds, from the speed of every link that messages use.

A route is the list of links between two GPUs: the link of each GPU, the uplinks of its PCIe switch and of the switches
above, the interconnect between NUMA nodes, or NVLink. Links are full duplex: the two directions are two links here.

- `seconds`: the duration if all messages are sent at once. It is the time of the link with the largest load
  (`busiest`), plus the latencies of the rank with the most messages. Placements are chosen by this measure.
- `cost`: a sum over pairs of ranks: bytes divided by bandwidth, plus latency, plus the time for which the pair occupies
  shared links (uplinks and interconnects). Its minimum is the solution of a quadratic assignment problem. The search
  for the fewest seconds starts from it, and it decides between placements with equal seconds.

Peer traffic through an Intel host bridge counts a fifth more. Two GPUs without peer access exchange data through host
memory: first all copies to the host, then all copies to the devices. Two such GPUs under one switch therefore share its
uplink. Messages within a GPU have the speed `connection_levels.LOCAL`. Bandwidths are those of
`hiresx.topology.connection_levels`, or measured ones if the machine has them. A measured bandwidth applies to its pair,
and the largest bandwidth measured over a link to that link.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.topology import connection_levels
from hiresx.topology.groups import Partition, nearest_nics, pcie_groups
from hiresx.topology.machine import Machine

GIGA = 1e9


@dataclass(frozen=True)
class Traffic:
    """The bytes that ranks send in one exchange. `bytes` (n, n): from one rank (row) to another; the diagonal is not
    used. `off_host` (n,): bytes that each rank sends to ranks of other hosts; it receives as many."""

    bytes: np.ndarray
    off_host: np.ndarray

    @property
    def ranks(self) -> int:
        """Number of ranks that exchange messages."""
        return len(self.bytes)


def traffic(matrix: ArrayLike, off_host: ArrayLike | None = None) -> Traffic:
    """Check the numbers of bytes that ranks send to each other in one exchange, and return them as `Traffic`. `matrix`
    (ranks, ranks): bytes from the rank of the row to the rank of the column. `off_host` (ranks,): bytes of each rank to
    ranks on other hosts, by default 0. Raises HiresxError for a matrix that is not square, and for negative or invalid
    values."""
    try:
        values = np.array(matrix, dtype=float)
        beyond = np.zeros(len(values)) if off_host is None else np.array(off_host, dtype=float)
    except (ValueError, TypeError) as error:
        raise HiresxError(
            f"the byte matrix is no matrix of numbers: {str(error)[:120]}", "one row per sender"
        ) from None
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) == 0:
        shape = " x ".join(map(str, values.shape))
        raise HiresxError(f"the byte matrix is {shape or 'empty'}, not square", "one row and one column per rank")
    if beyond.shape != (len(values),):
        raise HiresxError(
            f"{beyond.size} off-host values for {plural(len(values), 'rank')}", "give one number of bytes per rank"
        )
    for what, entries in (("byte matrix", values), ("off-host bytes", beyond)):
        wrong = ~np.isfinite(entries) | (entries < 0)
        if wrong.any():
            place = ", ".join(str(int(n)) for n in np.argwhere(wrong)[0])
            raise HiresxError(
                f"{what}, entry {place}: {entries[wrong][0]} is no number of bytes", "give numbers from 0 up"
            )
    np.fill_diagonal(values, 0.0)
    return Traffic(values, beyond)


@dataclass(frozen=True)
class CostedLink:
    """A link between devices in one direction. `name`: its name. `bandwidth`: in GB/s. `shared`: whether the traffic of
    several GPUs uses it."""

    name: str
    bandwidth: float
    shared: bool


@dataclass(frozen=True)
class Estimate:
    """The estimate of an exchange of messages. `cost`: the sum over pairs of ranks of bytes over bandwidth plus
    latency, in s. `seconds`: the duration if all messages are sent at once. (The module explains both.) `loads`: bytes
    on each link, by its name. `busiest`: the name of the link, or the pair of GPUs, that takes the longest time; "none"
    without traffic. `busiest_bytes`: the bytes on it."""

    cost: float
    seconds: float
    busiest: str
    busiest_bytes: float
    loads: dict[str, float]


class Model:
    """The links of one machine, and the routes between its n GPUs.

    `bandwidth`, `latency`, `per_byte` (n, n): GB/s, seconds, and seconds per byte in `cost`, for each pair of GPUs.
    `nic_per_byte`, `nic_latency` (n,): the same for the way to the network and back. `nic` (n,): index of the adapter
    that each GPU uses, -1 if it is not known.
    """

    def __init__(self, machine: Machine):
        self.machine = machine
        self.links: list[CostedLink] = []
        self._index: dict[str, int] = {}
        count = len(machine.gpus)
        self._groups = {level: _membership(pcie_groups(machine, level), count) for level in ("PIX", "PXB", "NODE")}
        self._node = self._groups["NODE"]  # the node over whose interconnect a GPU's traffic leaves
        self._own = [self._pcie_speed(g) for g in range(count)]
        # MIG slices share the link of their card.
        cards = [gpu.bus_id if gpu.mig_uuid else str(gpu.index) for gpu in machine.gpus]
        self._card = [cards.index(card) for card in cards]
        self._between = max([connection_levels.interconnect_speed(machine.cpu), *self._measured_speeds("SYS")])
        # An unknown CPU is assumed to be the slower kind. Measured speeds already include the effect.
        intel = not machine.cpu or "Intel" in machine.cpu
        self._overhead = connection_levels.INTEL_PEER if intel and machine.measured is None else 1.0
        # If the links to all peers are more than a GPU has, they are the same links to a switch.
        most = max(connection_levels.MOST_NVLINKS.values())
        self._switched = [sum(map(connection_levels.nvlinks, row)) > most for row in machine.levels]
        self.bandwidth = np.full((count, count), connection_levels.LOCAL)
        self.latency = np.zeros((count, count))
        self.per_byte = np.full((count, count), 1 / connection_levels.LOCAL)
        # For each pair: links up, links down, the factor on the time of a byte, whether copies are staged in host
        # memory.
        self.routes: dict[tuple[int, int], tuple[list[int], list[int], float, bool]] = {}
        for a in range(count):
            for b in range(count):
                if a != b:
                    self._pair(a, b)
        # GPUs that have several equally near adapters take turns.
        near = [nearest_nics(machine, g) for g in range(count)]
        self.nic = [nics[g % len(nics)] if nics else -1 for g, nics in enumerate(near)]
        self._out = [self._to_network(g, "out") for g in range(count)]
        self._in = [self._to_network(g, "in") for g in range(count)]
        self.nic_per_byte = np.array(
            [self._time_per_byte(self._out[g]) + self._time_per_byte(self._in[g]) for g in range(count)]
        )
        self.nic_latency = np.full(count, connection_levels.LATENCY["NET"])
        self.per_byte /= GIGA
        self.nic_per_byte = self.nic_per_byte / GIGA
        self._speed = np.array([link.bandwidth for link in self.links]) * GIGA
        shape = (len(self.links), count * count)
        self._passes, self._direct = np.zeros(shape), np.zeros(shape)  # bytes on a link, seconds, per byte of a pair
        self._staged_up, self._staged_down = np.zeros(shape), np.zeros(shape)
        for (a, b), (up, down, overhead, staged) in self.routes.items():
            for way, phase in ((up, self._staged_up), (down, self._staged_down)):
                for link in way:
                    self._passes[link, a * count + b] += 1
                    times = phase if staged else self._direct
                    times[link, a * count + b] += overhead / self._speed[link]
        self._network = np.zeros((len(self.links), count))
        for g in range(count):
            for link in (*self._out[g], *self._in[g]):
                self._network[link, g] += 1
        network = self._network / self._speed[:, None]
        phases = [self._direct, self._staged_up, self._staged_down]
        self.phases = 3 if self._staged_up.any() else 1
        held = np.concatenate(
            [np.concatenate(phases[: self.phases]), np.zeros((self.phases * len(self.links), count))], 1
        )
        held[: len(self.links), count * count :] = network
        # For each pair of GPUs, followed by each GPU with the network: the links that are used (those of the second and
        # third phase after those of the first) and the seconds per byte on them; short lists are filled with "none".
        most = max(1, int((held > 0).sum(axis=0).max(initial=0)))
        self.ways = np.argsort(held <= 0, axis=0, kind="stable")[:most].T.copy()
        self.way_times = np.take_along_axis(held, self.ways.T, axis=0).T.copy()

    def _measured_speeds(self, level: str, gpu: int | None = None) -> list[float]:
        """Return the measured GB/s of the pairs of a level, "NV" for all of NVLink; only those of one GPU if it is
        given."""
        machine = self.machine
        if machine.measured is None:
            return []
        found = []
        for a, row in enumerate(machine.measured.device):
            for b, value in enumerate(row):
                word = "NV" if connection_levels.nvlinks(machine.levels[a][b]) else machine.levels[a][b]
                if value is not None and a != b and word == level and gpu in (None, a, b):
                    found.append(value)
        return found

    def _pcie_speed(self, gpu: int) -> float:
        """Return the GB/s of a GPU's own PCIe link: the highest measured speed over it, or else the recorded one, or
        else that of its model."""
        machine = self.machine
        seen = [value for level in connection_levels.PCIE for value in self._measured_speeds(level, gpu)]
        if machine.measured is not None:
            both = (machine.measured.to_device, machine.measured.to_host)
            seen += [speed for values in both if values and (speed := values[gpu]) is not None]
        own = machine.gpus[gpu].pcie
        if seen:
            return max(seen)
        return (
            own * connection_levels.PCIE_SHARE if own else connection_levels.assumed_pcie_speed(machine.gpus[gpu].model)
        )

    def _link(self, name: str, bandwidth: float, shared: bool) -> int:
        if name not in self._index:
            self._index[name] = len(self.links)
            self.links.append(CostedLink(name, bandwidth, shared))
        return self._index[name]

    def _climb(self, gpu: int, level: str, direction: str) -> list[int]:
        """Return the links between a GPU and the switch or bridge at which a route of `level` turns."""
        card = self._card[gpu]
        inner = {g for g, other in enumerate(self._card) if other == card}
        route = [self._link(f"GPU {card} PCIe {direction}", self._own[card], len(inner) > 1)]
        for group, reach in (("PIX", "PXB"), ("PXB", "PHB")):
            if connection_levels.RANK[level] < connection_levels.RANK[reach]:
                break
            member = self._groups[group]
            outer = {g for g, m in enumerate(member) if m == member[gpu]}
            if len(outer) > len(inner):
                speed = max(self._own[g] for g in outer)
                route.append(self._link(f"uplink of {_name(group, outer)} {direction}", speed, True))
                inner = outer
        return route

    def _pair(self, a: int, b: int) -> None:
        machine = self.machine
        peer = machine.peer[a][b] if machine.peer else ""
        staged = peer not in ("", "OK")
        level = machine.pcie[a][b] or "SYS" if staged else machine.levels[a][b]
        count = connection_levels.nvlinks(level)
        up, down, overhead = [], [], 1.0
        if count:
            speed = count * connection_levels.NVLINK[connection_levels.generation(machine.gpus[a].model) or "volta"]
            if self._switched[a] and self._switched[b]:
                ends = [max(self._measured_speeds("NV", g), default=speed) for g in (a, b)]
                up = [
                    self._link(f"GPU {a} NVLink out", ends[0], False),
                    self._link(f"GPU {b} NVLink in", ends[1], False),
                ]
            else:
                if machine.measured is not None:
                    speed = machine.measured.device[a][b] or speed
                up = [self._link(f"NVLink GPU {a} to GPU {b}", speed, False)]
            latency = connection_levels.LATENCY["NV"]
        else:
            turn = "NODE" if staged else level
            up = self._climb(a, turn, "out")
            if level == "SYS":
                here, there = (self._node_name(g) for g in (a, b))
                up.append(self._link(f"interconnect {here} to {there}", self._between, True))
            down = self._climb(b, turn, "in")[::-1]
            latency = connection_levels.LATENCY["PCI"] + connection_levels.HOP * max(
                connection_levels.RANK[level], connection_levels.RANK[turn]
            )
            if not staged and connection_levels.RANK[level] >= connection_levels.RANK["PHB"]:
                overhead = self._overhead
        ways = [max((overhead / self.links[link].bandwidth for link in way), default=0.0) for way in (up, down)]
        # Staged: one copy up, then one down, and each byte takes both times.
        slowest = 1 / (sum(ways) if staged else max(ways))
        latency *= 2 if staged else 1
        measured = machine.measured
        if measured is not None:
            slowest = measured.device[a][b] or slowest
            latency = measured.latency[a][b] or latency
        shared = sum(overhead / self.links[link].bandwidth for link in up + down if self.links[link].shared)
        self.bandwidth[a, b], self.latency[a, b] = slowest, latency
        self.per_byte[a, b] = 1 / slowest + shared
        self.routes[a, b] = up, down, overhead, staged

    def _node_name(self, gpu: int) -> str:
        node = self.machine.gpus[gpu].numa
        members = [g for g, m in enumerate(self._node) if m == self._node[gpu]]
        if node is not None and all(self.machine.gpus[g].numa == node for g in members):
            return f"NUMA {node}"
        return _name("node", set(members))

    def _to_network(self, gpu: int, direction: str) -> list[int]:
        nic = self.nic[gpu]
        if nic < 0:
            speed = connection_levels.NETWORK
            return [*self._climb(gpu, "NODE", direction), self._link(f"network {direction}", speed, True)]
        device = self.machine.nics[nic]
        level = self.machine.nic_levels[gpu][nic]
        route = self._climb(gpu, level if level in connection_levels.RANK else "NODE", direction)
        if level == "SYS":
            here, there = self._node_name(gpu), self._nic_node_name(nic)
            ends = (here, there) if direction == "out" else (there, here)
            route.append(self._link(f"interconnect {ends[0]} to {ends[1]}", self._between, True))
        route.append(self._link(f"NIC {device.name} {direction}", device.speed or connection_levels.NETWORK, True))
        return route

    def _nic_node_name(self, nic: int) -> str:
        device = self.machine.nics[nic]
        if device.numa is not None:
            return f"NUMA {device.numa}"
        near = [g for g, row in enumerate(self.machine.nic_levels) if row[nic] != "SYS"]
        return self._node_name(near[0]) if near else f"NIC {device.name}"

    def _time_per_byte(self, route: list[int]) -> float:
        slowest = min(self.links[link].bandwidth for link in route)
        return 1 / slowest + sum(1 / self.links[link].bandwidth for link in route if self.links[link].shared)

    def costs(self, demand: Traffic, places: np.ndarray) -> np.ndarray:
        """Return the cost of one exchange of messages for each of n placements: (n,), in seconds. The cost is the sum
        over all pairs of ranks of the bytes times the seconds per byte of the path between their GPUs, plus the latency
        of this path. `demand`: the bytes between the ranks. `places` (n, ranks): placements, each the index of the GPU
        of every rank."""
        pairs = places[:, :, None], places[:, None, :]
        total = (demand.bytes * self.per_byte[pairs] + (demand.bytes > 0) * self.latency[pairs]).sum(axis=(1, 2))
        beyond = demand.off_host * self.nic_per_byte[places] + (demand.off_host > 0) * self.nic_latency[places]
        costs: np.ndarray = total + beyond.sum(axis=1)
        return costs

    def estimate(self, demand: Traffic, placement: ArrayLike) -> Estimate:
        """Return the estimated duration, summed cost and bytes on each link of one exchange of messages. `demand`: the
        bytes between the ranks. `placement` (ranks,): the index of the GPU of each rank."""
        place = np.asarray(placement)
        count = len(self.machine.gpus)
        times = Exchange(self, demand).times(place[None])
        loads = self._passes @ times.between[0] + self._network @ times.beyond[0]
        links, pairs = times.links[0], times.pairs[0]
        busiest, amount = "none", 0.0
        if links.max(initial=0.0) > 0:
            worst = int(links.argmax())
            busiest, amount = self.links[worst].name, loads[worst]
        if pairs.max(initial=0.0) > times.moving[0] * (1 + 1e-9):
            a, b = divmod(int(pairs.argmax()), count)
            busiest, amount = f"GPU {a} to GPU {b}", times.between[0, a * count + b]
        return Estimate(
            cost=float(self.costs(demand, place[None])[0]),
            seconds=float(times.seconds[0]),
            busiest=busiest,
            busiest_bytes=float(amount),
            loads={link.name: float(load) for link, load in zip(self.links, loads, strict=True) if load > 0},
        )

    def are_alike(self, a: int, b: int, beyond: bool = True) -> bool:
        """Return whether the GPUs with the indexes `a` and `b` are interchangeable, which means that no estimated time
        changes if all ranks on `a` and all ranks on `b` are exchanged. `beyond`: whether the paths to other hosts must
        be equal as well."""
        count = len(self.machine.gpus)
        swap = np.arange(count)
        swap[[a, b]] = b, a
        pairs = np.ix_(swap, swap)
        if any((matrix != matrix[pairs]).any() for matrix in (self.per_byte, self.latency, self.bandwidth)):
            return False
        if beyond and (self.nic_per_byte[a], self.nic_latency[a]) != (self.nic_per_byte[b], self.nic_latency[b]):
            return False
        # The links must be the same but for their names: as fast, and passed by the same pairs.
        passes = self._passes.reshape(-1, count, count)  # overhead and staging are in the matrices above
        network = self._network if beyond else 0 * self._network
        return self._signature(passes, network) == self._signature(passes[:, swap][:, :, swap], network[:, swap])

    def _signature(self, passes: np.ndarray, network: np.ndarray) -> list[tuple[float, bytes]]:
        rows = np.concatenate([passes.reshape(len(passes), -1), network], axis=1).astype(np.int8)
        return sorted((speed, row.tobytes()) for speed, row in zip(self._speed, rows, strict=True) if row.any())


class Times(NamedTuple):
    """The times of an exchange for s placements on n GPUs. `between` (s, n * n) and `beyond` (s, n): bytes from GPU to
    GPU, and from each GPU to the network. `links` (s, number of links): seconds of each link. `pairs` (s, n * n):
    seconds of each pair at its bandwidth. `waits` (s, senders): seconds of latency of each sender. `moving` (s,):
    seconds of all links together."""

    between: np.ndarray
    beyond: np.ndarray
    links: np.ndarray
    pairs: np.ndarray
    waits: np.ndarray
    moving: np.ndarray

    @property
    def seconds(self) -> np.ndarray:
        """Duration of one exchange in seconds for each placement, (placements,): the time of the busiest link or of the
        slowest pair of GPUs, plus the largest sum of latencies of one sender."""
        held = np.maximum(self.moving, self.pairs.max(axis=1, initial=0.0))
        seconds: np.ndarray = held + self.waits.max(axis=1, initial=0.0)
        return seconds


class Exchange:
    """Computes the times of one exchange for many placements at once. `model`: the links of the machine. `demand`: the
    bytes that the ranks send. Messages are summed link by link. (Products of matrices need as many operations, but they
    start threads, which are slow on a busy machine.)"""

    def __init__(self, model: Model, demand: Traffic):
        self.model, self.demand = model, demand
        self.senders, self.receivers = np.nonzero(demand.bytes)
        self.amounts = demand.bytes[self.senders, self.receivers]
        # The positions at which the messages of one sender end and those of the next begin; a rank without messages has
        # none.
        self._first = np.flatnonzero(np.diff(self.senders, prepend=-1))
        self._off_host = np.flatnonzero(demand.off_host)
        self._waiting = [
            int(np.flatnonzero(self.senders[self._first] == rank)[0]) if rank in self.senders else -1
            for rank in self._off_host
        ]
        self._inverse = 1 / (model.bandwidth.ravel() * GIGA)

    @property
    def work(self) -> int:
        """Approximate number of arithmetic operations for computing the times of one placement."""
        pairs = len(self.model.machine.gpus) ** 2
        links = min(len(self.amounts), pairs) + len(self._off_host)
        return 2 * pairs + 2 * len(self.amounts) + 4 * links * int(self.model.ways.shape[1])

    def times(self, places: np.ndarray) -> Times:
        """Return the times of one exchange of messages for s placements. `places` (s, ranks): placements, each the
        index of the GPU of every rank."""
        model, number = self.model, len(places)
        count, links = len(model.machine.gpus), len(model.links)
        row = np.arange(number)[:, None]
        pair = places[:, self.senders] * count + places[:, self.receivers]
        amounts = np.where(places[:, self.senders] != places[:, self.receivers], self.amounts, 0.0)
        between = _binned_sums(row * count**2 + pair, amounts, number, count**2)
        at = places[:, self._off_host]
        out = np.broadcast_to(self.demand.off_host[self._off_host], at.shape)
        beyond = _binned_sums(row * count + at, out, number, count)
        if len(self.amounts) > count**2:
            pair_of, amounts = np.broadcast_to(np.arange(count**2), between.shape), between
        else:
            pair_of = pair
        if len(self._off_host):
            pair_of = np.concatenate([pair_of, count**2 + at], axis=1)
            amounts = np.concatenate([amounts, out], axis=1)
        bins = model.ways[pair_of] + (row * model.phases * links)[:, :, None]
        held = _binned_sums(bins, amounts[:, :, None] * model.way_times[pair_of], number, model.phases * links)
        phases = held.reshape(number, model.phases, links)
        total = phases.sum(axis=1)
        moving = total.max(axis=1, initial=0.0)
        if model.phases > 1:
            # With staged copies, all copies to the host precede the copies to the devices.
            direct, up, down = phases[:, 0], phases[:, 1], phases[:, 2]
            moving = np.maximum(moving, (direct + up).max(axis=1, initial=0.0) + down.max(axis=1, initial=0.0))
        waits = np.zeros((number, 0))
        if len(self._first):
            waits = np.add.reduceat(model.latency.ravel()[pair], self._first, axis=1)
        if len(self._off_host):
            network = model.nic_latency[at]
            for n, sender in enumerate(self._waiting):
                if sender >= 0:
                    network[:, n] += waits[:, sender]
            waits = np.concatenate([waits, network], axis=1)
        return Times(between, beyond, total, between * self._inverse, waits, moving)


def _binned_sums(bins: np.ndarray, amounts: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return sums (rows, columns) of the `amounts` in their `bins`, counted row by row."""
    return np.bincount(bins.ravel(), weights=amounts.ravel(), minlength=rows * columns).reshape(rows, columns)


def _membership(partition: Partition, count: int) -> list[int]:
    """Return the number of the part that contains each of `count` GPUs."""
    part_of = {g: n for n, part in enumerate(partition) for g in part}
    return [part_of[g] for g in range(count)]


def _name(what: str, gpus: set[int]) -> str:
    from hiresx.topology.cpus import format_list

    return f"{what} {{{format_list(gpus)}}}"
