"""The `[turbulence]` table: the eddy viscosity of scales that the grid does not resolve."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import PydanticCustomError

from hiresx import kernels
from hiresx.case.model import Positive, Table, case_error, kernel_choice
from hiresx.case.scalars import Scalar, ScalarValue
from hiresx.equations.diffusivity import TRANSPORTED_SCHMIDT
from hiresx.equations.storage import STORAGE
from hiresx.equations.system import transported_names

# The choice without a model.
NONE = "none"
# Kernels of conditions through which gas may enter.
_OPEN = ("prescribe", "characteristic", "total_inflow", "precursor", "outflow")


class Turbulence(Table):
    """Large-eddy simulation: an eddy viscosity mu_t, made of the velocity gradient, the density and the width of the
    filter, is added to the viscosity of stresses, heat flux and passive scalars. The width is the cube root of the
    cell's volume, in two dimensions the square root of its area. The models are the files of `kernels/turbulence/`.
    Output has mu_t / mu_ref of the last stage as the variable `eddy_viscosity`; `kinetic_energy` has what the model
    dissipates.

    The models of Spalart and Allmaras are for averaged flow (RANS): they transport the variable `nu_tilde`, over
    mu_ref / rho_ref, which is 0 at no-slip walls, and know the distance to the nearest wall, `wall_distance`. With
    `detached_eddies` they average only near walls, and the grid resolves eddies elsewhere (detached-eddy simulation,
    `kernels/detached_eddies/`): a shorter length takes the place of the distance. Output may have its quotient by the
    distance, `length_ratio`, and the `resolved_share`, f_d."""

    model: Annotated[str, kernel_choice("turbulence")] = Field(
        NONE,
        description="none: small scales are resolved or left to the scheme; smagorinsky; or wale, vreman or sigma, "
        "which vanish in pure shear; sigma also in every two-dimensional flow; or dynamic_smagorinsky, which takes its "
        "constant from the flow; or spalart_allmaras, or its form spalart_allmaras_negative, of averaged flow",
    )
    detached_eddies: Annotated[str, kernel_choice("detached_eddies")] = Field(
        NONE,
        description="of the models of Spalart and Allmaras, in three dimensions: none: averaged flow; ddes: delayed "
        "detached-eddy simulation, whose boundary layers stay averaged; or iddes, which resolves those that turbulence "
        "enters, above a modelled layer at the wall",
    )
    constant: Positive | None = Field(
        None,
        description="C of the model, squared except in vreman; absent: as published, "
        "smagorinsky 0.17, wale 0.5, vreman 0.07, sigma 1.35; of detached_eddies C_DES, 0.65",
    )
    prandtl: Positive = Field(0.9, description="turbulent Prandtl number: the heat flux is that of mu_t / prandtl")
    schmidt: Positive = Field(0.7, description="turbulent Schmidt number of passive scalars")

    far_field: Annotated[float, Field(ge=0)] = Field(
        3.0, description="nu_tilde of what enters, over mu_ref / rho_ref, of spalart_allmaras: 3 to 5 in turbulent flow"
    )
    initial: ScalarValue | None = Field(
        None,
        description="nu_tilde at the start: a number, or a function of case.py as for a scalar; absent: far_field",
    )
    ft2: bool | None = Field(
        None,
        description="whether the term ft2 of spalart_allmaras keeps laminar flow laminar; absent: false, and true of "
        "the negative form, which is published with it",
    )

    @property
    def transported(self) -> int:
        """The number of variables that the model transports."""
        return len(transported_names(self.model))

    @property
    def has_ft2(self) -> bool:
        """Whether a model that transports a variable has the term ft2."""
        usual = bool(kernels.trait("turbulence", self.model, "transported_goes_negative", silent=0))
        return bool(self.transported) and (usual if self.ft2 is None else self.ft2)

    @property
    def spacings(self) -> int:
        """How many spacings of the grid the length of a detached-eddy model is made of; 0 without one."""
        return kernels.trait("detached_eddies", self.detached_eddies, "spacings") if self.transported else 0

    @property
    def dynamic(self) -> bool:
        """Whether the model takes its coefficient from the flow."""
        return bool(kernels.trait("turbulence", self.model, "eddy_coefficients", silent=0))

    @property
    def taken_constant(self) -> float:
        """The constant of the model. Raises ValueError without a model."""
        known = ("turbulence", self.model, "usual_constant")
        if self.spacings:
            known = ("detached_eddies", self.detached_eddies, "usual_des_constant")
        usual = kernels.fractions(*known)
        return usual[0] if self.constant is None else self.constant


def transported_scalars(turbulence: Turbulence) -> tuple[Scalar, ...]:
    """The variables that the turbulence model transports, as scalars of the gas; none for other models."""
    initial = turbulence.far_field if turbulence.initial is None else turbulence.initial
    return tuple(
        Scalar.model_construct(name=name, schmidt=TRANSPORTED_SCHMIDT, initial=initial)
        for name in transported_names(turbulence.model)
    )


def transported_values(case: Any, condition: Any) -> dict[str, float]:
    """Return what a boundary condition gives the variables that the model transports: 0 on walls, the value of the far
    field where gas may enter, and nothing on planes of symmetry and between blocks."""
    value = {"no_slip": 0.0} | dict.fromkeys(_OPEN, case.turbulence.far_field)
    if condition.kernel not in value:
        return {}
    return {name: value[condition.kernel] for name in transported_names(case.turbulence.model)}


def turbulence_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield the errors in the choice of a model."""
    model = case.turbulence.model
    yield from _transported_errors(case)
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


def _transported_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield the errors in what belongs to models that transport a variable."""
    given = case.turbulence
    if not given.transported:
        for key in ("detached_eddies", "far_field", "initial", "ft2"):
            if getattr(given, key) != Turbulence.model_fields[key].default:
                yield case_error(f'turbulence.{key} is of no effect without turbulence.model = "spalart_allmaras"')
        return
    asked = f'turbulence.model = "{given.model}"'
    negative = bool(kernels.trait("turbulence", given.model, "transported_goes_negative", silent=0))
    if not negative and isinstance(given.initial, float) and given.initial < 0:
        yield case_error(
            f"turbulence.initial = {given.initial:g}: nu_tilde of {asked} is not negative; give 0 or more, or take "
            '"spalart_allmaras_negative"'
        )
    if given.constant is not None and not given.spacings:
        yield case_error(f"{asked} has published constants alone: leave turbulence.constant out")
    if all(condition.kernel != "no_slip" for condition in case.boundary):
        yield case_error(
            f'{asked} needs the distance to walls: give a [[boundary]] with type = "no-slip-wall", or leave it out'
        )
    if any(condition.kernel == "modelled_wall" for condition in case.boundary):
        yield case_error(
            f'{asked} resolves walls: take type = "no-slip-wall" instead of "modelled-wall", or another model'
        )
    if case.scheme.inviscid != "afweno":
        yield case_error(
            f'scheme.inviscid = "{case.scheme.inviscid}" does not carry the variable of {asked}; take "afweno"'
        )
    if STORAGE[case.scheme.precision].carries:
        yield case_error(
            f'scheme.precision = "differences" does not carry the variable of {asked}; take "mixed" or "fp64"'
        )
