"""Case files: what they may hold (`schema`), how they are read (`loader`), which come with the package (`bundle`)."""

from hiresx.case.bundle import bundled, copy_bundled
from hiresx.case.loader import find, load, presets
from hiresx.case.schema import Case

__all__ = ["Case", "bundled", "copy_bundled", "find", "load", "presets"]
