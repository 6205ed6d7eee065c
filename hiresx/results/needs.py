"""Libraries of the extra `post`: asked for where they are used, named with the command that installs them."""

from types import ModuleType

from hiresx.base import optional

INSTALL = "pip install 'hiresx[post]'"


def xarray() -> ModuleType:
    """Return the module xarray. Raises HiresxError if it is missing or broken."""
    return optional.import_required("xarray", "results need xarray", INSTALL)


def scipy(part: str) -> ModuleType:
    """Return the module scipy.`part`. Raises HiresxError if SciPy is missing or broken."""
    return optional.import_required(f"scipy.{part}", "this analysis needs SciPy", INSTALL)
