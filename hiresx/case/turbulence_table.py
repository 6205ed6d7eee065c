"""The `[turbulence]` table: turbulence models, which give an eddy viscosity for the scales that the grid does not
resolve."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import PydanticCustomError

from hiresx import kernels
from hiresx.case.model import Positive, Table, case_error, kernel_choice
from hiresx.case.scalars import Scalar, ScalarValue
from hiresx.equations.diffusivity import transported_schmidt
from hiresx.equations.storage import STORAGE
from hiresx.equations.system import transported_names

# The choice without a model, and the models that transport variables, with the names of these.
NONE = "none"
SST = "sst"
SPALART_ALLMARAS = ("spalart_allmaras", "spalart_allmaras_negative")
# Keys that only some of the transport models have, with these models.
_KEYS = {
    "detached_eddies": SPALART_ALLMARAS,
    "far_field": SPALART_ALLMARAS,
    "ft2": SPALART_ALLMARAS,
    "initial": (*SPALART_ALLMARAS, SST),
    "far_field_k": (SST,),
    "far_field_omega": (SST,),
}
# Kernels of boundary conditions through which gas may enter.
_OPEN = ("prescribe", "characteristic", "total_inflow", "precursor", "outflow")


class Turbulence(Table):
    """Large-eddy simulation: an eddy viscosity mu_t is added to the viscosity in stresses, heat flux and the fluxes of
    passive scalars. It is computed from the velocity gradient, the density and the width of the filter. The width is
    the cube root of the cell's volume, in two dimensions the square root of its area. The models are the files of
    `kernels/turbulence/`. The output variable `eddy_viscosity` is mu_t / mu_ref of the last stage; `kinetic_energy` has
    the dissipation by the model.

    The models of Spalart and Allmaras are for averaged flow (RANS). They transport the variable `nu_tilde`, in mu_ref /
    rho_ref, which is 0 at no-slip walls, and use the distance to the nearest wall, `wall_distance`. With
    `detached_eddies` the flow is averaged only near walls, and the grid resolves eddies elsewhere (detached-eddy
    simulation, `kernels/detached_eddies/`): a shorter length replaces the distance. The output variable `length_ratio`
    is the ratio of this length to the distance, and `resolved_share` is f_d.

    Menter's model `sst` of averaged flow transports `turbulent_k`, the kinetic energy of turbulence in 10^-6 c_ref^2,
    and `turbulent_g`, which is 1/sqrt(omega) with omega in 10^-6 rho_ref c_ref^2 / mu_ref. Both are 0 at no-slip walls.
    `eddy_viscosity` is rho turbulent_k turbulent_g^2, unless the shear limits it.
    """

    model: Annotated[str, kernel_choice("turbulence")] = Field(
        NONE,
        description="none: small scales are resolved, or left to the scheme. Large-eddy simulation: smagorinsky; wale, "
        "vreman and sigma, which vanish in pure shear (sigma in every two-dimensional flow, too); "
        "dynamic_smagorinsky, which computes its constant from the flow. Averaged flow: spalart_allmaras, its form "
        "spalart_allmaras_negative, and sst",
    )
    detached_eddies: Annotated[str, kernel_choice("detached_eddies")] = Field(
        NONE,
        description="for the models of Spalart and Allmaras in three dimensions. none: averaged flow. ddes: delayed "
        "detached-eddy simulation, in which boundary layers are modelled. iddes: boundary layers with turbulent "
        "inflow are resolved, except for a modelled layer at the wall",
    )
    constant: Positive | None = Field(
        None,
        description="constant C of the model; vreman uses C, the others C^2; absent: the published one, "
        "smagorinsky 0.17, wale 0.5, vreman 0.07, sigma 1.35. With detached_eddies it is C_DES; "
        "absent: 0.65",
    )
    prandtl: Positive = Field(0.9, description="turbulent Prandtl number, by which mu_t is divided in the heat flux")
    schmidt: Positive = Field(0.7, description="turbulent Schmidt number of passive scalars")

    far_field: Annotated[float, Field(ge=0)] = Field(
        3.0,
        description="for spalart_allmaras: nu_tilde of the gas that enters, over mu_ref / rho_ref; 3 to 5 in "
        "turbulent flow",
    )
    far_field_k: Annotated[float, Field(ge=0)] = Field(
        0.009, description="for sst: k of the gas that enters, in 10^-6 c_ref^2; it is 1.5 (intensity x velocity)^2"
    )
    far_field_omega: Positive = Field(
        1.0,
        description="for sst: omega of the gas that enters, in 10^-6 rho_ref c_ref^2 / mu_ref; mu_t / mu_ref is "
        "far_field_k / far_field_omega",
    )
    initial: ScalarValue | dict[str, ScalarValue] | None = Field(
        None,
        description="nu_tilde at the start: a number, or a function of case.py as for a scalar; absent: far_field. For "
        "sst: a table with turbulent_k and turbulent_g",
    )
    ft2: bool | None = Field(
        None,
        description="whether spalart_allmaras has the term ft2, which keeps laminar flow laminar; absent: false, but "
        "true for the negative form, which was published with it",
    )

    def needed_fields(self, case: Any) -> Mapping[str, int]:
        """Return the fields (named arrays at the nodes) that every block of `case` must store for the turbulence model:
        a dictionary from the name in hiresx/device/fields.py to the number of arrays or components."""
        found = {"eddy_viscosity": kernels.trait("turbulence", self.model, "eddy_fields")}
        found |= dict.fromkeys(("strain", "products", "eddy_coefficient"), int(self.dynamic))
        found |= {"transported_source": self.transported, "transported_reach": int(self.is_damped)}
        found |= {"wall_distance": int(self.transported > 0 or case.output.writes("wall_distance"))}
        found |= {"grid_spacings": self.spacings}
        written = ("length_ratio", "resolved_share") if self.spacings else ()
        return found | {name: int(case.output.writes(name)) for name in written}

    @property
    def transported(self) -> int:
        """Number of variables for which the turbulence model solves transport equations."""
        return len(transported_names(self.model))

    @property
    def sizes(self) -> tuple[float, ...]:
        """Typical magnitudes of the variables that the turbulence model transports, in turbulent layers and in the
        units of these variables; empty for models without such variables."""
        return kernels.fractions("turbulence", self.model, "transported_sizes") if self.transported else ()

    @property
    def entering(self) -> tuple[float, ...]:
        """Values, in gas that enters the domain, of the variables that the turbulence model transports: `nu_tilde`, or
        `turbulent_k` and `turbulent_g`, in the units of these variables."""
        if self.model == SST:
            return self.far_field_k, self.far_field_omega**-0.5
        return (self.far_field,) * self.transported

    @property
    def is_damped(self) -> bool:
        """Whether oscillations from node to node are damped in the variables that the turbulence model transports."""
        return bool(kernels.trait("turbulence", self.model, "transported_is_damped", silent=0))

    @property
    def is_bounded(self) -> bool:
        """Whether a pseudo-time step towards steady flow limits the decrease of the variables that the turbulence model
        transports."""
        return bool(kernels.trait("turbulence", self.model, "transported_is_bounded", silent=0))

    @property
    def has_ft2(self) -> bool:
        """Whether the model is one of Spalart and Allmaras and contains the term ft2, which keeps laminar flow
        laminar."""
        usual = bool(kernels.trait("turbulence", self.model, "transported_goes_negative", silent=0))
        return self.model in SPALART_ALLMARAS and (usual if self.ft2 is None else self.ft2)

    @property
    def spacings(self) -> int:
        """Number of arrays of grid spacings at the nodes from which a detached-eddy model computes its length scale; 0
        without such a model."""
        has_length = kernels.trait("turbulence", self.model, "transported_has_length", silent=0)
        return kernels.trait("detached_eddies", self.detached_eddies, "spacings") if has_length else 0

    @property
    def dynamic(self) -> bool:
        """Whether the coefficient of the model is computed from the flow (a dynamic model)."""
        return bool(kernels.trait("turbulence", self.model, "eddy_coefficients", silent=0))

    @property
    def taken_constant(self) -> float:
        """The constant of the turbulence model: `constant` of the case or, if absent, the published default of the
        model. Raises ValueError if there is no model."""
        known = ("turbulence", self.model, "usual_constant")
        if self.spacings:
            known = ("detached_eddies", self.detached_eddies, "usual_des_constant")
        usual = kernels.fractions(*known)
        return usual[0] if self.constant is None else self.constant


def transported_scalars(turbulence: Turbulence) -> tuple[Scalar, ...]:
    """Return the variables for which the turbulence model solves transport equations, as scalars that the gas
    transports. The tuple is empty for models without such variables."""
    names, model = transported_names(turbulence.model), turbulence.model
    initial: dict[str, ScalarValue] = dict(zip(names, turbulence.entering, strict=True))
    if isinstance(turbulence.initial, dict):
        initial |= {name: value for name, value in turbulence.initial.items() if name in names}
    elif turbulence.initial is not None:
        initial = dict.fromkeys(names, turbulence.initial)
    return tuple(
        Scalar.model_construct(name=name, schmidt=schmidt, initial=initial[name])
        for name, schmidt in zip(names, transported_schmidt(model), strict=True)
    )


def transported_values(case: Any, condition: Any) -> dict[str, float]:
    """Return the values that the boundary condition `condition` prescribes for the variables that the turbulence model
    transports, by name: 0 at no-slip walls, and the far-field value where gas may enter. The dictionary is empty for
    all other conditions."""
    given = case.turbulence
    value = {"no_slip": (0.0,) * given.transported} | dict.fromkeys(_OPEN, given.entering)
    if condition.kernel not in value:
        return {}
    return dict(zip(transported_names(given.model), value[condition.kernel], strict=True))


def turbulence_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield an error for each key of the table [turbulence] of `case` that is invalid, has no effect, or is not
    supported by the case."""
    model = case.turbulence.model
    yield from _transported_errors(case)
    if model == NONE:
        if case.turbulence.constant is not None:
            yield case_error(
                "turbulence.constant has no effect without turbulence.model; leave it out, or give a model"
            )
        return
    asked = f'turbulence.model = "{model}"'
    if case.turbulence.dynamic and case.turbulence.constant is not None:
        yield case_error(f"{asked} takes its constant from the flow: leave turbulence.constant out")
    if case.gas.reynolds is None:
        yield case_error(f"{asked} needs the viscous terms that it acts in: give gas.reynolds, or leave the model out")
    if case.axisymmetric:
        yield case_error(f"{asked} is not supported in axisymmetric flow; leave the model out")


