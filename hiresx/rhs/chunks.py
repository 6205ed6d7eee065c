"""How lines are cut into chunks for the kernels that go along them: few lines fill a large GPU too, and what a chunk
begins with, which is computed twice, stays a small share.

Both go by what one of the GPUs for large runs can do at a time (H100, H200); on another it is not far off.
"""

MULTIPROCESSORS = 132

# Threads of a block that marches; what so many blocks, sharing a multiprocessor, take together over what one takes
# alone (H200, FP64); nodes' worth of work that a chunk takes beside its own.
BLOCK, SHARING, BESIDE = 128, (0.0, 1.0, 1.35, 1.75), 2
# Nodes that a chunk keeps at least.
LEAST = 2

# Lanes of a warp that goes along rows; such warps of a multiprocessor at a time; nodes that it visits beside its own;
# what a chunk takes beside going along it, in goes of a warp.
LANES, WARPS, ENDS, START = 32, 16, 2, 0.05


def line_chunk(n: int, lines: int) -> int:
    """Nodes of a chunk of each of so many lines of n nodes, marched along by a thread."""

    def cost(chunk: int) -> float:
        blocks = -(-lines * -(-n // chunk) // BLOCK)
        turns, rest = divmod(-(-blocks // MULTIPROCESSORS), len(SHARING) - 1)
        return (turns * SHARING[-1] + SHARING[rest]) * (chunk + BESIDE)

    return min(_chunks(n, n // LEAST), key=cost)


def row_chunk(n: int, rows: int) -> int:
    """Nodes of a chunk of each of so many rows of n nodes, gone along by a warp."""

    def cost(chunk: int) -> float:
        turns = rows * -(-n // chunk) / (WARPS * MULTIPROCESSORS)
        return (turns + -(-turns // 1)) * (-(-(chunk + ENDS) // LANES) + START)

    return min(_chunks(n, -(-n // (LANES - ENDS))), key=cost)


def _chunks(n: int, most: int) -> list[int]:
    """Sizes of the chunks of a line that is cut into 1 to `most`."""
    return sorted({-(-n // count) for count in range(1, max(most, 1) + 1)}, reverse=True)
