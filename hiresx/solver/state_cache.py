"""Quantities derived from the current state, which are computed once per state."""

from collections.abc import Callable

import numpy as np

from hiresx.time.step_rule import radii_are_finite


class StateCache:
    """Data derived from the current state. `radii`: the largest inviscid and viscous spectral radius over all ranks, or
    None if not computed. `rates`: whether the array `r` contains rates of change, of this state or of an earlier one;
    it does not before the first right-hand side. `began`: the time and the number of steps at the start of the last
    step, whose initial state the integrator or its history stores. `incomplete`: whether nodes of this rank were set
    and the state was not completed since. `seen_ahead`: whether the launches that were made behind the last recorded
    steps, before the host waited for these, read the current state. `norms`: waits for the numbers of its norms and
    returns them, if they are among these launches. `replaced`: whether a user has set nodes of any rank since the size
    of steps was judged last."""

    def __init__(self) -> None:
        self.replaced = False
        self.reset()

    @property
    def permits_step(self) -> bool:
        """Whether the flow is known to permit another step: the last step computed its spectral radii, and they are
        finite. All ranks have the same answer."""
        return self.radii is not None and radii_are_finite(*map(float, self.radii))

    def reset(self) -> None:
        """Discard all data derived from the current state, because another state was set."""
        self.began: tuple[float, int] | None = None
        self.rates = self.incomplete = False
        self.invalidate_radii()

    def invalidate_radii(self) -> None:
        """Discard the spectral radii and all other results that were computed from the current state, because nodes
        have changed."""
        self.radii: np.ndarray | None = None
        self.seen_ahead = False
        self.norms: Callable[[], np.ndarray] | None = None

    def expect_rates(self) -> None:
        """Mark the right-hand side as valid and the spectral radii as invalid: a right-hand side is computed next, and
        nodes change."""
        self.rates = True
        self.invalidate_radii()

    def begin_step(self, time: float, steps: int) -> None:
        """Record that a step begins at `time` (in L / c_ref), after `steps` steps."""
        self.began = time, steps
        self.invalidate_radii()
