"""How lines are cut into chunks for the kernels that go along them, so that few lines fill a large GPU too."""

# Threads that fill one, some times over; nodes that a chunk keeps at least, for what it begins with is computed twice.
THREADS, LEAST = 131072, 16
WARP = 32


def line_chunk(n: int, lines: int) -> int:
    """Nodes of a chunk of each of so many lines of n nodes, marched along by a thread."""
    return -(-n // max(1, min(-(-THREADS // lines), n // LEAST)))


def row_chunk(n: int, rows: int) -> int:
    """Nodes of a chunk of each of so many rows of n nodes, gone along by a warp, which wants as many registers as half
    as many threads that march."""
    return -(-n // max(1, min(-(-THREADS // (WARP // 2 * rows)), n // WARP)))
