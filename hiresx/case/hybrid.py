"""The `[scheme.hybrid]` table: the sensor and threshold by which the hybrid scheme chooses between its two inviscid
fluxes."""

from typing import Annotated, Literal

from pydantic import Field

from hiresx.case.model import Positive, Table, kernel_choice


class Hybrid(Table):
    """Where `scheme.inviscid = "hybrid"` uses AFWENO, and with what weight. The sensors are the files of
    `kernels/sensor/`. The output variable `shock_sensor` is the weight of AFWENO at each node."""

    sensor: Annotated[str, kernel_choice("sensor")] = Field(
        "jump",
        description="sensor of shocks: jump (second differences of pressure and density), jameson (of the "
        "pressure alone), ducros (compression relative to vorticity), bhagatwala_lele (the same for"
        " strong compression) or teno (substencils that TENO with scheme.cutoff discards)",
    )
    threshold: Positive | None = Field(
        None, description="value of the sensor above which AFWENO is used; absent: the default of the sensor"
    )
    blending: Literal["sharp", "smooth"] = Field(
        "smooth",
        description="sharp: the split form below the threshold, AFWENO above it; smooth: a cubic from half of the "
        "threshold to one and a half of it",
    )
    floor: float = Field(
        0.0,
        ge=0,
        le=1,
        description="least weight of AFWENO at any point; above 0, AFWENO is computed at all points, which costs time",
    )

    @property
    def least(self) -> float:
        """Value of the shock sensor above which AFWENO is used: the key `threshold`, or the default of the sensor if
        the case does not give it."""
        from hiresx.kernels import fractions

        return fractions("sensor", self.sensor, "usual_threshold")[0] if self.threshold is None else self.threshold
