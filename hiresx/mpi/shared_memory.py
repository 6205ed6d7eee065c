"""The memory of a host that its processes can share."""

import os

import numpy as np

# Folder in which MPI libraries on Linux keep shared memory.
SHARED = "/dev/shm"
# Page size of segments, and the bytes that MPI adds.
SPARE = 2**20


def room() -> float:
    """Return the bytes of shared memory that are still free on this host; infinite if unknown. A process that uses more
    is killed when it touches the memory."""
    try:
        found = os.statvfs(SHARED)
    except OSError:
        return np.inf
    return found.f_bavail * found.f_frsize
