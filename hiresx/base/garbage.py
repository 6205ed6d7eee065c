"""Control of Python's garbage collection during a run, so that it does not examine the same objects again and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Whether a context of `repeatedly` is active, and whether the objects created before it have been examined.
_repeated = _apart = False


def collect() -> None:
    """Run Python's garbage collector, which frees the memory of objects that only refer to each other. Inside the
    context `repeatedly`, only the first call examines all objects; later calls examine those created after it, which
    saves time."""
    global _apart
    gc.collect()
    if _repeated and not _apart:
        gc.freeze()
        _apart = True


@contextmanager
def paused() -> Iterator[None]:
    """Return a context manager inside which Python does not run its garbage collector by itself, as for work that makes
    many objects which remain."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@contextmanager
def repeatedly() -> Iterator[None]:
    """Return a context manager inside which repeated calls of `collect` are fast. After it the garbage collector
    examines all objects again."""
    global _repeated, _apart
    before, _repeated = _repeated, True
    try:
        yield
    finally:
        _repeated = before
        if _apart and not before:
            gc.unfreeze()
            _apart = False
