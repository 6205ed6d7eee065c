"""Imports of the libraries of the extra `post`. The error for a missing one names the command that installs it."""

from types import ModuleType

from hiresx.base import optional

INSTALL = "pip install 'hiresx[post]'"


def xarray() -> ModuleType:
    """Return the module xarray. Raises HiresxError if it is missing or broken."""
    return optional.import_required("xarray", "results need xarray", INSTALL)


def scipy(part: str) -> ModuleType:
    """Return the module scipy.`part`. Raises HiresxError if SciPy is missing or broken."""
    return optional.import_required(f"scipy.{part}", "this analysis needs SciPy", INSTALL)
