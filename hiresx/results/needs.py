"""Imports of the libraries of the extra `post`. The error for a missing one names the command that installs it."""

from types import ModuleType

from hiresx.base import optional

INSTALL = optional.install_command("post")


def xarray() -> ModuleType:
    """Import xarray and return the module. Raises HiresxError, with the command that installs it, if it is missing or
    broken."""
    return optional.import_required("xarray", "results need xarray", INSTALL)


def scipy(part: str) -> ModuleType:
    """Import the module `part` of SciPy, such as "signal", and return it. Raises HiresxError, with the command that
    installs it, if SciPy is missing or broken."""
    return optional.import_required(f"scipy.{part}", "this analysis needs SciPy", INSTALL)