def _initial_errors(given: Turbulence) -> Iterator[PydanticCustomError]:
    """Yield the errors in the values at the start of a model that transports variables."""
    asked, names = f'turbulence.model = "{given.model}"', transported_names(given.model)
    if given.model != SST:
        negative = bool(kernels.trait("turbulence", given.model, "transported_goes_negative", silent=0))
        if isinstance(given.initial, dict):
            yield case_error(f"turbulence.initial: {asked} has one variable; give a number or the name of a function")
        elif not negative and isinstance(given.initial, float) and given.initial < 0:
            yield case_error(
                f"turbulence.initial = {given.initial:g}: nu_tilde of {asked} is not negative; give 0 or more, or take "
                '"spalart_allmaras_negative"'
            )
        return
    wanted = f"give a table of {' and '.join(names)}"
    if not isinstance(given.initial, dict):
        if given.initial is not None:
            yield case_error(f"turbulence.initial: {asked} has the variables {' and '.join(names)}; {wanted}")
        return
    for name, value in given.initial.items():
        if name not in names:
            yield case_error(f'turbulence.initial: {asked} has no variable "{name}"; {wanted}')
        elif isinstance(value, float) and (value < 0 or (name == names[-1] and value == 0)):
            least = "above 0" if name == names[-1] else "0 or more"
            yield case_error(f"turbulence.initial.{name} = {value:g}: {asked} is not defined there; give {least}")


def _transported_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield the errors in the keys of models that transport variables."""
    given = case.turbulence
    for key, models in _KEYS.items():
        if given.model not in models and getattr(given, key) != Turbulence.model_fields[key].default:
            yield case_error(f'turbulence.{key} has no effect without turbulence.model = "{models[0]}"')
    if not given.transported:
        return
    asked = f'turbulence.model = "{given.model}"'
    yield from _initial_errors(given)
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
            f'scheme.inviscid = "{case.scheme.inviscid}" does not carry the variables of {asked}; take "afweno"'
        )
    if STORAGE[case.scheme.precision].carries:
        yield case_error(
            f'scheme.precision = "differences" does not carry the variables of {asked}; take "mixed" or "fp64"'
        )
