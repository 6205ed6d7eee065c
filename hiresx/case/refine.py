"""The `[refine]` table: regions of the grid that are computed on finer levels. They are given, or selected by a
criterion."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from hiresx.case.implicit_table import NAME, UNSTEADY
from hiresx.case.model import Listed, Points, Positive, Table, case_error

if TYPE_CHECKING:
    from hiresx.case.schema import Case

Interval = Annotated[tuple[float, float], Listed]
Nodes = Annotated[tuple[int, int], Listed]

# Conditions at whose faces refined regions may lie: those that treat every node separately.
REFINABLE = frozenset(
    {
        "periodic", "slip-wall", "symmetry", "no-slip-wall", "supersonic-inflow", "profile-inflow",
        "supersonic-outflow",
    }
)  # fmt: skip

# Those of these conditions that prescribe values at nodes. The fluxes through them are not sums of rates.
PASSED = frozenset({"supersonic-inflow", "profile-inflow", "supersonic-outflow"})


class RefinedRegion(Table):
    """A box of the grid and the level on which it is computed: by coordinates, by nodes, or by both."""

    level: int = Field(1, ge=1, le=8, description="level of the box; each level halves the spacing of the one before")
    block: str | None = Field(None, description="name of a block; absent: every block")
    x: Interval | None = Field(None, description="least and largest x, in L; absent: all")
    y: Interval | None = Field(None, description="least and largest y, in L; absent: all")
    z: Interval | None = Field(None, description="least and largest z, in L; absent: all")
    i: Nodes | None = Field(None, description="first and last node along i of the grid itself; absent: all")
    j: Nodes | None = Field(None, description="first and last node along j of the grid itself; absent: all")
    k: Nodes | None = Field(None, description="first and last node along k of the grid itself; absent: all")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for name in ("x", "y", "z", "i", "j", "k"):
            ends = getattr(self, name)
            if ends is not None and not ends[0] <= ends[1]:
                raise case_error(f"{name} = [{ends[0]}, {ends[1]}] ends before it begins")
        return self


# Thresholds and floor of the curvature of density (Sun and Takayama, Journal of Computational Physics 150, 1999).
CURVATURE = (0.08, 0.05)


class Refine(Table):
    """Refinement of given regions, and of tiles that a criterion selects during the run. A level has half the spacing
    of the next coarser one in every direction: every second of its nodes lies on a node of the coarser level. A level
    is computed in tiles; adjacent tiles are combined into blocks. Nodes of a coarser level that lie under a finer one
    take its values. All levels use the same time step."""

    tile: int = Field(
        16,
        ge=8,
        le=256,
        multiple_of=2,
        description="nodes of a tile along each direction, an even number; the first and the last tile of a block may "
        "have more",
    )
    region: Annotated[tuple[RefinedRegion, ...], Listed] = Field((), description="regions that are refined")
    criterion: Literal["density-curvature", "density-gradient", "vorticity"] | None = Field(
        None,
        description="quantity by which tiles are chosen during the run, in addition to the regions. "
        "density-curvature: the second difference of density along grid lines, divided by the first difference. "
        "density-gradient: the largest difference of density to a neighbouring node, divided by the density. "
        "vorticity: its magnitude, in c_ref/L. Absent: only the regions",
    )
    refine: Positive | None = Field(
        None, description="a tile is added where the criterion exceeds this; absent: 0.08 for density-curvature"
    )
    coarsen: Positive | None = Field(
        None,
        description="a tile is removed where the criterion does not exceed this; absent: 0.05 for density-curvature, "
        "0.6 refine for the others",
    )
    floor: Positive = Field(
        0.03, description="fraction of the density that is added to its first difference in density-curvature"
    )
    levels: int | None = Field(
        None, ge=1, le=8, description="finest level that the criterion may select; absent with a criterion: 1"
    )
    every: Points = Field(20, description="steps between two evaluations of the criterion")
    margin: int | None = Field(
        None,
        ge=0,
        description="number of nodes of the finer level that are refined around the nodes that exceed refine, "
        "at most a tile; absent: the value of every, at most a tile",
    )
    symmetric: Annotated[tuple[Literal["i", "j", "k"], ...], Listed] = Field(
        (),
        description="directions of the grid along which the tiles of each block are symmetric to its middle, "
        "for flows with this symmetry. If tiles of a direction have different numbers of nodes, the "
        "larger one is then in the middle",
    )
    conservative: bool = Field(
        False,
        description="whether mass, momentum, energy and scalars are conserved across the ends of levels, to "
        "round-off, by a correction at the nodes near these ends. The order of the scheme does not "
        "change",
    )
    most_nodes: Points | None = Field(
        None, description="a run whose levels would have more nodes than this ends with an error; absent: no limit"
    )

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if self.criterion is None:
            if not self.region:
                raise case_error("refines nothing: give a [[refine.region]], or a criterion")
            for name in ("refine", "coarsen", "levels", "margin", "most_nodes"):
                if getattr(self, name) is not None:
                    raise case_error(f"{name} belongs to a criterion: give refine.criterion, or leave {name} out")
            return self
        if self.refine is None and self.criterion != "density-curvature":
            raise case_error(f'criterion = "{self.criterion}" needs refine, the value above which a tile is taken')
        if self.coarsen_above >= self.refine_above:
            raise case_error(f"coarsen = {self.coarsen_above:g} must be less than refine = {self.refine_above:g}")
        if self.margin is not None and self.margin > self.tile:
            raise case_error(f"margin = {self.margin} is more than tile = {self.tile}: lower it, or take larger tiles")
        return self

    @property
    def refine_above(self) -> float:
        """Value of the refinement criterion above which a tile (a box of nodes) of a finer level is added."""
        return CURVATURE[0] if self.refine is None else self.refine

    @property
    def coarsen_above(self) -> float:
        """Value of the refinement criterion at or below which a tile (a box of nodes) of a finer level is removed."""
        if self.coarsen is not None:
            return self.coarsen
        return CURVATURE[1] if self.refine is None else 0.6 * self.refine

    @property
    def nodes_around(self) -> int:
        """Width of the margin that is refined around the nodes that exceed the refinement criterion, in nodes of the
        finer level."""
        return min(self.every, self.tile) if self.margin is None else self.margin

    @property
    def refinable(self) -> frozenset[str]:
        """The types of boundary conditions at whose faces the refinement criterion may add finer levels."""
        return REFINABLE - PASSED if self.conservative else REFINABLE

    @property
    def finest(self) -> int:
        """Number of the finest level that a run may have; the grid itself is level 0."""
        found = 0 if self.criterion is None else self.levels or 1
        return max([found, *(region.level for region in self.region)])


def refine_errors(case: "Case") -> Iterator[Exception]:
    """Yield an exception for each setting of `case` that is not supported together with the table `[refine]`. Yield
    nothing if the case has no such table."""
    if case.refine is None:
        return
    integrator, with_criterion, conservative = case.time.integrator, dict[str, bool](), dict[str, bool]()
    refused = {
        "axisymmetric = true": case.axisymmetric,
        "[filter]": case.filter is not None,
        "[body_force]": case.body_force is not None,
        f'time.integrator = "{integrator}"' if integrator == NAME else "time.local": case.time.local,
        '[scheme] inviscid = "regularised"': case.scheme.inviscid == "regularised",
        'plan = "compact"': case.plan == "compact",
        "[turbulence]": case.turbulence.model != "none",
        '[[boundary]] type = "patched"': any(b.type == "patched" for b in case.boundary),
        '[[boundary]] type = "pole"': any(b.type == "pole" for b in case.boundary),
        "average.over": case.average is not None and bool(case.average.over),
    }
    if case.refine.conservative:
        conservative = {f'time.integrator = "{integrator}"': integrator in UNSTEADY}
    if case.refine.criterion is not None:
        with_criterion = {
            "[average]": case.average is not None,
            "force.distribution": any(force.distribution is not None for force in case.force),
            "time.retries": bool(case.time.retries),
            f'time.integrator = "{integrator}"': integrator in (NAME, *UNSTEADY),
            '[scheme] precision = "differences"': case.scheme.precision == "differences",
            '[[probe]] without filter = "none", as tiles change between samples': any(
                probe.filter != "none" and probe.every != 1 for probe in case.probe
            ),
        }
    of_keys = (
        ("refine", refused), ("refine.conservative = true", conservative), ("refine.criterion", with_criterion)
    )  # fmt: skip
    for key, settings in of_keys:
        for name, given in settings.items():
            if given:
                instead = 'give filter = "none" in the [[probe]], or ' if name.startswith("[[probe]]") else ""
                yield case_error(f"{key} is not supported with {name}; {instead}leave one of the two out")
