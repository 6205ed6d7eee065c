"""The fields of a block: what a run keeps at every node, declared once.

What a block allocates, what memory a case needs, what is exchanged and what a checkpoint holds follow from `FIELDS`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from hiresx.equations import DIRECTIONS, GAS, METRICS, Equations
from hiresx.equations.storage import STORAGE, Storage
from hiresx.errors import HiresxError

Numbers = Literal["real", "stored", "work", "rate"]
# With which exchange ghosts of connected faces get what their donors have: that of the state, that of the viscous
# fluxes, of which each direction of the grid has an array of its own, or one of its own behind the term that gives the
# field (hiresx.rhs.terms), when ghosts of patched faces are interpolated and those of other faces repeat the nodes of
# the face. "metrics": one of its own, once, behind the metrics.
Halo = Literal["state", "fluxes", "term", "metrics"]


@dataclass(frozen=True)
class Layout:
    """What of a run decides which fields its blocks have: the `work` variables of its plan, the `registers` of its
    integrator, whether every point takes a step of its own, how many numbers of a node its numerical flux reads besides
    the flow."""

    storage: Storage
    equations: Equations = GAS
    work: int = 0
    registers: int = 1
    local_step: bool = False
    axisymmetric: bool = False
    flux_fields: int = 0

    @property
    def numbers_per_point(self) -> int:
        """What a block holds per padded point."""
        return sum(count * field.variables(self) for field, count in self._per_point())

    @property
    def bytes_per_point(self) -> int:
        """Bytes of the same."""
        return sum(count * field.variables(self) * field.size(self) for field, count in self._per_point())

    def must_have(self, name: str) -> None:
        """Raises HiresxError for a field that blocks of this layout have not."""
        field = next(field for field in FIELDS if field.name == name)
        if not field.count(self):
            raise HiresxError(f'this run has no field "{name}" ({field.shown})', "leave it out of what is written")

    def exchanged(self, viscous: bool) -> "tuple[Field, ...]":
        """The fields whose halos are exchanged in a stage, the state first."""
        there = [f for f in FIELDS if f.halo not in (None, "metrics") and f.count(self)]
        return tuple(f for f in there if viscous or f.halo != "fluxes")

    def exchanged_once(self) -> "tuple[Field, ...]":
        """Those whose halos are exchanged once, behind the metrics."""
        return tuple(f for f in FIELDS if f.halo == "metrics" and f.count(self))

    def exchanged_bytes(self, viscous: bool) -> int:
        """Bytes that go from a node to a ghost in a stage."""
        return sum(field.variables(self) * field.size(self) for field in self.exchanged(viscous))

    def _per_point(self) -> "Iterator[tuple[Field, int]]":
        for field in FIELDS:
            if field.lies_in is None and field.per_point(self):
                yield field, field.count(self)


@dataclass(frozen=True)
class Field:
    """`count` arrays (none: the run has no such field) of `components` (None: one number, without an axis of its own),
    kept in the `numbers` of the run's storage; `per_point` false: one value for all nodes. `restarts`: whether
    checkpoints hold it, and a restart goes on from it. `halo`: with which exchange its ghosts are filled, if any; those
    of physical faces with "term" alone. `shown`: what it is, in words, of a field that output may have by its name.
    `lies_in`: the field whose memory it shares.

    Raises ValueError for what cannot be exchanged or shown: kernels that exchange know the numbers of the state and of
    work arrays, and files show one number a node."""

    name: str
    numbers: Numbers
    components: Callable[[Layout], int] | None = None
    count: Callable[[Layout], int] = lambda layout: 1
    per_point: Callable[[Layout], bool] = lambda layout: True
    restarts: bool = False
    halo: Halo | None = None
    shown: str = ""
    lies_in: str | None = None

    def __post_init__(self) -> None:
        in_stages = self.halo not in (None, "metrics")
        if self.halo and (self.numbers not in ("stored", "work") or (in_stages and self.components is None)):
            raise ValueError(f'field "{self.name}": what is exchanged has components, and "stored" or "work" numbers')
        if self.halo in ("term", "metrics") and self.numbers != "work":
            raise ValueError(f'field "{self.name}": what a term, or the metrics, give has "work" numbers')
        if self.shown and self.components is not None and self.components(Layout(STORAGE["fp64"])) != 1:
            raise ValueError(f'field "{self.name}": what is shown has one component')

    def variables(self, layout: Layout) -> int:
        """Numbers at every node, of one of the arrays."""
        return 1 if self.components is None else self.components(layout)

    def kind(self, layout: Layout) -> str:
        """numpy's name of its numbers."""
        found: str = getattr(layout.storage, self.numbers)
        return found

    def size(self, layout: Layout) -> int:
        """Bytes of one of its numbers."""
        return dict(zip(("real", "stored", "work", "rate"), layout.storage.sizes, strict=True))[self.numbers]


def _of_state(layout: Layout) -> int:
    return layout.equations.variables


def _of_gradients(layout: Layout) -> int:
    return len(layout.equations.gradients)


FIELDS: tuple[Field, ...] = (
    # the conservative state, and what the rounding of its differences from a reference lost
    Field("q", "stored", _of_state, restarts=True, halo="state"),
    Field("carry", "stored", _of_state, count=lambda layout: int(layout.storage.carries), restarts=True),
    # what the time integrator keeps besides
    Field("registers", "stored", _of_state, count=lambda layout: layout.registers),
    # right-hand side times 1/J; viscous fluxes that come ahead of the inviscid terms have their primitives there
    Field("r", "rate", _of_state),
    Field("primitives", "work", _of_gradients, lies_in="r"),
    # of momentum, energy and the scalars, along each direction of the grid
    Field("viscous_flux", "work", _of_gradients, count=lambda layout: DIRECTIONS, halo="fluxes", lies_in="work"),
    # area components grad(xi)/J, and J
    Field("metrics", "work", lambda layout: METRICS),
    Field("jacobian", "work", halo="metrics"),
    Field("dt", "real", per_point=lambda layout: layout.local_step),
    # states and fluxes of the decomposed plan, then primitives and fluxes of the viscous terms
    Field("work", "work", lambda layout: layout.work, count=lambda layout: int(layout.work > 0)),
    # what the numerical flux reads of nodes besides the flow, as its header says; a term gives it
    Field(
        "flux_fields",
        "work",
        lambda layout: layout.flux_fields,
        lambda layout: int(layout.flux_fields > 0),
        halo="term",
    ),
    # 1/y of axisymmetric flow (hiresx.rhs.axisymmetric)
    Field("inverse_radius", "real", count=lambda layout: int(layout.axisymmetric)),
)


def shown() -> dict[str, Field]:
    """Fields that output may have, by name."""
    return {field.name: field for field in FIELDS if field.shown}
