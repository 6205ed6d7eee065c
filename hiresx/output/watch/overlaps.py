"""Warnings about probes in a sponge, which damps the flow that they record."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from hiresx.case import Case
from hiresx.rhs.layers import along, shares


def overlaps(case: Case, probes: Iterable[tuple[str, Sequence[Sequence[float]], Sequence[str]]]) -> Iterator[str]:
    """Yield a warning for every probe with points in a sponge, which damps the flow there. `probes`: for each its name,
    its points (x, y, z) in units of the length scale L, and the name of the block of each point. `case`: a case as
    `hiresx.rhs.layers.place_sponges` returns it, with numbers for the ends of all sponges."""
    for name, places, blocks in probes:
        at = np.asarray(places, dtype=float)
        for n, spec in enumerate(case.sponge):
            theirs = np.array([spec.blocks is None or block in spec.blocks for block in blocks])
            share = np.where(theirs, shares(spec, along(spec.axis, *at.T)), 0.0)
            inside = np.flatnonzero(share > 0)
            if inside.size:
                first = ", ".join(f"{c:.6g}" for c in at[inside[0]])
                count = f"{inside.size} of {len(at)} places" if len(at) > 1 else "its place"
                yield (
                    f'probe "{name}": {count} in sponge.{n}, at most {share.max():.0%} of its depth, the first at '
                    f"({first}): the sponge damps the recorded flow"
                )
