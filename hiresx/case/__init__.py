"""Case files: their tables and keys (`schema`), reading (`loader`), and the cases that come with the package
(`bundle`)."""

import warnings
from typing import TYPE_CHECKING

from hiresx.case.bundle import bundled_cases, copy_bundled
from hiresx.case.loader import find, load, presets
from hiresx.case.schema import Case

__all__ = ["Case", "bundled_cases", "copy_bundled", "find", "load", "presets"]


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> object:
        """Return `bundled_cases` under its former name, which exists for one version."""
        if name != "bundled":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warnings.warn("hiresx.case.bundled is bundled_cases now", FutureWarning, stacklevel=2)
        return bundled_cases
