"""The fields of a block: all data of a run per node, each declared once.

Allocation, memory estimates, halo exchange and checkpoints follow from `FIELDS`.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Final, Literal

import numpy as np

from hiresx.equations import DIRECTIONS, GAS, METRICS, Equations
from hiresx.equations.storage import Storage, SweepPrecision, packed_reals
from hiresx.errors import HiresxError

# Those of the run's storage (hiresx.equations.storage), and "mark": true or false, in a byte.
Numbers = Literal["real", "stored", "work", "rate", "mark", "index"]
# The exchange that fills ghosts of connected faces from their donors: that of the state, that of the viscous fluxes
# (with an array for each direction of the grid), or a separate one after the term that computes the field
# (hiresx.rhs.terms). In the last case, ghosts of patched faces are interpolated and those of other faces repeat the
# nodes of the face, or mirror those within. "metrics": a separate exchange, once, after the metrics are computed.
Halo = Literal["state", "fluxes", "term", "metrics"]
# Of `Field.components`: as many as the run needs.
NEEDED: Final = "needed"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The fields that the blocks of a run have. Some fields exist in every run. `needed`: the fields that the plan, the
    integrator and the tables of the case add, each with its number of arrays or components (`Field`). `storage`: the
    number types. `equations`: the system of equations. `sweep_precision`: the number type of the inverses and updates
    of implicit sweeps.

    Raises KeyError for a field that `FIELDS` does not declare.
    """

    storage: Storage
    equations: Equations = GAS
    needed: Mapping[str, int] = dataclasses.field(default_factory=dict)
    sweep_precision: SweepPrecision = "fp64"

    def __post_init__(self) -> None:
        for name in self.needed:
            declared_field(name)

    @cached_property
    def arrays(self) -> dict[str, int]:
        """The number of arrays of each field, as a dictionary from its name. Fields that share the memory of another
        field are left out."""
        return {field.name: field.count(self) for field in FIELDS if field.lies_in is None}

    @property
    def local_steps(self) -> bool:
        """Whether every node has its own time step."""
        return self.needed.get("dt", 0) > 0

    @property
    def numbers_per_point(self) -> int:
        """Number of real numbers that a block stores per node, ghost nodes included. Integer marks of nodes are not
        counted."""
        return sum(count * field.variables(self) for field, count in self._per_point() if field.numbers != "mark")

    @property
    def bytes_per_point(self) -> int:
        """Number of bytes that a block stores per node, ghost nodes included."""
        return sum(count * field.variables(self) * field.size(self) for field, count in self._per_point())

    def has(self, name: str) -> bool:
        """Return whether the blocks of this run have the field `name`."""
        return declared_field(name).count(self) > 0

    def must_have(self, name: str) -> None:
        """Raise HiresxError if the blocks of this run do not have the field `name`."""
        if not self.has(name):
            shown = declared_field(name).shown
            raise HiresxError(f'this run has no field "{name}" ({shown})', "leave it out of what is written")

    def exchanged_fields(self, viscous: bool) -> "tuple[Field, ...]":
        """Return the fields whose ghost values are exchanged between blocks in every stage of a step, the state first.
        `viscous`: whether the flow is viscous."""
        there = [f for f in FIELDS if f.halo not in (None, "metrics") and f.count(self)]
        return tuple(f for f in there if viscous or f.halo != "fluxes")

    def fields_exchanged_once(self) -> "tuple[Field, ...]":
        """Return the fields whose ghost values are exchanged between blocks only once, after the metrics are
        computed."""
        return tuple(f for f in FIELDS if f.halo == "metrics" and f.count(self))

    def exchanged_bytes(self, viscous: bool) -> int:
        """Return the number of bytes that a stage of a step sends for each ghost node. `viscous`: whether the flow is
        viscous."""
        return sum(field.width(self) * field.size(self) for field in self.exchanged_fields(viscous))

    def _per_point(self) -> "Iterator[tuple[Field, int]]":
        for field in FIELDS:
            if field.lies_in is None and field.per_point(self):
                yield field, field.count(self)


