"""Fields of known contents, cut for ranks."""

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from hiresx import load
from hiresx.decomposition import Part
from hiresx.equations.gas import conservative
from hiresx.grid import Block
from hiresx.grid.blocks import whole_box
from hiresx.mpi.communicator import Communicator
from hiresx.output.fields.field_output import FieldOutput

VARIABLES = ["rho", "u", "v", "w", "p", "mach", "entropy", "vorticity", "schlieren", "q_criterion", "dilatation"]
# name: overrides of a case, sizes of blocks (ni, nj, nk)
SOLID = [
    "output.every_steps=2",
    'output.formats=["netcdf", "vtk"]',
    f"output.variables={VARIABLES}",
    """output.subset=[
        {name="thin", range={i=[3, -2, 4], j=[5, 6], k=[0, "end", 2]}},
        {name="corner", range={i=[0, 2], j=[-9, "end"]}, variables=["p", "vorticity_x"], precision="fp32"},
        {name="second", range={k=[5, 8]}, blocks=["right"], every_steps=3},
        {name="plane_x", plane={x=0.71}},
        {name="plane_y", plane={y=0.5}, variables=["p"]},
        {name="plane_z", plane={z=0.42}, variables=["dilatation"], precision="fp32"},
        {name="through", line={x=0.71, z=0.42}},
        {name="along", line={y=0.4, z=0.5}, variables=["T", "q_criterion"]},
    ]""",
]
SHEET = [
    "output.every_steps=2",
    'output.formats=["netcdf", "vtk"]',
    f"output.variables={VARIABLES}",
    'output.precision="fp32"',
    """output.subset=[
        {name="up", line={x=0.71}},
        {name="along", line={y=0.4}, precision="fp64"},
        {name="some", range={j=[1, 20, 3]}},
    ]""",
]
KINDS = {"solid": (SOLID, ((24, 17, 22), (19, 21, 8))), "sheet": (SHEET, ((37, 25, 1), (30, 41, 1)))}


def grid(sizes) -> tuple[Block, ...]:
    """Blocks side by side that are bent, so that planes go through many layers of nodes."""
    found = []
    for n, size in enumerate(sizes):
        i, j, k = (np.arange(m) / max(m - 1, 1) for m in size)
        z, y, x = np.meshgrid(k, j, i, indexing="ij")
        solid = size[2] > 1
        found.append(
            Block(
                ("left", "right")[n],
                n + x + 0.15 * np.sin(3 * y + 2 * z),
                y + 0.1 * np.cos(2 * x + n) + 0.1 * z,
                (z + 0.12 * np.sin(2 * x + y)) if solid else z,
            )
        )
    return tuple(found)


def flow(block: Block, step: int) -> np.ndarray:
    """(5, nk, nj, ni)."""
    wave = np.sin(3 * block.x + 0.1 * step) * np.cos(2 * block.y + block.z)
    u, v, w = 0.4 * wave, 0.3 * np.cos(block.x * block.y), 0.2 * np.sin(block.z + step) * wave
    return np.stack(conservative(1.4, 1 + 0.2 * wave, u, v, w, 0.7 + 0.1 * np.cos(2 * block.x - block.y)))


def cut(blocks, count: int, ranks: int, dice: random.Random) -> list[Part]:
    """About `count` parts of seven nodes and more, cut at random places, for random ranks of which each gets one."""
    boxes = [(n, whole_box(block.size)) for n, block in enumerate(blocks)]
    for _ in range(count):
        n, box = boxes.pop(dice.randrange(len(boxes)))
        d = dice.choice([d for d in range(3) if blocks[n].size[d] > 1])
        first, last = box[d]
        if last - first < 14:
            boxes.append((n, box))
            continue
        at = dice.randrange(first + 7, last - 6)
        boxes += [(n, (*box[:d], ends, *box[d + 1 :])) for ends in ((first, at), (at, last))]
    owners = [*range(ranks), *(dice.randrange(ranks) for _ in boxes)][: len(boxes)]
    dice.shuffle(owners)
    return [Part(n, box, owner) for (n, box), owner in zip(boxes, owners, strict=True)]


class Fetching:
    """What of a backend outputs use."""

    name = "cpu"

    @staticmethod
    def fetch(array):
        copy = np.array(array)
        return lambda: copy


class Held:
    """What of a solver outputs use: the parts of one rank, with ghosts at cuts and nothing that is a number in other
    ghosts."""

    backend = Fetching()

    def __init__(self, comm: Communicator, blocks, parts, precision="fp64"):
        self.comm, self.decomposition = (
            comm,
            SimpleNamespace(blocks=blocks, connections=(), names_of_grid=[block.name for block in blocks], levels=None),
        )
        self.cut = SimpleNamespace(parts=tuple(parts))
        self.case = SimpleNamespace(gas=SimpleNamespace(gamma=1.4), scalar=())
        self.time, self.steps, self.dt, self._kind = 0.0, 0, 0.1, {"fp64": "f8", "fp32": "f4"}[precision]
        self.states = [
            SimpleNamespace(part=part, first=part.first, size=part.size, halo=tuple(3 * (n > 1) for n in part.size))
            for part in parts
            if part.rank == comm.rank
        ]
        self._fill()

    def step(self) -> None:
        self.steps += 1
        self.time += self.dt
        self._fill()

    def settle(self) -> None:
        for state, ghosts in zip(self.states, self._ghosts, strict=True):
            for index, values in ghosts:
                state.q[index] = values

    def _fill(self) -> None:
        self._ghosts = []
        for state in self.states:
            block = self.decomposition.blocks[state.part.whole]
            whole = flow(block, self.steps).astype(self._kind)
            state.q = np.full(
                (5, *(n + 2 * h for n, h in zip(state.size[::-1], state.halo[::-1], strict=True))), np.nan
            )
            state.q = state.q.astype(self._kind)
            inside = [slice(h, h + n) for n, h in zip(state.size[::-1], state.halo[::-1], strict=True)]
            there = list(state.part.slices)
            state.q[(slice(None), *inside)] = whole[(slice(None), *there)]
            found = []
            for d in range(3):
                low, high = there[d].start, there[d].stop
                for ghost, donor in (((0, 3), (low - 3, low)), ((-3, None), (high, high + 3))):
                    if state.halo[::-1][d] and donor[0] >= 0 and donor[1] <= whole.shape[1 + d]:
                        to, source = list(inside), list(there)
                        to[d], source[d] = slice(*ghost), slice(*donor)
                        found.append(((slice(None), *to), whole[(slice(None), *source)]))
            self._ghosts.append(found)


def written(comm: Communicator, folder: Path, kind: str, parts=None, steps: int = 4) -> FieldOutput:
    """A run's worth of outputs in `folder`."""
    overrides, sizes = KINDS[kind]
    case = load("taylor-green", overrides=["time.end=10.0", *overrides])
    blocks = grid(sizes)
    solver = Held(comm, blocks, parts or [Part(n, whole_box(block.size)) for n, block in enumerate(blocks)])
    output = FieldOutput(case, folder)
    output.begin(solver, False)
    for _ in range(steps):
        solver.step()
        output.after_step(solver)
    output.finish(solver)
    return output


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
