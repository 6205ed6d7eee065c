"""Copies of boxes of nodes between the arrays of one process, which one launch makes together (kernels/exchange.h)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hiresx.decomposition.tile_ghosts import first_places
from hiresx.device.arguments import address
from hiresx.device.interface import Backend, Call, Program


class CopiedBoxes(NamedTuple):
    """n boxes of nodes that are copied. `array` (2, n): numbers of the arrays that receive (row 0) and give (row 1) the
    values. `sizes` (n, 3): the number of nodes along three directions, of which the first runs fastest. `first` (2, n):
    flat indexes of the first node in both arrays. `steps` (2, n, 3): the differences of the flat indexes from node to
    node along each direction. `sign` (n,): the factor of the values, 1 or -1."""

    array: np.ndarray
    sizes: np.ndarray
    first: np.ndarray
    steps: np.ndarray
    sign: np.ndarray

    @classmethod
    def none(cls) -> "CopiedBoxes":
        """Return no boxes."""
        shapes = (2, 0), (0, 3), (2, 0), (2, 0, 3), (0,)
        return cls(*(np.zeros(shape, int) for shape in shapes))

    def calls(
        self,
        backend: Backend,
        program: Program,
        kernel: str,
        variables: int,
        array: Callable[[int], Any],
        stride: Callable[[int], int],
    ) -> list[Call]:
        """Return the launch that copies all boxes, or no launch if there are none. `kernel`: "copy_halo" or
        "copy_work_halo", by the number type of the arrays; where the program has the kernel that copies by rows, this
        is launched instead. `variables`: the number of variables of a node. `array(n)`: the array with the number `n`.
        `stride(n)`: the distance of two variables in it, in reals."""
        if not len(self.sizes):
            return []
        used, at = np.unique(self.array, return_inverse=True)
        at = at.reshape(self.array.shape)
        arrays = [array(n) for n in used.tolist()]
        begins = np.array([address(one) for one in arrays])[at] + arrays[0].itemsize * self.first
        apart = np.array([stride(n) for n in used.tolist()])[at]
        nodes = self.sizes.prod(axis=1)
        by_rows = f"{kernel}_rows" in program.signatures
        counts = nodes // self.sizes[:, 0] if by_rows else nodes
        columns = first_places(counts), *begins, *apart, self.sign, self.sizes[:, :2], *self.steps
        table = backend.to_device(np.column_stack(columns).astype(np.int64).ravel())
        given = {"boxes": len(nodes), "variables": variables, "box": table}
        if by_rows:
            rows = {"rows": int(counts.sum()), "nodes": int(nodes.sum())}
            call = program.call(f"{kernel}_rows", None, **given, **rows)
        else:
            call = program.call(kernel, (int(nodes.sum()), 1, 1), **given)
        written = np.isin(np.arange(len(used)), at[0]).tolist()
        return [call._replace(touched=[*zip(arrays, written, strict=True)])]
