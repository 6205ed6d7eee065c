"""The blocks of neighbours of the implicit integrator in every storage, and sweeps with them, against NumPy."""

from itertools import product
from shutil import copytree, ignore_patterns
from typing import Any, NamedTuple

import numpy as np
import pytest

from hiresx import kernels
from hiresx.bench.sweeps import decoded
from hiresx.device.configuration import Configuration
from hiresx.device.cpu import CpuBackend
from hiresx.device.emulated import EmulatedBackend
from hiresx.device.fields import Layout, declared_field
from hiresx.device.wrappers import generate
from hiresx.equations import Equations
from hiresx.equations.diffusivity import transported_schmidt
from hiresx.equations.storage import STORAGE, neighbour_reals

# The sweeps without what makes the blocks.
PROGRAM = """
#include "gas.h"
#include "implicit/lines.h"
#include "implicit/nodes.h"
KERNEL(keep_blocks, int i, int j, int k, int o, int sj, int sk, stride sv, const_field<6 * block_entries> given,
       field<block_reals> blocks, field<6 * block_entries> back) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    real lost[block_entries] = {}, block[block_entries];
    for (int side = 0; side < 6; ++side) {
        for (int e = 0; e < block_entries; ++e) block[e] = given[(side * block_entries + e) * sv + p];
        neighbour_block kept(blocks, sv, p, side);
        kept.keep(block, lost);
        for (int e = 0; e < block_entries; ++e)
            back[(side * block_entries + e) * sv + p] = kept(e / block_variables, e % block_variables);
    }
    for (int e = 0; e < block_entries; ++e) blocks[e * sv + p] += lost[e];
}
"""
SIZE, SHAPE = (5, 4, 3), (5, 6, 7)  # nodes along i, j, k; the same with a ghost on either side, of an array
PLACE = {"o": 1 + 7 + 42, "sj": 7, "sk": 42, "sv": 210}
WITHIN = (..., slice(1, -1), slice(1, -1), slice(1, -1))
BACKENDS = {"cpu": CpuBackend, "emulated": EmulatedBackend}
CHOICES = [
    ("cpu", "fp16", 5), ("cpu", "int8", 6), ("emulated", "fp16", 6),
    *(pytest.param(choice, marks=pytest.mark.slow) for choice in [("emulated", "int8", 5), ("cpu", "fp32", 5)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("sweeps") / "kernels"
    copytree(kernels.ROOT, root, ignore=ignore_patterns("__pycache__"))
    (root / "implicit.h").write_text(PROGRAM)
    return root


class Kept(NamedTuple):
    """A program of the sweeps, and blocks of all kinds of rows (6, n, n, k, j, i): as given, as kernels read what is
    kept of them, and the array that keeps them, behind `diagonal` with what was lost."""

    program: Any
    storage: str
    given: np.ndarray
    back: np.ndarray
    blocks: np.ndarray
    diagonal: np.ndarray

    @property
    def variables(self) -> int:
        return self.given.shape[1]


@pytest.fixture(scope="module", params=CHOICES, ids=lambda choice: "-".join(map(str, choice)))
def kept(root, request) -> Kept:
    where, storage, n = request.param
    model = {
        "viscosity": "sutherland",
        "turbulence": "spalart_allmaras",
        "schmidt": transported_schmidt("spalart_allmaras"),
    }
    program = BACKENDS[where](root).compile(
        Configuration(program="implicit", implicit_storage=storage, positivity="none", **(model if n > 5 else {}))
    )
    rng = np.random.default_rng(4)
    given = np.zeros((6, n, n, *SHAPE))
    inner = given[WITHIN]
    inner[:] = rng.normal(size=inner.shape)
    inner[:, :, 5:] /= 700.0
    inner[0, 1] *= 1e30
    inner[0, 2] *= 1e-30
    inner[1, 0] = 0.0
    inner[1, 1, :5] = 2.0 ** rng.integers(-3, 1, inner[1, 1, :5].shape)
    inner[2, :, 1] *= 2.0 ** rng.integers(-40, 1, inner[2, :, 1].shape)  # FP16 has some of them with fewer bits
    inner[3, 2, :5], inner[3, 3, 0] = 127.6 / 8, -255.7  # which of 8 bits would be rounded to 128
    diagonal = 40 * np.eye(n)[..., None, None, None] + rng.normal(size=(n, n, *SHAPE))
    blocks = np.concatenate([diagonal.reshape(-1, *SHAPE), np.zeros((neighbour_reals(storage, n), *SHAPE))])
    back = np.zeros((6 * n * n, *SHAPE))
    program.launch("keep_blocks", SIZE, **PLACE, given=given.reshape(-1, *SHAPE), blocks=blocks, back=back)
    return Kept(program, storage, given, back.reshape(given.shape), blocks, diagonal)


@pytest.mark.parametrize(
    ("storage", "schmidt", "reals"),
    [("fp32", (), 100), ("fp16", (), 67), ("int8", (), 48), ("fp32", (0.7,), 144), ("fp16", (0.7,), 95),
     ("int8", (0.7,), 68)],
)  # fmt: skip
def test_the_field_has_the_numbers_that_kernels_take(storage, schmidt, reals):
    chosen = Configuration(program="implicit", implicit_storage=storage, viscosity="sutherland", schmidt=schmidt)
    _, kernels_of = generate(chosen, "cpu")
    scalars = tuple(f"scalar {n}" for n in range(len(schmidt)))
    layout = Layout(STORAGE["fp64"], Equations(scalars), implicit=True, implicit_storage=storage)
    takes = {kernel.holds["blocks"] for kernel in kernels_of.values() if "blocks" in kernel.holds}
    assert takes == {reals} == {declared_field("implicit_blocks").variables(layout)}


def units(n: int) -> np.ndarray:
    """The unit of each column of a block."""
    return np.where(np.arange(n) < 5, 1.0, 1024.0)[:, None, None, None]


def rounded(given: np.ndarray, storage: str) -> np.ndarray:
    """Rows of blocks as numbers of the storage times a power of two of each row."""
    if storage == "fp32":
        return given.astype(np.float32).astype(float)
    unit = units(given.shape[2])
    largest = np.abs(given * unit).max(axis=2, keepdims=True)
    top, margin = (14, 1.0) if storage == "fp16" else (6, 256 / 255)
    power = 2.0 ** (np.frexp(largest * margin)[1] - 1 - top) / unit
    numbers = given / power
    return (numbers.astype(np.float16).astype(float) if storage == "fp16" else np.rint(numbers)) * power


def test_what_is_kept_of_a_block(kept):
    """It is what NumPy rounds to the same numbers, powers of two exactly; rows of 0 and of any size are kept as well as
    others, and the diagonal block gets what is lost."""
    given, back = kept.given[WITHIN], kept.back[WITHIN]
    np.testing.assert_array_equal(back, rounded(given, kept.storage))
    np.testing.assert_array_equal(decoded(kept.blocks, kept.storage, kept.variables, kept.variables > 5)[WITHIN], back)
    np.testing.assert_array_equal(back[1, :2, :5], given[1, :2, :5])
    unit = units(kept.variables)
    off = np.abs(unit * (back - given)).max(axis=2) / np.maximum(np.abs(unit * given).max(axis=2), 1e-300)
    assert off.max() < {"fp32": 2.0**-24, "fp16": 2.0**-11, "int8": 2.0**-6}[kept.storage]
    with_lost = kept.blocks[: kept.variables**2].reshape(kept.diagonal.shape)[WITHIN]
    np.testing.assert_allclose(with_lost, kept.diagonal[WITHIN] + (given - back).sum(axis=0), rtol=1e-12, atol=1e-12)


def test_a_value_that_is_not_finite_is_seen_in_the_diagonal_block(kept):
    for value in (np.nan, np.inf):
        given, blocks = kept.given.copy(), np.zeros_like(kept.blocks)
        given[4, 2, 3, 1, 1, 1] = value
        back = np.zeros((6 * kept.variables**2, *SHAPE))
        kept.program.launch(
            "keep_blocks", SIZE, **PLACE, given=given.reshape(-1, *SHAPE), blocks=blocks, back=back
        )  # fmt: skip
        found = np.isfinite(blocks[: kept.variables**2]).reshape(kept.diagonal.shape)
        assert not found[2, 3, 1, 1, 1] and found[:, :, 2:].all()


@pytest.mark.parametrize("direction", [None, 1])
def test_sweeps_over_nodes_and_lines_solve_as_numpy_does(kept, direction):
    """Of a matrix whose neighbours are of the size of 1, with what is kept of them."""
    n, strides, points = kept.variables, (1, PLACE["sj"], PLACE["sk"]), PLACE["sv"]
    given = kept.given.copy()
    for side, row in ((0, 1), (0, 2), (3, 2), (3, 3)):
        given[side, row] = 0.5
    blocks, back = kept.blocks.copy(), np.zeros((6 * n * n, *SHAPE))
    blocks[: n * n] = kept.diagonal.reshape(-1, *SHAPE)
    kept.program.launch("keep_blocks", SIZE, **PLACE, given=given.reshape(-1, *SHAPE), blocks=blocks, back=back)
    diagonal, beside = (x.reshape(-1, n, n, points).transpose(0, 3, 1, 2) for x in (blocks[: n * n], back))
    rng = np.random.default_rng(5)
    right, update = rng.normal(size=(n, *SHAPE)), rng.normal(size=(n, *SHAPE))
    wanted, b = update.reshape(n, -1).T.copy(), right.reshape(n, -1).T
    common = {**PLACE, "di": 1, "dj": strides[1], "dk": strides[2], "first": 0, "right": right, "update": update}
    extent = tuple(1 if d == direction else size for d, size in enumerate(SIZE))
    if direction is None:
        inverted = blocks.copy()
        kept.program.launch("invert_diagonals", SIZE, **PLACE, blocks=inverted)
    else:
        along = {"direction": direction, "length": SIZE[direction], "factors": np.zeros((n * n, *SHAPE))}
        kept.program.launch("factor_lines", extent, **PLACE, step=strides[direction], blocks=blocks, **along)
    for colour in (0, 1):
        if direction is None:
            kept.program.launch("colour_sweep", SIZE, **common, colour=colour, blocks=inverted)
        else:
            kept.program.launch("line_sweep", extent, **common, **along, colour=colour, blocks=blocks)
        for start in product(*map(range, extent)):
            if sum(start) % 2 != colour:
                continue
            length = 1 if direction is None else SIZE[direction]
            line = [PLACE["o"] + np.dot(start, strides) + m * strides[direction or 0] for m in range(length)]
            matrix, known = np.zeros((length, n, length, n)), b[line].copy()
            for m, p in enumerate(line):
                matrix[m, :, m] = diagonal[0, p]
                for side, q in enumerate(q for stride in strides for q in (p - stride, p + stride)):
                    if q in line:
                        matrix[m, :, line.index(q)] = beside[side, p]
                    else:
                        known[m] -= beside[side, p] @ wanted[q]
            solution = np.linalg.solve(matrix.reshape(length * n, -1), known.ravel())
            wanted[line] = solution.reshape(length, n)
    off = np.abs(update.reshape(n, -1).T - wanted)
    assert np.abs(wanted).max() > 0.1 and off.max() < 1e-12
