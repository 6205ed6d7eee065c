"""The case: every table and key of a case file, with its scale, default and constraints.

Reference values are the density and sound speed of the ambient gas (or of the free stream), rho_ref and c_ref, and the
length L. Pressure is p / (rho_ref c_ref^2), so the ambient pressure is 1/gamma. Temperature is gamma p / rho, so the
ambient temperature is 1. Time is t c_ref / L.
"""

import math
import typing
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, ValidationError, ValidationInfo, model_validator
from pydantic_core import PydanticUndefined

from hiresx.case import functions
from hiresx.case.body_force_table import BodyForce, body_force_errors
from hiresx.case.boundaries import Boundary, modelled_wall_errors
from hiresx.case.error_messages import Origin, describe_validation_error
from hiresx.case.face_formulas import face_value_errors
from hiresx.case.far_field_vortex import vortex_errors
from hiresx.case.filter import Filter
from hiresx.case.grids import GridTable
from hiresx.case.implicit_table import NAME as IMPLICIT
from hiresx.case.implicit_table import Implicit, first_cfl, implicit_errors, times_of
from hiresx.case.intervals import interval_errors
from hiresx.case.kinds import default_of
from hiresx.case.local_steps import local_step_errors
from hiresx.case.model import Listed, Points, Positive, State, Table, case_error, choice, fields_of_tables, integrators
from hiresx.case.monitors import (
    RESIDUAL,
    Average,
    Conservation,
    Extrema,
    Force,
    KineticEnergy,
    Monitor,
    Probe,
    SampledTable,
)
from hiresx.case.named_scheme import complete_case, named_scheme_errors, with_no_filter
from hiresx.case.outputs import Checkpoint, Output
from hiresx.case.positions import Position
from hiresx.case.refine import Refine, refine_errors
from hiresx.case.relations import resolve_relations, texts_back
from hiresx.case.scalars import Scalar, ScalarName, scalar_errors
from hiresx.case.scheme import Scheme, scheme_errors
from hiresx.case.source_table import Source, source_errors
from hiresx.case.surfaces import Surface, surface_errors
from hiresx.case.synthetic_turbulence import synthetic_turbulence_errors
from hiresx.case.turbulence_table import Turbulence, transported_scalars, turbulence_errors
from hiresx.case.viscosity import ConstantViscosity, Viscosity
from hiresx.case.wave_sums import at
from hiresx.equations.stencil import Stencil
from hiresx.equations.storage import STORAGE


class Gas(Table):
    """Calorically perfect gas."""

    gamma: float = Field(1.4, gt=1, description="ratio of specific heats")
    prandtl: Positive = Field(0.72, description="Prandtl number")
    reynolds: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=True,
        description="rho_ref c_ref L / mu_ref, with the sound speed (Re = U L / nu divided by the Mach number); "
        "absent or inf: inviscid",
    )
    viscosity: Viscosity = Field(ConstantViscosity(), description="viscosity law")

    @model_validator(mode="before")
    @classmethod
    def _infinite_reynolds_is_inviscid(cls, data: Any) -> Any:
        # A preset or --set cannot remove a key: the value inf selects the inviscid equations.
        if isinstance(data, Mapping) and data.get("reynolds") == math.inf:
            return {**data, "reynolds": None}
        return data


# The upper bound is above all CFL numbers that integrators accept, the implicit ones included. Below the lower bound a
# sound wave would take 10^9 steps to cross a cell.
Courant = Annotated[float, Field(ge=1e-9, le=1e6)]


