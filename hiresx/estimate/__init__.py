"""Estimates for a case without running it: memory, time step and cost (`resources`), and which sound waves and boundary
layers its grid resolves (`resolution`)."""

from hiresx.estimate.resources import (
    CHECKING,
    device_bytes,
    estimate,
    estimate_ranks,
    exchanged_bytes,
    layout,
    memory_bytes,
    refuse_on_gpus,
    refuse_oversized,
    remarks_on_step,
)

__all__ = [
    "CHECKING",
    "device_bytes",
    "estimate",
    "estimate_ranks",
    "exchanged_bytes",
    "layout",
    "memory_bytes",
    "refuse_on_gpus",
    "refuse_oversized",
    "remarks_on_step",
]
