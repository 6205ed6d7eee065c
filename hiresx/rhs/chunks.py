"""Division of grid lines into chunks for the kernels that march along them. Even few lines should fill a large GPU. The
beginning of a chunk is computed twice, and should be a small share of it. The sizes are chosen for the number of
threads that an H100 or H200 runs at a time; they suit other GPUs nearly as well."""

from collections.abc import Sequence
from functools import lru_cache

MULTIPROCESSORS = 132

# For kernels whose threads march along lines: threads of a block; cost of a chunk besides its nodes, as a number of
# nodes; and the time of 0, 1, ... blocks that share a multiprocessor, divided by that of a single one, by the bytes of
# a real (H200).
BLOCK, BESIDE = 64, 2
SHARING = {8: (0.0, 1.0, 1.07, 1.70, 1.84), 4: (0.0, 1.0, 1.06, 1.50, 1.58, 2.07, 2.10, 2.60, 2.77)}
# Least and largest number of nodes of a chunk: if long chunks begin together, some end late (6 to 10 % of a sweep over
# 256^3 nodes).
LEAST, MOST = 2, 96

# For kernels whose warps go along rows: lanes of a warp; such warps on a multiprocessor at a time; nodes that a chunk
# visits besides its own; cost of a chunk besides its nodes, in passes of a warp; largest number of nodes of a chunk.
LANES, WARPS, ENDS, START, LONGEST = 32, 16, 2, 0.05, 1022

# For kernels whose blocks march along tiles: blocks on a multiprocessor; cost of the beginning and the end of a chunk,
# in planes.
TILES, BEFORE = 2, 3


def crowds(points: Sequence[int], small: int) -> list[float]:
    """Return, for each block, the number of nodes whose kernels run on the device at the same time, divided by the
    number of nodes of the block. `points`: the number of nodes of each block. The launches of all blocks with at most
    `small` nodes run together, so that the ratio is 1 or more. A larger block runs alone, and its ratio is 1."""
    together = sum(n for n in points if n <= small)
    return [together / n if n <= small else 1.0 for n in points]


@lru_cache(maxsize=4096)
def line_chunk(n: int, lines: int, itemsize: int) -> int:
    """Return the length, in nodes, of the segments into which grid lines are divided, for GPU kernels in which each
    thread computes one segment of a line. It is the length with the least estimated time. `n`: nodes of a line.
    `lines`: number of lines. `itemsize`: bytes of a real number."""
    sharing = SHARING[min(itemsize, max(SHARING))]

    def cost(chunk: int) -> float:
        blocks = -(-lines * -(-n // chunk) // BLOCK)
        turns, rest = divmod(-(-blocks // MULTIPROCESSORS), len(sharing) - 1)
        return (turns * sharing[-1] + sharing[rest]) * (chunk + BESIDE)

    return min((chunk for chunk in _chunks(n, n // LEAST) if chunk <= MOST), key=cost)


@lru_cache(maxsize=4096)
def row_chunk(n: int, rows: int) -> int:
    """Return the length, in nodes, of the segments into which contiguous rows are divided, for GPU kernels in which
    each warp computes one segment of a row. It is the length with the least estimated time. `n`: nodes of a row.
    `rows`: number of rows."""

    def cost(chunk: int) -> float:
        turns = rows * -(-n // chunk) / (WARPS * MULTIPROCESSORS)
        return (turns + -(-turns // 1)) * (-(-(chunk + ENDS) // LANES) + START)

    return min((chunk for chunk in _chunks(n, -(-n // (LANES - ENDS))) if chunk <= LONGEST), key=cost)


@lru_cache(maxsize=4096)
def march_chunk(n: int, tiles: int, resident: int = TILES) -> int:
    """Return the length, in planes, of the segments into which columns of nodes are divided, for GPU kernels in which
    each thread block computes a tile of columns plane by plane. It is the length with the least estimated time. `n`:
    nodes of a column. `tiles`: number of tiles. `resident`: number of blocks on a multiprocessor."""

    def cost(chunk: int) -> float:
        return -(-tiles * -(-n // chunk) // (resident * MULTIPROCESSORS)) * (chunk + BEFORE)

    return min(_chunks(n, n // LEAST), key=cost)


def resident_lines(itemsize: int) -> int:
    """Return the number of threads that a device runs at a time of a kernel that marches along lines. `itemsize`: bytes
    of a real number."""
    return MULTIPROCESSORS * BLOCK * (len(SHARING[min(itemsize, max(SHARING))]) - 1)


def _chunks(n: int, most: int) -> list[int]:
    """Return the sizes of the chunks if a line is divided into 1 to `most`."""
    return sorted({-(-n // count) for count in range(1, max(most, 1) + 1)}, reverse=True)
