"""Random arrangements of joined blocks, filled with values of which every ghost is known."""

import random
import time
from functools import cache
from itertools import permutations, product

import numpy as np

from hiresx.decomposition import Decomposition, Part
from hiresx.device import Configuration, backend, cuda
from hiresx.device.fields import Layout
from hiresx.device.state import BlockState
from hiresx.exchange.halo import HaloExchange
from hiresx.grid import Block, Connection
from hiresx.grid.blocks import FACES, direction, face_range, whole_box

VISCOUS = Configuration(viscosity="constant")
INVISCID = Configuration()
ORIENTATIONS = [
    tuple(tuple(s if e == p else 0 for e in range(3)) for p, s in zip(order, signs, strict=True))
    for order in permutations(range(3))
    for signs in product((1, -1), repeat=3)
]
TURN = ((0.6, -0.8, 0.0), (0.8, 0.6, 0.0), (0.0, 0.0, 1.0))


def block(name: str, size) -> Block:
    k, j, i = np.meshgrid(*(np.arange(float(n)) for n in reversed(size)), indexing="ij")
    return Block(name, i, j, k)


def arrangement(seed: int, ranks: int) -> Decomposition:
    """Blocks on `ranks` ranks, their faces joined to each other at random, in pieces and in any orientation: chains,
    rings, ranks that only send, ranks that have nothing to do with each other. Some vectors are rotated."""
    dice = random.Random(seed)
    owners = [*range(ranks), *(dice.randrange(ranks) for _ in range(dice.randrange(5)))]
    dice.shuffle(owners)
    plane = dice.random() < 0.2
    sizes = [(dice.randint(7, 10), dice.randint(7, 10), 1 if plane else dice.randint(7, 9)) for _ in owners]
    blocks = tuple(block(f"b{n}", size) for n, size in enumerate(sizes))
    connections = []
    for n, own in enumerate(blocks):
        for face in own.faces:
            for piece in pieces(face, own.size, dice):
                for _ in range(3 if dice.random() < 0.8 else 0):
                    # The next rank, so that there is a ring, or any block, this one too.
                    near = [m for m, rank in enumerate(owners) if rank == (owners[n] + 1) % ranks]
                    donor = dice.choice(near if dice.random() < 0.5 else range(len(blocks)))
                    found = joined(n, face, piece, donor, blocks, dice)
                    if found:
                        connections.append(found)
                        break
    parts = tuple(Part(n, whole_box(size), rank) for n, (size, rank) in enumerate(zip(sizes, owners, strict=True)))
    return Decomposition(blocks, tuple(connections), (), parts)


def pieces(face, size, dice):
    """A face whole, or in two with a cut."""
    whole = face_range(face, size)
    across = [d for d in range(3) if d != direction(face) and size[d] > 1]
    if dice.random() < 0.6 or not across:
        return [whole]
    d = dice.choice(across)
    at = dice.randint(1, size[d] - 1)
    return [
        tuple((lo, at) if e == d else r for e, r in enumerate(whole) for lo in [whole[d][0]]),
        tuple((at, hi) if e == d else r for e, r in enumerate(whole) for hi in [whole[d][1]]),
    ]


def joined(n, face, range_, donor, blocks, dice) -> Connection | None:
    """A connection to a place in `donor` that has room for it; None if there is none in the orientation tried."""
    matrix = dice.choice(ORIENTATIONS)
    if blocks[n].size[2] == 1 and (matrix[2][2] != 1):
        return None
    d, size = direction(face), blocks[n].size[direction(face)]
    layers = (-3, 0) if face.endswith("min") else (size, size + 3)
    ghosts = [range(*(layers if e == d else range_[e])) for e in range(3)]
    offset = []
    for row, room in zip(matrix, blocks[donor].size, strict=True):
        e = next(e for e in range(3) if row[e])
        low = min(row[e] * ghosts[e][0], row[e] * ghosts[e][-1])
        if len(ghosts[e]) > room:
            return None
        offset.append(dice.randint(0, room - len(ghosts[e])) - low)
    rotation = TURN if dice.random() < 0.3 else None
    return Connection(n, face, range_, donor, matrix, tuple(offset), rotation=rotation)


def opposite(face: str, turn) -> Decomposition:
    """Two blocks on two ranks, joined at `face` of the first, the second one turned; each is the other's donor."""
    size = (7, 8, 9)
    normal, upper = direction(face), FACES.index(face) % 2
    matrix = np.array(turn)
    shift = np.zeros(3, int)
    shift[normal] = size[normal] if upper else -size[normal]
    beyond = np.array(list(product(*((lo, hi - 1) for lo, hi in zip(shift, shift + size, strict=True))))).T
    image = matrix @ beyond
    offset = -image.min(axis=1)
    other = tuple(int(n) for n in image.max(axis=1) + offset + 1)
    there = Connection(0, face, face_range(face, size), 1, turn, tuple(int(n) for n in offset))
    back = matrix.T
    e = there.donor_direction
    # The donor's face that looks at this one.
    inwards = (matrix @ (np.eye(3, dtype=int)[normal] * (1 if upper else -1)))[e]
    donor_face = FACES[2 * e + (inwards < 0)]
    home = Connection(
        1, donor_face, face_range(donor_face, other), 0, tuple(map(tuple, back)), tuple(int(n) for n in -back @ offset)
    )
    blocks = (block("one", size), block("other", other))
    return Decomposition(blocks, (there, home), (), tuple(Part(n, whole_box(b.size), n) for n, b in enumerate(blocks)))


