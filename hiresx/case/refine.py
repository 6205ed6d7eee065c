"""The `[refine]` table: regions of the grid that are computed on finer levels."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from hiresx.case.model import Listed, Table, case_error

if TYPE_CHECKING:
    from hiresx.case.schema import Case

Interval = Annotated[tuple[float, float], Listed]
Nodes = Annotated[tuple[int, int], Listed]

# Conditions with which a refined region may share a face of a block: those that act on every node by itself.
REFINABLE = frozenset({"periodic", "slip-wall", "symmetry", "no-slip-wall", "supersonic-inflow", "supersonic-outflow"})


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


class Refine(Table):
    """Refinement of regions that are given. A level has half the spacing of the one before in every direction: every
    second of its nodes lies on a node of that. It is computed in tiles, which are blocks in all that is written; where
    it lies over a coarser level, the nodes of that take its values. All levels make the same time step."""

    tile: int = Field(
        16, ge=8, le=256, multiple_of=2, description="nodes of a tile along each direction; the last one has more"
    )
    region: Annotated[tuple[RefinedRegion, ...], Listed] = Field((), description="what is refined, to which level")

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if not self.region:
            raise case_error("refines nothing: give a [[refine.region]]")
        return self

    @property
    def levels(self) -> int:
        """The finest level."""
        return max(region.level for region in self.region)


def refine_errors(case: "Case") -> Iterator[Exception]:
    """Errors of a refined case that asks for what is not there with refinement."""
    if case.refine is None:
        return
    refused = {
        "axisymmetric = true": case.axisymmetric,
        "[filter]": case.filter is not None,
        "[body_force]": case.body_force is not None,
        "time.local": case.time.local,
        '[scheme] inviscid = "regularised"': case.scheme.inviscid == "regularised",
        'plan = "compact"': case.plan == "compact",
        "[turbulence]": case.turbulence.model != "none",
        '[[boundary]] type = "patched"': any(b.type == "patched" for b in case.boundary),
        '[[boundary]] type = "pole"': any(b.type == "pole" for b in case.boundary),
        "[[sponge]] blocks": any(s.blocks for s in case.sponge),
        "[[force]], which sums over faces": bool(case.force),
        "[[surface]], which sums over faces": bool(case.surface),
    }
    for name, given in refused.items():
        if given:
            yield case_error(f"refine does not go with {name}; leave one of the two out")
    for name in case.histories():
        if name not in ("extrema", "residual"):
            yield case_error(f"refine does not go with [{name}], which sums over all blocks; leave one of the two out")