@dataclasses.dataclass(frozen=True)
class Field:
    """The declaration of a field that blocks may have.

    - `name`: its name.
    - `numbers`: the type of its numbers, as a name in the storage of the run.
    - `components`: its numbers per node. None means one number per node and an array without an axis for components.
      NEEDED means that the run determines the number.
    - `optional`: whether only some runs have the field. For these, and for fields with NEEDED components,
      `Layout.needed` has the number of arrays or components.
    - `arrays`: the number of arrays, if the field is not optional.
    - `per_point`: false for a field with one value for all nodes.
    - `restarts`: whether checkpoints contain the field and a restart continues from it.
    - `halo`: the exchange that fills its ghosts, or None. Ghosts of physical faces are filled only for "term".
    - `shown`: a description, for a field that output may have.
    - `mirrored`: whether ghosts of physical faces have the values of the mirrored nodes, so that the slope is 0 at the
      face. Otherwise they have the values on the face.
    - `directed`: whether the components belong to the directions of the grid. Ghosts behind a face then receive the
      component of the direction of the face alone, from that of the donor, and with its sign changed if the directions
      of the two blocks are opposite. Behind patched faces they have the values on the face.
    - `lies_in`: the field whose memory it shares.
    - `chunked`: whether its address is a multiple of 16 bytes, for kernels that read 16 bytes at once
      (kernels/implicit/chunks.h).

    Raises ValueError for a field that cannot be exchanged or written: the exchange kernels support only the number
    types of the state and of work arrays, and files have one number per node.
    """

    name: str
    numbers: Numbers
    components: int | Literal["needed"] | Callable[[Layout], int] | None = None
    optional: bool = False
    arrays: int | Callable[[Layout], int] = 1
    per_point: Callable[[Layout], bool] = lambda layout: True
    restarts: bool = False
    halo: Halo | None = None
    shown: str = ""
    mirrored: bool = False
    directed: bool = False
    lies_in: str | None = None
    chunked: bool = False

    def __post_init__(self) -> None:
        in_stages = self.halo not in (None, "metrics")
        if self.halo and (self.numbers not in ("stored", "work") or (in_stages and self.components is None)):
            raise ValueError(f'field "{self.name}": what is exchanged has components, and "stored" or "work" numbers')
        if self.halo in ("term", "metrics") and self.numbers != "work":
            raise ValueError(f'field "{self.name}": what a term, or the metrics, give has "work" numbers')
        if self.shown and self.components not in (None, 1):
            raise ValueError(f'field "{self.name}": what is shown has one component')

    def variables(self, layout: Layout) -> int:
        """Return the number of components per node of one array of this field, in a run with the fields `layout`. It is
        0 if the number is given by the run (NEEDED) and the run does not have this field."""
        if self.components == NEEDED:
            return layout.needed.get(self.name, 0)
        if callable(self.components):
            return self.components(layout)
        return 1 if self.components is None else self.components

    def width(self, layout: Layout) -> int:
        """Return the number of components that each ghost node receives in an exchange of this field, in a run with the
        fields `layout`."""
        return 1 if self.directed else self.variables(layout)

    def count(self, layout: Layout) -> int:
        """Return the number of separate arrays, each with all components, that a block allocates for this field; 0 if
        the blocks do not have it. `layout`: the fields that the blocks of the run have."""
        needed = layout.needed.get(self.name, 0)
        if self.components == NEEDED:
            return int(needed > 0)
        if self.optional:
            return needed
        return self.arrays(layout) if callable(self.arrays) else self.arrays

    def kind(self, layout: Layout) -> str:
        """Return NumPy's name of the number type of this field, in a run with the fields `layout`."""
        return {"mark": "int8", "index": "int32"}.get(self.numbers) or str(getattr(layout.storage, self.numbers))

    def size(self, layout: Layout) -> int:
        """Return the number of bytes of one number of this field, in a run with the fields `layout`."""
        return np.dtype(self.kind(layout)).itemsize


def _of_state(layout: Layout) -> int:
    return layout.equations.variables


def _of_inverse(layout: Layout) -> int:
    return packed_reals(layout.equations.variables**2, layout.sweep_precision)


def _of_update(layout: Layout) -> int:
    return packed_reals(layout.equations.variables, layout.sweep_precision)


def _of_gradients(layout: Layout) -> int:
    return len(layout.equations.gradients)


