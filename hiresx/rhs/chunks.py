"""Division of grid lines into chunks for the kernels that march along them. Even few lines should fill a large GPU. The
beginning of a chunk is computed twice, and should be a small share of it. The sizes are chosen for the number of
threads that an H100 or H200 runs at a time; they suit other GPUs nearly as well."""

from collections.abc import Sequence

MULTIPROCESSORS = 132

# Threads of a block that marches; nodes' worth of work that a chunk takes beside its own; what 0, 1, ... such blocks,
# sharing a multiprocessor, take together over what one takes alone, by the bytes of a real (H200).
BLOCK, BESIDE = 64, 2
SHARING = {8: (0.0, 1.0, 1.07, 1.70, 1.84), 4: (0.0, 1.0, 1.06, 1.50, 1.58, 2.07, 2.10, 2.60, 2.77)}
# Nodes that a chunk keeps at least, and at most: of long ones that begin together some end late (6 to 10 % of a sweep
# over 256^3 nodes).
LEAST, MOST = 2, 96

# Lanes of a warp that goes along rows; such warps of a multiprocessor at a time; nodes that it visits beside its own;
# what a chunk takes beside going along it, in goes of a warp; nodes of a chunk at most.
LANES, WARPS, ENDS, START, LONGEST = 32, 16, 2, 0.05, 1022

# Of warps that look for something to do: chunks of one at most; times that a GPU is full of warps at least.
TURNS, WAVES = 8, 8

# Blocks of a multiprocessor that each march along a tile; what they begin and end with, in planes of a chunk.
TILES, BEFORE = 2, 3


def crowds(points: Sequence[int], small: int) -> list[float]:
    """Return, for blocks of so many `points`, how many times as many lines as its own are computed beside those of a
    block. Launches of blocks with at most `small` points are made together; each of the others fills a device."""
    together = sum(n for n in points if n <= small)
    return [together / n if n <= small else 1.0 for n in points]


def line_chunk(n: int, lines: int, itemsize: int) -> int:
    """Return the number of nodes of a chunk for kernels whose threads each compute a segment of a grid line. `lines`:
    number of lines. `n`: nodes of each. `itemsize`: bytes of a real."""
    sharing = SHARING[min(itemsize, max(SHARING))]

    def cost(chunk: int) -> float:
        blocks = -(-lines * -(-n // chunk) // BLOCK)
        turns, rest = divmod(-(-blocks // MULTIPROCESSORS), len(sharing) - 1)
        return (turns * sharing[-1] + sharing[rest]) * (chunk + BESIDE)

    return min((chunk for chunk in _chunks(n, n // LEAST) if chunk <= MOST), key=cost)


def row_chunk(n: int, rows: int) -> int:
    """Return the number of nodes of a chunk for kernels whose warps each compute a segment of a contiguous row. `rows`:
    number of rows. `n`: nodes of each."""

    def cost(chunk: int) -> float:
        turns = rows * -(-n // chunk) / (WARPS * MULTIPROCESSORS)
        return (turns + -(-turns // 1)) * (-(-(chunk + ENDS) // LANES) + START)

    return min((chunk for chunk in _chunks(n, -(-n // (LANES - ENDS))) if chunk <= LONGEST), key=cost)


def planes_apart(planes: int, chunks: int) -> int:
    """Return the distance of the planes in which a warp along rows of the hybrid form looks for something to do, of
    `planes` planes with `chunks` chunks each. A warp that finds nothing takes little more time than it takes to begin,
    and a GPU should have enough warps for all that find something."""
    turns = min(max(planes * chunks // (WAVES * WARPS * MULTIPROCESSORS), 1), TURNS)
    return -(-planes // turns)


def march_chunk(n: int, tiles: int) -> int:
    """Return the number of planes of a chunk for kernels whose thread blocks each compute a tile of columns, plane by
    plane. `tiles`: number of tiles. `n`: nodes of each column."""

    def cost(chunk: int) -> float:
        return -(-tiles * -(-n // chunk) // (TILES * MULTIPROCESSORS)) * (chunk + BEFORE)

    return min(_chunks(n, n // LEAST), key=cost)


def _chunks(n: int, most: int) -> list[int]:
    """Sizes of the chunks of a line that is cut into 1 to `most`."""
    return sorted({-(-n // count) for count in range(1, max(most, 1) + 1)}, reverse=True)
