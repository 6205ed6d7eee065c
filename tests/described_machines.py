"""Machines that are described, not there."""

from dataclasses import replace

import numpy as np
from topology_recordings import smi

from hiresx.topology.machine import Machine
from hiresx.topology.parse_smi import parse_smi


def described(levels, cpus=None, **more) -> Machine:
    """A machine of these levels whose GPUs have PCI addresses."""
    machine = parse_smi(smi(levels, cpus))
    named = tuple(replace(gpu, bus_id=f"0000:{16 + gpu.index:02x}:00.0", model="H200") for gpu in machine.gpus)
    return replace(machine, gpus=named, live=True, **more)


def pairs(size, *joined) -> np.ndarray:
    matrix = np.zeros((size, size))
    for a, b, weight in joined:
        matrix[a, b] = matrix[b, a] = weight
    return matrix