def values(number: int, index: np.ndarray, moment: int, variables: int) -> np.ndarray:
    """What node `index` (3, ...) of block `number` holds at a moment: no two the same."""
    i, j, k = index
    place = i + 17.0 * j + 289.0 * k + 5003.0 * number + 1e6 * moment
    return np.stack([place + 1e8 * v for v in range(1, variables + 1)])


def nodes(size) -> np.ndarray:
    """Index triples (3, nk, nj, ni)."""
    return np.stack(np.meshgrid(*(np.arange(n) for n in size), indexing="ij")).transpose(0, 3, 2, 1)


def fill(place, states, fluxes, moment: int) -> None:
    for state, by_direction in zip(states, fluxes, strict=True):
        index = nodes(state.size)
        q = values(state.index, index, moment, 5)
        for d, array in enumerate([state.q, *by_direction]):
            host = place.to_host(array)
            host[...] = -1.0
            state.interior(host)[...] = q if d == 0 else values(state.index, index, moment + 10 * d, 4)
            place.copy(array, place.to_device(host))


def errors(place, cut, states, fluxes, moment: int, tolerance: float) -> list[str]:
    """What is wrong with the ghosts, and whether anything was written where no ghost of a connection is."""
    place.synchronize()
    found = []
    for state, by_direction in zip(states, fluxes, strict=True):
        for d, array in enumerate([state.q, *by_direction]):
            wanted = np.full(array.shape, -1.0)
            index = nodes(state.size)
            state.interior(wanted)[...] = values(state.index, index, moment + 10 * d, 4 if d else 5)
            for c in cut.connections:
                if c.block != state.index or (d and direction(c.face) != d - 1):
                    continue
                ghosts = c.ghosts(3, state.size)
                e = c.donor_direction
                what = values(c.donor, c.donors(ghosts), moment + 10 * (e + 1) if d else moment, 4 if d else 5)
                what *= c.sign if d else 1
                if c.rotation is not None:
                    vector = slice(0, 3) if d else slice(1, 4)
                    what[vector] = np.tensordot(np.array(c.rotation), what[vector], axes=1)
                i, j, k = (m + h for m, h in zip(ghosts, state.halo, strict=True))
                wanted[:, k, j, i] = what
            wrong = np.abs(place.to_host(array) - wanted) > tolerance * np.abs(wanted)
            if wrong.any():
                what = f"flux {d - 1}" if d else "state"
                found.append(f"block {state.index}, {what}: {wrong.sum()} values, first {np.argwhere(wrong)[0]}")
    return found


def set_up(place, cut, comm, configuration=VISCOUS, transport="auto"):
    program = place.compile(configuration)
    mine = [n for n, part in enumerate(cut.parts) if part.rank == comm.rank]
    layout = Layout(configuration.storage, needed={"work": 16, "registers": 1})
    states = [BlockState(place, cut, n, cut.blocks[n].name, layout) for n in mine]
    fluxes = [[state.work[4 + 4 * d : 8 + 4 * d] for d in range(3)] for state in states]
    return HaloExchange(place, program, comm, cut, states, transport), states, fluxes


def exchanged(place, cut, comm, transport="auto", delays=None, configuration=VISCOUS, moments=4) -> list[str]:
    """Several exchanges of states and fluxes, with other values each time; what went wrong."""
    exchange, states, fluxes = set_up(place, cut, comm, configuration, transport)
    tolerance = 1e-14 if configuration.precision == "fp64" else 1e-6
    wait = (lambda: None) if delays is None else lambda: time.sleep(delays.choice((0, 0, 0, delays.random() * 2e-3)))
    found = []
    for moment in range(moments):
        fill(place, states, fluxes, moment)
        wait()
        exchange.start_state()
        wait()
        if moment % 2:
            exchange.flush()
            exchange.progress()
        exchange.start_fluxes(fluxes)  # both at once
        # What was started is what is sent.
        for state, by_direction in zip(states, fluxes, strict=True):
            for array in (state.q, *by_direction):
                scratch(place, state, array)
        wait()
        for finish in (exchange.finish_state, exchange.finish_fluxes, exchange.finish_state, exchange.finish_fluxes):
            finish()
        for state, by_direction in zip(states, fluxes, strict=True):
            for array in (state.q, *by_direction):
                scratch(place, state, array)
        found += errors(place, cut, states, fluxes, moment, tolerance)
    assert exchange.counts == (moments, moments)
    exchange.close()
    return found


def scratch(place, state, array) -> None:
    """Change the interior, or change it back."""
    place.negate(state.interior(array))


class Place:
    """A backend with the little that the tests do to arrays beside kernels."""

    def __init__(self, name, rank=0):
        # Ranks take the GPUs in turn.
        self._room = backend(name, rank % len(cuda.devices()) if name == "cuda" else None)
        self.compile = cache(self._room.compile)

    def __getattr__(self, name):
        return getattr(self._room, name)

    @staticmethod
    def negate(view):
        view *= -1


def shared(seed: int, comm) -> Decomposition:
    """An arrangement for all ranks of a communicator, made by one."""
    return comm.bcast(arrangement(seed, comm.size) if comm.root else None)


def several(comm, transport, names, seeds, configuration=VISCOUS):
    """Arrangements one after the other; `names`: the backend of each rank."""
    place = Place(names[comm.rank], comm.rank)
    found = []
    for seed in seeds:
        dice = random.Random(1000 * seed + comm.rank)
        found += exchanged(place, shared(seed, comm), comm, transport, dice, configuration)
    return found
