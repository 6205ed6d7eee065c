"""Imports of the netCDF and HDF5 libraries, and the lock that all their users in one process share."""

import sys
from types import ModuleType

from hiresx.base import optional
from hiresx.base.library_lock import LOCK
from hiresx.base.shell import quote

__all__ = ["LOCK", "h5py", "library"]


def library() -> ModuleType:
    """Import netCDF4 and return the module. Raises HiresxError, with a command that installs it, if it is missing or
    broken."""
    return _import("netCDF4", "fields and histories need netCDF4")


def h5py() -> ModuleType:
    """Import h5py and return the module. Raises HiresxError, with a command that installs it, if it is missing or
    broken."""
    return _import("h5py", "fields need h5py")


def _import(name: str, what: str) -> ModuleType:
    return optional.import_required(name, what, f"{quote(sys.executable)} -m pip install --force-reinstall {name}")
