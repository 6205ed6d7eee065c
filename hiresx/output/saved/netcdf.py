"""What all users of the netCDF library in one process have in common."""

import sys
import threading
from types import ModuleType

from hiresx.base import optional
from hiresx.base.shell import quote

LOCK = threading.RLock()
"""Held around every call into netCDF4: its HDF5 library is not safe for two threads, and fields are written by one of
their own. Hold it for single calls, not for whole files: the time step waits for whoever wants it next."""


def library() -> ModuleType:
    """netCDF4. Raises HiresxError where it is missing or broken."""
    mend = f"{quote(sys.executable)} -m pip install --force-reinstall netCDF4"
    return optional.import_required("netCDF4", "fields and histories need netCDF4", mend)
