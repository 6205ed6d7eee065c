"""Which time step the flow allows, and which one counts as a step: what kernels/step_rule.h says, to the last bit."""

import math

# By how much of it a step may be longer than the flow allows, where one fewer then leads to a time.
LONGER = 1e-3


def largest_step(cfl: float, viscous_cfl: float, inviscid: float, viscous: float) -> float:
    """min(cfl / inviscid, viscous_cfl / viscous) of the spectral radii `inviscid` and `viscous` (1/time); a viscous
    radius of 0 sets no limit, and a NaN of the inviscid one stays."""
    step = cfl / inviscid if inviscid else math.inf
    if not viscous > 0:
        return step
    bound = viscous_cfl / viscous
    return bound if bound < step else step


def step_towards(left: float, wanted: float) -> float:
    """The step towards a time that is `left` away where the flow allows `wanted`: all that is left, or half of it, if
    such steps are longer than `wanted` by `LONGER` of it at most. A NaN of `wanted` stays."""
    most = (1 + LONGER) * wanted
    if left <= most:
        return left
    return left / 2 if left <= 2 * most else wanted


def steps_towards(left: float, wanted: float) -> int:
    """How many of them lead there while `wanted` stays as it is."""
    most = (1 + LONGER) * wanted
    return 1 if left <= most else 2 + max(0, math.ceil((left - 2 * most) / wanted))


def time_advances(time: float, step: float, largest: float = math.inf) -> bool:
    """Whether `time` goes on by `step`, `largest` being all that is left: the last of a run may be too small to be
    seen."""
    return math.isfinite(step) and not (step < largest and time + step == time)


def radii_are_finite(inviscid: float, viscous: float) -> bool:
    """Whether a flow with these spectral radii is one."""
    return math.isfinite(inviscid) and math.isfinite(viscous)
