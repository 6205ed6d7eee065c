"""The largest stable time step of a flow, computed with the same arithmetic as in kernels/step_rule.h, so that both
agree to the last bit."""

import math

# A step may exceed the limit of the flow by this fraction if that saves a step.
LONGER = 1e-3


def largest_step(cfl: float, viscous_cfl: float, inviscid: float, viscous: float) -> float:
    """Return the largest stable time step, min(cfl / inviscid, viscous_cfl / viscous), in L / c_ref. `inviscid` and
    `viscous`: spectral radii, in c_ref / L. A viscous radius of 0 sets no limit; if the inviscid radius is NaN, so is
    the result."""
    step = cfl / inviscid if inviscid else math.inf
    if not viscous > 0:
        return step
    bound = viscous_cfl / viscous
    return bound if bound < step else step


def step_towards(left: float, wanted: float) -> float:
    """Return the size of the next time step towards a time that is `left` away, in L / c_ref. `wanted`: the step size
    that the flow permits, which may be exceeded by a thousandth. The result is `left` if this is permitted, else half
    of `left` if that is permitted, else `wanted`. If `wanted` is NaN, so is the result."""
    most = (1 + LONGER) * wanted
    if left <= most:
        return left
    return left / 2 if left <= 2 * most else wanted


def steps_towards(left: float, wanted: float) -> int:
    """Return the number of time steps, of the sizes that `step_towards` chooses, to a time that is `left` away, in L /
    c_ref. `wanted`: the step size that the flow permits, in L / c_ref, assumed constant."""
    most = (1 + LONGER) * wanted
    return 1 if left <= most else 2 + max(0, math.ceil((left - 2 * most) / wanted))


def time_advances(time: float, step: float, largest: float = math.inf) -> bool:
    """Return whether `time` + `step` is larger than `time` in double precision. The result is always True if `step`
    equals `largest`, the time left of the run: the last step may be too small to change the time."""
    return math.isfinite(step) and not (step < largest and time + step == time)


def radii_are_finite(inviscid: float, viscous: float) -> bool:
    """Return whether the inviscid and the viscous spectral radius are both finite. They are not if the flow has become
    invalid."""
    return math.isfinite(inviscid) and math.isfinite(viscous)