class Time(Table):
    """Time integration: by what scheme, how long, and with what step."""

    integrator: Annotated[str, choice(integrators)] = Field(
        "ssp_rk3",
        description="names with rk: explicit Runge-Kutta schemes; the positivity limiter guarantees positive "
        "states with ssp_rk3 only; implicit: Newton's method for steady flow, with local steps; "
        "bdf2, esdirk3, esdirk4: implicit time steps",
    )
    end: Positive | None = Field(None, description="time to stop at, in L / c_ref")
    steps: Points | None = Field(None, description="steps to stop after; the first of end and steps ends the run")
    dt: Positive | None = Field(None, description="constant time step, in L / c_ref")
    cfl: Courant | None = Field(
        None,
        description="inviscid CFL number that sets the step; for the integrator implicit it is the initial one."
        " Default without dt: 0.5, implicit 2, bdf2 and esdirk 10",
    )
    viscous_cfl: Courant = Field(0.5, description="viscous CFL number that limits the step, used with cfl")
    local: bool = Field(False, description="each node has its own largest time step: for steady flow only; needs cfl")
    wall_limit: Positive | None = Field(
        None,
        description="wall-clock seconds, start-up included, within which the run ends. It writes a checkpoint and "
        "stops when another step and a checkpoint might no longer fit",
    )
    retries: Annotated[int, Field(ge=0)] = Field(
        0, description="number of times that a failed run returns to its last valid checkpoint, with smaller steps"
    )
    retry_factor: float = Field(
        0.5, gt=0, lt=1, description="factor by which dt, or both CFL numbers, are multiplied each time the run returns"
    )

    @model_validator(mode="before")
    @classmethod
    def _default_cfl(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        implicit = times_of(data)
        given = {key: value for key, value in data.items() if value is not None or key not in implicit}
        if data.get("dt") is None and data.get("cfl") is None:
            given["cfl"] = first_cfl(data)
        return {**implicit, **given}

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.end is None and self.steps is None:
            raise case_error("time needs end, steps or both")
        if self.dt is not None and self.cfl is not None:
            raise case_error("time takes either dt or cfl, not both")
        if self.integrator == IMPLICIT and not (self.dt is None and self.end is None):
            raise case_error(
                f'time.{"end" if self.dt is None else "dt"} is not for time.integrator = "{IMPLICIT}", whose '
                "steps have no time: give time.cfl and time.steps, or leave them out"
            )
        if self.integrator == IMPLICIT and not self.local:
            raise case_error(f'time.local = false is not for time.integrator = "{IMPLICIT}": leave it out')
        if self.local and self.cfl is None:
            raise case_error("time.local needs cfl, not dt")
        if self.local and self.steps is None:
            raise case_error("with time.local nodes have no common time: give time.steps")
        return self


def _one_of_state_and_function(table: Any) -> Any:
    if (table.state is None) == (table.function is None):
        raise case_error("takes exactly one of state and function")
    return table


class Initial(Table):
    """Initial flow: a uniform state or a function of case.py."""

    state: State | None = Field(None, description="uniform state")
    function: str | None = Field(
        None, description="function of case.py: f(x, y, z, *, <parameters>) -> (rho, u, v, w, p)"
    )
    _one = model_validator(mode="after")(_one_of_state_and_function)


class Sponge(Table):
    """Layer in which the flow is forced towards a given state by the source term -sigma (Q - Q_state).

    sigma = strength * s^power with s = (c - start) / (end - start) clipped to [0, 1]. A sponge is refused if it has no
    node between start and end, starts outside the grid, or is thicker than the grid. It is also refused if `end` lies
    on the wrong side of `start`, so that more nodes lie behind its end than before its start.
    """

    axis: Literal["x", "y", "z", "r"] = Field(
        description="the coordinate c along which the sponge grows; r: the distance from the x axis"
    )
    start: float | Position = Field(
        description='coordinate at which sigma is 0, in L, or the place of a part of the grid: { region = "outlet", '
        "offset = -12.0 }"
    )
    end: float | Position = Field(
        description="coordinate at which sigma has its full strength, in L, or the place of a part of the grid: {"
        ' region = "outlet" }; may lie below start'
    )
    strength: Positive = Field(description="full sigma, in c_ref / L")
    power: Positive = Field(2.0, description="exponent of the growth of sigma")
    state: State | None = Field(None, description="uniform state towards which the flow is forced")
    function: str | None = Field(
        None, description="function of case.py: f(x, y, z, *, <parameters>) -> (rho, u, v, w, p)"
    )
    blocks: Annotated[tuple[str, ...], Listed] | None = Field(None, description="names of blocks; absent: every block")
    scalars: dict[ScalarName, float] = Field(
        {}, description="passive scalars that are forced towards a value; others are not changed"
    )
    _one = model_validator(mode="after")(_one_of_state_and_function)

    @model_validator(mode="after")
    def _thick(self) -> Self:
        if self.start == self.end:
            raise case_error("start and end of a sponge must differ")
        return self


Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]


