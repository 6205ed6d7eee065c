"""The lock that protects calls of the netCDF and HDF5 libraries."""

import threading

LOCK = threading.RLock()
"""Held around every call into netCDF4 or h5py: their HDF5 library is not safe for two threads, and fields are written
by one of their own. Hold it for single calls, not for whole files: the time step waits for whoever wants it next."""
