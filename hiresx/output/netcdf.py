"""What all users of the netCDF library in one process have in common."""

import threading

LOCK = threading.RLock()
"""Held around every call into netCDF4: its HDF5 library is not safe for two threads, and fields are written by one of
their own. Hold it for single calls, not for whole files: the time step waits for whoever wants it next."""