class Case(Table):
    """A complete case. `model_dump()` returns the resolved case: every default is written.

    A case is made by `hiresx.case.load`, `Case.from_dict` or keyword arguments; tables may be dictionaries. Raises
    HiresxError that lists every error with its dotted key.
    """

    title: str = Field("", description="title of the case, on one line")
    description: str = Field("", description="physics, scales, cost, the commands that run and plot it")
    length_symbol: str = Field(
        "L",
        pattern=r"^[A-Za-z]{1,12}(_[A-Za-z0-9]{1,12})?$",
        description='symbol of the length L in pictures: "h" of a nozzle\'s height, "D" of a diameter, "chord"',
    )
    parameters: dict[Name, bool | int | float | str] = Field(
        {}, description="values for functions of case.py, which get them as keyword-only arguments of the same name"
    )
    alternatives: Annotated[tuple[Annotated[tuple[Name, ...], Listed, Field(min_length=2)], ...], Listed] = Field(
        (),
        description="groups of parameters that are alternatives for the same quantity. A case gives one of each group; "
        "a preset or --set that gives another one removes it. The function derived of case.py computes the others",
    )
    gas: Gas = Field(Gas(), description="the gas")
    turbulence: Turbulence = Field(Turbulence(), description="model of unresolved turbulence")
    grid: GridTable = Field(description="the grid: a generator or a file")
    axisymmetric: bool = Field(
        False,
        description="the plane x-y is revolved about the x axis: y is the radius, w the swirl. Forces, fluxes and "
        "integrals are over the whole body of revolution; their y is the integral of the radial component, z that "
        'of the component along the swirl. Nodes on y = 0 need the condition "axis"',
    )
    scheme: Scheme = Field(Scheme(), description="space discretisation")
    filter: Filter | None = Field(None, description="explicit filter of the flow after time steps")
    implicit: Implicit = Field(Implicit(), description="how the implicit integrator iterates")
    plan: Literal["auto", "pencils", "fused", "decomposed", "compact"] = Field(
        "auto",
        description="order in which kernels visit the points. pencils is for CPUs, fused for GPUs; decomposed is that "
        "of Ye et al. (2022). compact is slower and takes least memory: 29 reals a point in viscous flow, fused 37. "
        "auto: the backend's default, or compact if a GPU has too little memory. Results differ by round-off",
    )
    time: Time = Field(description="time integration")
    initial: Initial = Field(Initial(function="initial"), description="initial flow")
    boundary: Annotated[tuple[Boundary, ...], Listed] = Field((), description="boundary conditions")
    refine: Refine | None = Field(None, description="regions of finer levels; absent: the grid alone")
    sponge: Annotated[tuple[Sponge, ...], Listed] = Field((), description="sponge layers")
    body_force: BodyForce | None = Field(None, description="acceleration of the gas; absent: none")
    source: Source | None = Field(None, description="sources of the conserved variables; absent: none")
    scalar: Annotated[tuple[Scalar, ...], Listed] = Field((), description="passive scalars")
    output: Output = Field(Output(), description="fields to write")
    checkpoint: Checkpoint = Field(Checkpoint(), description="checkpoints to keep")
    monitor: Monitor = Field(Monitor(), description="residuals to record")
    monitors: Annotated[tuple[Name, ...], Listed] = Field(
        (),
        description="functions of case.py that record numbers during the run: f(simulation, *, <parameters>) -> {name: "
        "number}. They are called every monitor.every steps; each has a history of its name",
    )
    probe: Annotated[tuple[Probe, ...], Listed] = Field((), description="the flow at places anywhere in the grid")
    force: Annotated[tuple[Force, ...], Listed] = Field((), description="forces on walls and heat into them")
    surface: Annotated[tuple[Surface, ...], Listed] = Field(
        (), description="surfaces on which the flow is recorded, for the far field"
    )
    extrema: Extrema | None = Field(None, description="least and largest values with their places")
    conservation: Conservation | None = Field(None, description="volume integrals and boundary fluxes")
    kinetic_energy: KineticEnergy | None = Field(None, description="kinetic energy and what changes it")
    average: Average | None = Field(None, description="time averages, Reynolds and Favre, with second moments")

    _directory: Path | None = PrivateAttr(None)
    _name: str = PrivateAttr("case")
    _preset: str | None = PrivateAttr(None)
    _formulas: dict[tuple[str | int, ...], str] = PrivateAttr(default_factory=dict)
    _derived: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _one_alternative(self) -> Self:
        for group in self.alternatives:
            if not any(name in self.parameters for name in group):
                raise case_error(f"parameters: give one of {', '.join(group)}")
        return self

    @model_validator(mode="after")
    def _own_histories(self) -> Self:
        named = [(f"monitors.{n}", name) for n, name in enumerate(self.monitors)]
        named += [(f"probe.{n}.name", probe.name) for n, probe in enumerate(self.probe)]
        named += [(f"force.{n}.name", force.name) for n, force in enumerate(self.force)]
        taken = {RESIDUAL: "every run"} | {n: f"[{n}]" for n in self.histories()}
        for place, name in named:
            if name in taken:
                raise case_error(f'{place} = "{name}": {taken[name]} has a history of that name; choose another')
            taken[name] = place
        if self.time.local and self.average is not None and self.average.start > 0:
            raise case_error("average.start: with time.local there is no common time; leave it out")
        return self

    @model_validator(mode="after")
    def _plane_or_axisymmetric(self) -> Self:
        for n, condition in enumerate(self.boundary):
            if condition.kernel == "axis" and not self.axisymmetric:
                raise case_error(f'boundary.{n} has type = "axis", which needs axisymmetric = true')
        if self.axisymmetric and self.kinetic_energy is not None:
            raise case_error("kinetic_energy: its rates are those of plane flow; leave it out with axisymmetric = true")
        if self.axisymmetric and self.scheme.inviscid == "regularised":
            raise case_error(
                'scheme.inviscid = "regularised": its entropic pressure is that of plane flow; take another with '
                "axisymmetric = true"
            )
        return self

    _named_scheme = model_validator(mode="before")(complete_case)

    @model_validator(mode="before")
    @classmethod
    def _scalars_written(cls, data: Any) -> Any:
        # If a case does not list its output variables, its scalars are written, too.
        if not isinstance(data, Mapping) or not isinstance(data.get("scalar"), list | tuple) or not data["scalar"]:
            return data
        output = data.get("output", {})
        if not isinstance(output, Mapping) or "variables" in output:
            return data
        names = [scalar.get("name") for scalar in data["scalar"] if isinstance(scalar, Mapping)]
        default = Output.model_fields["variables"].default
        return {**data, "output": {**output, "variables": [*default, *(n for n in names if isinstance(n, str))]}}

    @model_validator(mode="after")
    def _combinations_that_can_be(self) -> Self:
        errors = (
            *named_scheme_errors(self), *scalar_errors(self), *interval_errors(self, monitor_keys()),
            *scheme_errors(self.scheme, self.gas.reynolds is not None), *implicit_errors(self), *surface_errors(self),
            *turbulence_errors(self), *body_force_errors(self), *source_errors(self), *face_value_errors(self),
            *synthetic_turbulence_errors(self), *modelled_wall_errors(self), *refine_errors(self),
            *local_step_errors(self), *vortex_errors(self),
        )  # fmt: skip
        for found in errors:
            raise found
        return self

    @model_validator(mode="after")
    def _precision_that_can_be(self) -> Self:
        carries = STORAGE[self.scheme.precision].carries
        if self.scheme.reference is not None and not carries:
            raise case_error('scheme.reference needs scheme.precision = "differences"; leave it out')
        if self.scalar and carries:
            raise case_error(
                'scheme.precision = "differences" does not carry passive scalars; take "mixed", or leave [[scalar]] out'
            )
        return self

    @property
    def all_scalars(self) -> tuple[Scalar, ...]:
        """The scalars that the gas transports: the passive scalars, then the variables of a turbulence model."""
        return (*self.scalar, *transported_scalars(self.turbulence))

    @property
    def carried(self) -> tuple[Scalar, ...]:
        """Former name of `all_scalars`, kept for one version."""
        warnings.warn("Case.carried is all_scalars now", FutureWarning, stacklevel=2)
        return self.all_scalars

    @property
    def stencil(self) -> Stencil:
        """Widths, in nodes, of the stencils of the scheme and of the filter."""
        return self.scheme.stencil(0 if self.filter is None else self.filter.reach)

    @property
    def reference(self) -> State:
        """The uniform state that is subtracted from the flow if `scheme.precision` is "differences"."""
        return self.scheme.reference or State(rho=1.0, p=1.0 / self.gas.gamma)

    @model_validator(mode="after")
    def _checkpoints_that_can_be(self) -> Self:
        if self.time.retries and not self.checkpoint.keep:
            raise case_error("time.retries needs checkpoints to go back to: checkpoint.keep must not be 0")
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _explain_errors(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            origin = (info.context or {}).get("origin") or Origin("case")
            raise describe_validation_error(error, cls, origin) from None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], directory: str | Path | None = None, name: str = "case") -> "Case":
        """Return the case of `data`, nested dictionaries with the structure of a case file. `directory`: the folder of
        its case.py, to which paths in the case are relative. `name`: the name of the case. Raises HiresxError that
        lists every error with its dotted key."""
        folder = None if directory is None else Path(directory)
        found = resolve_relations(data, folder, name, lambda key: default_of(data, key, default))
        case = cls.model_validate(found.data)
        case._directory, case._name = folder, name
        case._formulas, case._derived = found.formulas, found.derived
        return case

    def needed_fields(self, case: Any = None) -> dict[str, int]:
        """Return the fields (named arrays at the nodes) that every block of this case must store: the number of arrays
        or components by the name in hiresx/device/fields.py. `case` is ignored."""
        return fields_of_tables(self, {"inverse_radius": int(self.axisymmetric)})

    def histories(self) -> list[str]:
        """Return the names of this case's tables that are monitors; each writes a history of the same name."""
        tables = {name: getattr(self, name) for name in monitor_keys()}
        return [name for name, table in tables.items() if table is not None and table.own_history]

    @property
    def directory(self) -> Path | None:
        """The folder of case.py, to which paths in the case are relative; None if the case has no folder."""
        return self._directory

    @property
    def name(self) -> str:
        """Name of the case: the name of its folder, or of its file if the file is not called case.toml."""
        return self._name

    @property
    def preset(self) -> str | None:
        """Name of the preset that was applied; several names are joined by hyphens. None without a preset."""
        return self._preset

    @property
    def derived(self) -> dict[str, Any]:
        """The parameters that the function `derived` of case.py computed, by name. `parameters` contains them, too."""
        return dict(self._derived)

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function `name` of case.py. Raises HiresxError if it is missing or case.py cannot be executed."""
        return functions.function(self._directory, name)

    def arguments(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return the values for the keyword-only arguments of `function`: entries of [parameters], and gamma, prandtl,
        reynolds of [gas]. Raises HiresxError for an argument without a default that is in neither table."""
        return functions.arguments(function, self.parameters, self.gas)

    def evaluate(
        self, function: str | Callable[..., Any], x: np.ndarray, y: np.ndarray, z: np.ndarray, t: float | None = None
    ) -> list[np.ndarray]:
        """Return rho, u, v, w, p, float64 arrays of the shape of `x`, as computed by `function`, a function or the name
        of one in case.py. `x`, `y`, `z`: the nodes, in L. `t`: the time, in L / c_ref; if it is None, the function is
        called without it. Raises HiresxError if the function fails or returns something else, and, with the first node,
        for a state that is not finite and for rho or p <= 0."""
        return at(functions.evaluate_profile(self, function, x, y, z, t), t or 0.0)

    def evaluate_scalar(
        self, name: str, function: str | Callable[..., Any], x: np.ndarray, y: np.ndarray, z: np.ndarray,
        t: float | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return the passive scalar `name`, a float64 array of the shape of `x`, as computed by `function`, a function
        or the name of one in case.py. `x`, `y`, `z`: the nodes, in L. `t`: the time, in L / c_ref; if None, it is not
        passed. Raises HiresxError if the function fails, or returns something else or a value that is not finite."""
        return at([functions.evaluate_scalar_profile(self, name, function, x, y, z, t)], t or 0.0)[0]

    def initial_scalars(self, x: np.ndarray, y: np.ndarray, z: np.ndarray, given: Any = None) -> dict[str, Any]:
        """Return the initial values of all transported scalars by name, each a number or an array of the shape of x.
        `x`, `y`, `z`: the nodes, in L. `given`: functions f(x, y, z, *, <parameters>) -> s that replace values of the
        case, by the names of scalars. Raises HiresxError if a function fails."""
        values = {s.name: (given or {}).get(s.name, s.initial) for s in self.all_scalars}
        return {n: v if isinstance(v, int | float) else self.evaluate_scalar(n, v, x, y, z) for n, v in values.items()}

    def to_toml(self) -> str:
        """Return the text of a case file of this case, with all defaults filled in (see `document`)."""
        from hiresx.case.toml import dumps

        return dumps(self.document())

    def document(self) -> dict[str, Any]:
        """Return this case, with defaults filled in, as nested dictionaries with the structure of a case file, which
        give the same case again. Numbers that formulas gave are replaced by these formulas."""
        return texts_back(with_no_filter(self.model_dump(mode="json")), self._formulas, list(self._derived))


def default(key: tuple[str | int, ...]) -> Any:
    """Return the default value of a key outside lists, or None if it has none. `key`: the path to it, such as ("time",
    "cfl"). Raises KeyError with the known keys for an unknown key."""
    model: Any = Case
    for depth, part in enumerate(key):
        if not (isinstance(model, type) and issubclass(model, Table)) or part not in model.model_fields:
            names = list(model.model_fields) if hasattr(model, "model_fields") else []
            raise KeyError([".".join(map(str, (*key[:depth], name))) for name in names])
        field = model.model_fields[part]
        model = field.annotation if isinstance(field.annotation, type) else None
    value = field.get_default(call_default_factory=True)
    return None if value is PydanticUndefined else value


def monitor_keys() -> list[str]:
    """Return the keys of `Case` for monitors with a single table, such as "average"."""
    kinds = {name: typing.get_args(field.annotation) for name, field in Case.model_fields.items()}
    return [
        name
        for name, members in kinds.items()
        if len(members) == 2 and members[1] is type(None) and issubclass(members[0], SampledTable)
    ]
