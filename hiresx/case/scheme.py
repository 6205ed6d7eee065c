"""The `[scheme]` table, and the valid combinations of weights and interpolation."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from hiresx import kernels
from hiresx.case.hybrid import Hybrid
from hiresx.case.model import Positive, State, Table, case_error, kernel_choice
from hiresx.case.named_scheme import LOW_DISSIPATION, complete_scheme
from hiresx.case.regularised import Regularised
from hiresx.equations.stencil import Stencil, has_cutoff, sensor_has_cutoff, stencil, suited_weights, weighted_nodes
from hiresx.equations.storage import Precision


class Scheme(Table):
    """Spatial discretisation. The choices are the files of the folders of `kernels/` with the same names.

    `choice = "low_dissipation"` changes the defaults of keys of this table and of `[filter]`. They are the same for
    flows with shocks and for turbulence: `inviscid = "hybrid"`, `hybrid.threshold = 0.03` of the sensor `jump`,
    `weights = "teno"` (`"z"` with seven nodes), `filter.order = 10` and `filter.strength = 0.03`. All of them except
    `inviscid` may be given other values, in the same preset or override or in a later one. With `refine`, which
    supports no filter, `hybrid.floor` is 0.01 instead. The implicit integrator does not support this choice. A filter
    of strength 0 is not applied.
    """

    choice: Literal["none", "low_dissipation"] = Field(
        "none",
        description=f"{LOW_DISSIPATION}: little dissipation away from shocks, one choice for all flows; none: the keys "
        "as they are",
    )
    interpolation: Annotated[str, kernel_choice("interpolation")] = Field(
        "modified",
        description="AFWENO5 with the characteristic space at the node (modified) or half-way (original); with six "
        "nodes (original6: TENO6) or seven (modified7: AFWENO7)",
    )
    weights: Annotated[str, kernel_choice("weights")] = Field(
        "js",
        description="nonlinear weights; original6 needs teno or teno_adaptive, modified7 needs js or z; linear is for "
        "verification",
    )
    space: Annotated[str, kernel_choice("space")] = Field(
        "characteristic", description="variables that are interpolated: characteristic or component-wise conservative"
    )
    flux: Annotated[str, kernel_choice("flux")] = Field(
        "steger_warming", description="numerical flux at the half points"
    )
    flux_smoothing: float = Field(
        0.0,
        ge=0,
        description="smoothing of the absolute value of the eigenvalues, |lambda| -> sqrt(lambda^2 + (smoothing "
        "c)^2); 0: none",
    )
    epsilon: Positive = Field(
        1e-6,
        description="square of the difference between neighbours below which a field is treated as smooth; for "
        "steady flow by the implicit integrator the default is 1e-2",
    )
    cutoff: float | None = Field(
        None,
        gt=0,
        le=0.1,
        description="threshold C_T of the weights teno and teno_adaptive, and of the hybrid scheme's sensor teno. "
        "Substencils with a smaller normalised weight are discarded. Absent: 1e-5",
    )
    positivity: Annotated[str, kernel_choice("positivity")] = Field(
        "limiter", description="method that keeps density and pressure positive at strong shocks"
    )
    inviscid: Literal["afweno", "split", "hybrid", "regularised"] = Field(
        "afweno",
        description="afweno: interpolated states everywhere; split: a form without dissipation that keeps the "
        "kinetic energy, for flow without shocks; hybrid: the split form, and AFWENO at shocks; "
        "regularised (experimental): linear fluxes without weights, and an entropic pressure that "
        "spreads shocks over several cells",
    )
    viscous_order: Literal[6, 8] = Field(
        6,
        description="order of the central differences of the viscous terms, and of gradients in monitors and averages; "
        "8 gives more damping of waves of two to four nodes and needs four ghost layers instead of three",
    )
    hybrid: Hybrid = Field(Hybrid(), description="where the hybrid scheme uses AFWENO")
    regularised: Regularised = Field(Regularised(), description="the entropic pressure of the regularised scheme")
    precision: Precision = Field(
        "fp64",
        description="fp64 or fp32: everything in this format. mixed: FP64, but metrics and work arrays are stored in "
        "FP32. differences: FP64 arithmetic; everything is stored in FP32, the state as its difference from a "
        "reference",
    )
    reference: State | None = Field(
        None,
        description='state from which the precision "differences" stores differences; absent: rho = 1 at rest, p '
        "= 1/gamma",
    )
    _complete = model_validator(mode="before")(complete_scheme)

    def stencil(self, filter_reach: int) -> Stencil:
        """Return the widths, in nodes, of the stencils of the scheme and of a filter. `filter_reach`: the number of
        nodes that the filter reads on each side, 0 without a filter."""
        return stencil(self.interpolation, filter_reach=filter_reach, viscous_reach=self.viscous_order // 2)

    def needed_fields(self, case: Any) -> Mapping[str, int]:
        """Return the fields (named arrays at the nodes) that every block of `case` must store for the inviscid scheme:
        a dictionary from the name to the number of arrays or components."""
        entropic = ("entropic_pressure", "entropic_iterate", "entropic_start", "entropic_source")
        fields, across = (kernels.trait("flux", self.flux, what, silent=0) for what in ("flux_fields", "reads_across"))
        return {
            "shock_sensor": int(self.inviscid == "hybrid"),
            "flux_fields": 0 if across else fields,
            "jumps_across": across,
            **dict.fromkeys(entropic, int(self.inviscid == "regularised")),
            **dict.fromkeys(("entropic_stress", "stress_limit"), int(self.regularised.stress == "compressive")),
        }


# Keys that the regularised scheme does not use.
OF_AFWENO = ("interpolation", "weights", "space", "flux", "flux_smoothing", "epsilon", "cutoff")


def scheme_errors(scheme: Scheme, is_viscous: bool) -> Iterator[PydanticCustomError]:
    """Yield an error for each key of the table [scheme] that does not fit the others: weights that the interpolation
    does not have, and keys that have no effect with the chosen weights or inviscid scheme, or in inviscid flow.
    `is_viscous`: whether there are viscous terms."""
    if scheme.viscous_order != Scheme.model_fields["viscous_order"].default and not is_viscous:
        yield case_error(
            "scheme.viscous_order has no effect without gas.reynolds; leave it out, or give a Reynolds number"
        )
    interpolation, weights = scheme.interpolation, scheme.weights
    suited = suited_weights(interpolation)
    if weights not in suited:
        yield case_error(
            f'scheme.weights = "{weights}" does not weigh the {weighted_nodes(interpolation)} nodes of '
            f'scheme.interpolation = "{interpolation}"; take one of {", ".join(suited)}, or another interpolation'
        )
    senses = scheme.inviscid == "hybrid" and sensor_has_cutoff(scheme.hybrid.sensor)
    if scheme.cutoff is not None and not has_cutoff(weights) and not senses:
        cutting = [name for name in kernels.choices("weights") if has_cutoff(name)]
        sensors = [name for name in kernels.choices("sensor") if sensor_has_cutoff(name)]
        yield case_error(
            f'scheme.cutoff: scheme.weights = "{weights}" has no cut-off; leave it out, or take {" or ".join(cutting)}'
            f", or the hybrid scheme with the sensor {' or '.join(sensors)}"
        )
    hybrid = scheme.hybrid
    if hybrid.least > 1 and kernels.trait("sensor", hybrid.sensor, "sensor_is_share", silent=0):
        yield case_error(
            f'scheme.hybrid.threshold = {hybrid.least:g} is never reached by the sensor "{hybrid.sensor}", which is at '
            "most 1; take a smaller one"
        )
    for inviscid, table in (("hybrid", Hybrid()), ("regularised", Regularised())):
        changed = [name for name, value in table if getattr(getattr(scheme, inviscid), name) != value]
        if scheme.inviscid != inviscid and changed:
            yield case_error(
                f'scheme.{inviscid}.{changed[0]} has no effect without scheme.inviscid = "{inviscid}"; leave it out, '
                "or take that"
            )
    if scheme.inviscid == "regularised":
        given = [name for name in OF_AFWENO if getattr(scheme, name) != Scheme.model_fields[name].default]
        if given:
            yield case_error(
                f'scheme.{given[0]} has no effect with scheme.inviscid = "regularised", whose fluxes are linear; '
                f"leave it out (default {Scheme.model_fields[given[0]].default}), or take another scheme.inviscid"
            )
        if scheme.positivity == "fallback":
            yield case_error(
                'scheme.positivity = "fallback" replaces interpolated states, of which scheme.inviscid = "regularised" '
                'has none; take "limiter" or "none"'
            )
