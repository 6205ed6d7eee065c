"""The `[turbulence]` table: the eddy viscosity of scales that the grid does not resolve."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import PydanticCustomError

from hiresx import kernels
from hiresx.case.model import Positive, Table, case_error, kernel_choice

# The choice without a model.
NONE = "none"


class Turbulence(Table):
    """Large-eddy simulation: an eddy viscosity mu_t, made of the velocity gradient, the density and the width of the
    filter, is added to the viscosity of stresses, heat flux and passive scalars. The width is the cube root of the
    cell's volume, in two dimensions the square root of its area. The models are the files of `kernels/turbulence/`.
    Output has mu_t / mu_ref of the last stage as the variable `eddy_viscosity`; `kinetic_energy` has what the model
    dissipates."""

    model: Annotated[str, kernel_choice("turbulence")] = Field(
        NONE,
        description="none: small scales are resolved or left to the scheme; smagorinsky; or wale, vreman or sigma, "
        "which vanish in pure shear; sigma also in every two-dimensional flow; or dynamic_smagorinsky, which takes its "
        "constant from the flow",
    )
    constant: Positive | None = Field(
        None,
        description="C of the model: of vreman as it stands, of the others it is squared; absent: as published, "
        "smagorinsky 0.17, wale 0.5, vreman 0.07, sigma 1.35",
    )
    prandtl: Positive = Field(0.9, description="turbulent Prandtl number: the heat flux is that of mu_t / prandtl")
    schmidt: Positive = Field(0.7, description="turbulent Schmidt number of passive scalars")

    @property
    def dynamic(self) -> bool:
        """Whether the model takes its coefficient from the flow."""
        return bool(kernels.trait("turbulence", self.model, "eddy_coefficients", silent=0))

    @property
    def taken_constant(self) -> float:
        """The constant of the model. Raises ValueError without a model."""
        usual = kernels.fractions("turbulence", self.model, "usual_constant")
        return usual[0] if self.constant is None else self.constant


def turbulence_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield the errors in the choice of a model."""
    model = case.turbulence.model
    if model == NONE:
        if case.turbulence.constant is not None:
            yield case_error(
                "turbulence.constant is of no effect without turbulence.model; leave it out, or give a model"
            )
        return
    asked = f'turbulence.model = "{model}"'
    if case.turbulence.dynamic and case.turbulence.constant is not None:
        yield case_error(f"{asked} takes its constant from the flow: leave turbulence.constant out")
    if case.gas.reynolds is None:
        yield case_error(f"{asked} needs the viscous terms that it acts in: give gas.reynolds, or leave the model out")
    if case.axisymmetric:
        yield case_error(f"{asked} is not there for axisymmetric flow; leave the model out")
