"""Check of the grid while the kernels are compiled, so that an invalid grid is reported before compilation ends."""

from collections.abc import Callable

import numpy as np

from hiresx.base.threads import planes
from hiresx.case import Case
from hiresx.decomposition import Patch
from hiresx.decomposition.domain import Coordinates, Domain
from hiresx.equations.stencil import Stencil
from hiresx.estimate.volumes import is_tiny, refuse_underflow
from hiresx.grid.blocks import slices
from hiresx.rhs.metrics import refuse_volumes


def refuse_folded(case: Case, ground: Domain, compiled: Callable[[], bool]) -> None:
    """Raise HiresxError if a cell volume is not positive in a block of any rank on the machine of this rank. `case`:
    the case, whose precision decides which volumes are too small. `ground`: its grid with coordinates, divided among
    ranks. The check is made while the kernels are compiled, from the same coordinates and differences as in the
    kernels, and ends when `compiled()` is true, because the kernels check volumes faster. Blocks that may have volumes
    below the smallest normal number are always checked, because kernels treat these as 0. Blocks whose coordinates are
    read gradually from their file are not checked."""
    comm, stencil = ground.comm, ground.whole.stencil
    here = {rank for rank, host in enumerate(comm.hosts) if host == comm.hosts[comm.rank]}
    for n, part in enumerate(ground.cut.parts):
        if (
            part.rank not in here
            or ground.cut.blocks[n].is_stored
            or not isinstance(ground.extended[part.whole], tuple)
        ):
            continue
        poles = [p for p in ground.cut.patches if p.block == n and p.condition.kernel == "pole"]
        coordinates = ground.coordinates(part)
        nk, nj, ni = (m - 2 * stencil.halo for m in coordinates[0].shape)
        for rows in planes(nk, nj * ni):
            if compiled() and not is_tiny(case, ground.cut.blocks[n]):
                return
            block, volumes = ground.cut.blocks[n], _volumes(coordinates, stencil, rows, poles)
            refuse_volumes(block.name, block, part.first, volumes, rows.start)
            k, j, i = (int(m) for m in np.unravel_index(np.argmin(volumes), volumes.shape))
            node = [m + first for m, first in zip((i, j, k + rows.start), part.first, strict=True)]
            refuse_underflow(case, block.name, float(volumes[k, j, i]), node)


def _volumes(coordinates: Coordinates, stencil: Stencil, rows: slice, poles: list[Patch]) -> np.ndarray:
    """Return 1/J at the nodes of the planes `rows` of k, (nk', nj, ni). It is infinite on poles, which take the value
    of the next nodes."""
    halo = stencil.halo
    near = [c[rows.start : rows.stop + 2 * halo] for c in coordinates]
    shape = [m - 2 * halo for m in near[0].shape]
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = (
        [_derivative(c, 2 - d, shape, stencil) for c in near] for d in range(3)
    )  # of x, y, z along i, j, k
    volume: np.ndarray = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
    for pole in poles:
        k, j, i = slices(pole.range)
        volume[max(k.start - rows.start, 0) : max(k.stop - rows.start, 0), j, i] = np.inf
    return volume


def _derivative(c: np.ndarray, axis: int, shape: list[int], stencil: Stencil) -> np.ndarray:
    found, halo = np.zeros(shape), stencil.halo
    for m, weight in enumerate(stencil.metric_difference, halo - stencil.correction_reach):
        if weight:
            found += weight * c[
                tuple(
                    slice(m, m + n) if a == axis else slice(halo, halo + n) for a, n in enumerate(shape)
                )
            ]  # fmt: skip
    return found
