"""Collection of objects that refer to each other, again and again in the midst of a run."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Whether a run goes on in which `collect` need look at later objects alone, and whether earlier ones were set apart.
_repeated = _apart = False


def collect() -> None:
    """Free the memory of objects to which nothing refers but they themselves. In `repeatedly` every collection but the
    first one looks at those alone that were made since the first: all modules and the case are not looked at again."""
    global _apart
    gc.collect()
    if _repeated and not _apart:
        gc.freeze()
        _apart = True


@contextmanager
def repeatedly() -> Iterator[None]:
    """Within this `collect` is called again and again. At its end Python's collector looks at all objects again."""
    global _repeated, _apart
    before, _repeated = _repeated, True
    try:
        yield
    finally:
        _repeated = before
        if _apart and not before:
            gc.unfreeze()
            _apart = False
