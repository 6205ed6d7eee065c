"""Libraries of the extra `post`: asked for where they are used, named with the command that installs them."""

from types import ModuleType

from hiresx import optional

INSTALL = "pip install 'hiresx[post]'"


def xarray() -> ModuleType:
    """xarray. Raises HiresxError where it is missing or broken."""
    return optional.needed("xarray", "results need xarray", INSTALL)


def scipy(part: str) -> ModuleType:
    """scipy.`part`. Raises HiresxError where SciPy is missing or broken."""
    return optional.needed(f"scipy.{part}", "this analysis needs SciPy", INSTALL)