FIELDS: tuple[Field, ...] = (
    # the conservative state, and the rounding errors of its differences from a reference
    Field("q", "stored", _of_state, restarts=True, halo="state"),
    Field("carry", "stored", _of_state, arrays=lambda layout: int(layout.storage.carries), restarts=True),
    # registers of the time integrator
    Field("registers", "stored", _of_state, optional=True),
    # the right-hand side times 1/J; also the primitive variables of viscous fluxes that are computed before the
    # inviscid terms
    Field("r", "rate", _of_state),
    Field("primitives", "work", _of_gradients, lies_in="r"),
    # in ghosts of no-slip walls: the terms of the sums of mass and scalars that these walls conserve
    # (kernels/wall_sums.h)
    Field("wall_sums", "rate", _of_state, lies_in="r"),
    # in ghosts of outflows, for each scalar: the part of its rate that does not follow from the rate of the density
    # (kernels/scalar_boundary.h)
    Field("held_rates", "rate", lambda layout: len(layout.equations.scalars), lies_in="r"),
    # viscous fluxes of momentum, energy and the scalars, along each direction of the grid
    Field("viscous_flux", "work", _of_gradients, arrays=DIRECTIONS, halo="fluxes", lies_in="work"),
    # area components grad(xi)/J, and J
    Field("metrics", "work", METRICS),
    Field("jacobian", "work", halo="metrics"),
    # one number for all nodes, unless every node needs its own
    Field("dt", "real", per_point=lambda layout: layout.local_steps),
    # states and fluxes of the decomposed plan, then primitives and fluxes of the viscous terms
    Field("work", "work", NEEDED),
    # of the decomposed plan: where the fluxes of interpolated states have to be limited (kernels/roughness.h)
    Field("rough", "mark", optional=True),
    # further node data of the numerical flux that its header declares; a term computes them
    Field("flux_fields", "work", NEEDED, halo="term"),
    # the jumps beside a node across each direction, for the H-correction (hiresx.rhs.terms.h_correction)
    Field("jumps_across", "work", DIRECTIONS, optional=True, halo="term", directed=True),
    # the share of the interpolated states in the hybrid inviscid fluxes (hiresx.rhs.terms.shock_sensor)
    Field(
        "shock_sensor",
        "work",
        1,
        optional=True,
        halo="term",
        shown="share of the shock-capturing flux in the inviscid flux",
    ),
    # at the first node of each tile of a plane: whether the shock sensor is above 0 in it (kernels/sensed_tiles.h)
    Field("sensed_tiles", "mark", optional=True),
    # the segments of lines in which the shock sensor changes rates (kernels/sensed_segments.h)
    Field("sensed_segments", "index", optional=True),
    # the entropic pressure of the regularised scheme in the last stage, from which the next one starts; the second
    # array of its sweeps; the right-hand side of its equation (hiresx.rhs.terms.entropic_pressure); and its values at
    # the start of the step, for a step that is repeated
    Field(
        "entropic_pressure",
        "work",
        1,
        optional=True,
        restarts=True,
        halo="term",
        shown="entropic pressure / (reference density x reference sound speed^2), of the last stage",
        mirrored=True,
    ),
    Field(
        "entropic_iterate",
        "work",
        1,
        optional=True,
        halo="term",
        mirrored=True,
    ),
    Field("entropic_start", "work", 1, optional=True),
    # the compressive stress: xx, yy, zz, xy, xz, yz; and its upper bound
    Field("entropic_stress", "work", 6, optional=True, halo="term", mirrored=True),
    Field("stress_limit", "work", 1, optional=True),
    Field("entropic_source", "work", 1, optional=True),
    # the eddy viscosity (kernels/turbulence/) of the last stage; the fluxes compute it, and the next time step, forces
    # on walls and the kinetic-energy budget read it
    Field(
        "eddy_viscosity",
        "work",
        1,
        optional=True,
        restarts=True,
        shown="eddy viscosity / reference viscosity, of the last stage",
    ),
    # of the dynamic Smagorinsky model (hiresx.rhs.terms.dynamic_smagorinsky): the rate of strain, the products whose
    # quotient is the coefficient, and the coefficient
    Field("strain", "work", 6, optional=True, halo="term"),
    Field("products", "work", 2, optional=True, halo="term"),
    Field(
        "eddy_coefficient",
        "work",
        1,
        optional=True,
        shown="coefficient C of the eddy viscosity rho C delta^2 |S|, of the last stage",
    ),
    # of models with transported variables: the distance to walls (hiresx.rhs.wall_distance), and the sources of each
    # rho s besides convection and diffusion, of the last stage
    Field(
        "wall_distance",
        "work",
        1,
        optional=True,
        shown="distance to the nearest wall / L",
    ),
    Field("transported_source", "work", NEEDED),
    # of detached-eddy models: the largest spacing and the one normal to walls (hiresx.rhs.grid_spacings); if they are
    # requested, of the last stage, the length divided by the distance to the wall, and the share of resolved eddies in
    # it
    Field("grid_spacings", "work", NEEDED),
    Field(
        "length_ratio",
        "work",
        1,
        optional=True,
        shown="length of the detached-eddy model / distance to the nearest wall, of the last stage",
    ),
    Field(
        "resolved_share",
        "work",
        1,
        optional=True,
        shown="share of resolved eddies in the length of the detached-eddy model, of the last stage: f_d",
    ),
    # the acceleration that is added to the body force to keep the mass flow constant
    Field("kept_acceleration", "real", per_point=lambda layout: False, optional=True),
    # the half-width of the explicit filter along each direction, and the changes that it makes
    # (hiresx.rhs.spatial_filter)
    Field("filter_reach", "work", DIRECTIONS, optional=True),
    Field("filter_change", "rate", _of_state, optional=True),
    # the half-width of the damping of viscous terms along each direction (hiresx.rhs.terms.viscous_damping)
    Field("damping_reach", "work", DIRECTIONS, optional=True),
    # the same for the variables of a turbulence model
    Field("transported_reach", "work", DIRECTIONS, optional=True),
    # x, y, z of the nodes, for the user's sources
    Field("coordinates", "real", DIRECTIONS, optional=True),
    # of the implicit integrator, in the order of kernels/implicit/coloured.h: a matrix block of 25 reals for each node
    # (36 and 49 with one and two variables of a turbulence model), followed by the blocks of its six neighbours in
    # fewer bits (kernels/implicit/neighbours.h); the right-hand side and the update of the sweeps; and for sweeps over
    # lines the factors (kernels/implicit/lines.h) of the lines along each direction that a block may have
    Field("implicit_blocks", "real", NEEDED),
    Field("sweep_right", "real", NEEDED),
    Field("sweep_update", "real", _of_update, optional=True, chunked=True),
    Field("line_factors", "real", NEEDED),
    # on a GPU: data of sweeps over lines in the order of their factors
    Field("line_values", "real", _of_update, optional=True, chunked=True),
    # of sweeps without stored blocks of neighbours: the data from which the products are computed
    # (kernels/implicit/records.h) and, for sweeps over nodes, the inverses of the diagonal blocks
    Field("sweep_records", "real", NEEDED, chunked=True),
    Field("sweep_inverses", "real", _of_inverse, optional=True, chunked=True),
    # the update at nodes whose values are exchanged, and in ghosts
    Field("update", "work", _of_state, optional=True, halo="term"),
    # of iterations towards steady flow: the magnitude of the residual (hiresx.time.integrators.implicit)
    Field(
        "residual",
        "real",
        optional=True,
        shown="largest rate of change of the conservative variables in an explicit step with the boundary conditions, "
        "of the last step of an implicit run",
    ),
    # 1/y of axisymmetric flow (hiresx.rhs.axisymmetric)
    Field("inverse_radius", "real", optional=True),
)


def declared_field(name: str) -> Field:
    """Return the declaration of the field `name` (an array at the nodes of a block). Raises KeyError if there is
    none."""
    for field in FIELDS:
        if field.name == name:
            return field
    raise KeyError(f'hiresx/device/fields.py declares no field "{name}"')


def output_fields() -> dict[str, Field]:
    """Return the declarations of those fields (arrays at the nodes) that output files may contain, by name."""
    return {field.name: field for field in FIELDS if field.shown}
