"""What is known of the state as it is."""

import numpy as np


class StateCache:
    """`radii`: its largest inviscid and viscous spectral radius, over all ranks, if they were sought. `rates`: whether
    `r` holds rates of change of this state or of one that led to it; before the first it holds nothing. `began`: time
    and steps at which the last step began, whose first state the integrator or its history has."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """The state is another one that was given."""
        self.began: tuple[float, int] | None = None
        self.rates = False
        self.invalidate_radii()

    def invalidate_radii(self) -> None:
        """Nodes have changed."""
        self.radii: np.ndarray | None = None

    def expect_rates(self) -> None:
        """Rates are computed from here on, upon which nodes change."""
        self.rates = True
        self.invalidate_radii()

    def begin_step(self, time: float, steps: int) -> None:
        """A step begins."""
        self.began = time, steps
        self.invalidate_radii()
