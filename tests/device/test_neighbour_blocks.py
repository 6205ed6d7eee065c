"""The blocks of neighbours of the implicit integrator in every storage, and sweeps with them, against NumPy."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from kernels_alone import with_implicit_program
from sweep_blocks import diagonal_blocks, neighbour_blocks

from hiresx.device.configuration import Configuration
from hiresx.device.cpu import CpuBackend
from hiresx.device.emulated import EmulatedBackend
from hiresx.device.fields import Layout, declared_field
from hiresx.device.wrappers import generate
from hiresx.equations import Equations
from hiresx.equations.diffusivity import transported_schmidt
from hiresx.equations.storage import STORAGE, block_reals, neighbour_words, packed_reals
from hiresx.solver.coloured_arrays import in_grid_order, in_precision, inverse_blocks
from hiresx.solver.sweeps import range_of_lines

# The sweeps without what makes the blocks.
PROGRAM = """
#include "gas.h"
#include "implicit/lines.h"
#include "implicit/nodes.h"
KERNEL(keep_blocks, int i, int j, int k, int o, int sj, int sk, stride sv, const_field<6 * block_entries> given,
       field<block_reals> blocks, field<6 * block_entries> back) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    real lost[block_entries] = {}, block[block_entries];
    for (int side = 0; side < 6; ++side) {
        for (int e = 0; e < block_entries; ++e) block[e] = given[(side * block_entries + e) * sv + p];
        neighbour_block kept;
        kept.keep(block, lost);
        kept.store(neighbour_place(blocks + block_entries * sv + c, sv), side);
        kept = neighbour_block(blocks, sv, c, side);
        for (int e = 0; e < block_entries; ++e)
            back[(side * block_entries + e) * sv + p] = kept(e / block_variables, e % block_variables);
    }
    for (int e = 0; e < block_entries; ++e) blocks[e * sv + c] += lost[e];
}
"""
SIZE, SHAPE = (5, 4, 3), (5, 6, 7)  # nodes along i, j, k; the same with a ghost on either side, of an array
PLACE = {"o": 1 + 7 + 42, "sj": 7, "sk": 42, "sv": 210}
WITHIN = (..., slice(1, -1), slice(1, -1), slice(1, -1))
# By the number of variables of a node
MODELS = {5: "none", 6: "spalart_allmaras", 7: "sst"}
BACKENDS = {"cpu": CpuBackend, "emulated": EmulatedBackend}
CHOICES = [
    ("cpu", "fp16", 5, "fp64"), ("cpu", "int8", 6, "fp32"), ("emulated", "fp16", 6, "fp64"),
    *(
        pytest.param(choice, marks=pytest.mark.slow)
        for choice in [("emulated", "int8", 5, "fp32"), ("cpu", "fp32", 5, "fp32"), ("emulated", "fp32", 5, "fp64"),
                       ("cpu", "fp16", 7, "fp64")]
    ),
]  # fmt: skip


def in_coloured_order(blocks: np.ndarray) -> np.ndarray:
    """Rows of blocks (n, n, k, j, i) as the sweeps keep them: first the even columns, then the odd ones."""
    return np.concatenate([blocks[..., ::2], blocks[..., 1::2]], axis=-1).reshape(-1, *SHAPE)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return with_implicit_program(tmp_path_factory.mktemp("sweeps"), PROGRAM)


class Kept(NamedTuple):
    """A program of the sweeps, and blocks of all kinds of rows (6, n, n, k, j, i): as given, as kernels read what is
    kept of them, and the array that keeps them, behind `diagonal` with what was lost."""

    where: str
    precision: str
    program: Any
    storage: str
    given: np.ndarray
    back: np.ndarray
    blocks: np.ndarray
    diagonal: np.ndarray
    model: str

    @property
    def variables(self) -> int:
        return self.given.shape[1]


@pytest.fixture(scope="module", params=CHOICES, ids=lambda choice: "-".join(map(str, choice)))
def kept(root, request) -> Kept:
    where, storage, n, precision = request.param
    name = MODELS[n]
    model = {"viscosity": "sutherland", "turbulence": name, "schmidt": transported_schmidt(name)}
    program = BACKENDS[where](root).compile(
        Configuration(
            program="implicit",
            implicit_storage=storage,
            sweep_precision=precision,
            positivity="none",
            **(model if n > 5 else {}),
        )
    )
    rng = np.random.default_rng(4)
    given = np.zeros((6, n, n, *SHAPE))
    inner = given[WITHIN]
    inner[:] = rng.normal(size=inner.shape)
    inner[:, :, 5:6] /= 700.0
    inner[0, 1] *= 1e30
    inner[0, 2] *= 1e-30
    inner[1, 0] = 0.0
    inner[1, 1, :5] = 2.0 ** rng.integers(-3, 1, inner[1, 1, :5].shape)
    inner[2, :, 1] *= 2.0 ** rng.integers(-40, 1, inner[2, :, 1].shape)  # FP16 has some of them with fewer bits
    inner[3, 2, :5], inner[3, 3, 0] = 127.6 / 8, -255.7  # which of 8 bits would be rounded to 128
    diagonal = 40 * np.eye(n)[..., None, None, None] + rng.normal(size=(n, n, *SHAPE))
    blocks = np.concatenate([in_coloured_order(diagonal), np.zeros((6 * neighbour_words(storage, n), *SHAPE))])
    back = np.zeros((6 * n * n, *SHAPE))
    program.launch("keep_blocks", SIZE, **PLACE, given=given.reshape(-1, *SHAPE), blocks=blocks, back=back)
    return Kept(where, precision, program, storage, given, back.reshape(given.shape), blocks, diagonal, name)


@pytest.mark.parametrize(
    ("storage", "schmidt", "reals"),
    [("fp32", (), 103), ("fp16", (), 67), ("int8", (), 49), ("fp32", (0.7,), 144), ("fp16", (0.7,), 96),
     ("int8", (0.7,), 72)],
)  # fmt: skip
def test_the_field_has_the_numbers_that_kernels_take(storage, schmidt, reals):
    chosen = Configuration(program="implicit", implicit_storage=storage, viscosity="sutherland", schmidt=schmidt)
    _, kernels_of = generate(chosen, "cpu")
    scalars = tuple(f"scalar {n}" for n in range(len(schmidt)))
    layout = Layout(STORAGE["fp64"], Equations(scalars), {"implicit_blocks": block_reals(storage, 5 + len(scalars), 3)})
    takes = {kernel.holds["blocks"] for kernel in kernels_of.values() if "blocks" in kernel.holds}
    assert takes == {reals} == {declared_field("implicit_blocks").variables(layout)}


def units(n: int) -> np.ndarray:
    """The unit of each column of a block: of nu_tilde and of k, which are some hundreds, 1024."""
    return np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1024.0, 1.0])[:n, None, None, None]


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
    on_host = neighbour_blocks(kept.blocks, kept.storage, kept.variables, kept.model)
    np.testing.assert_array_equal(on_host[WITHIN], back)
    np.testing.assert_array_equal(back[1, :2, :5], given[1, :2, :5])
    unit = units(kept.variables)
    off = np.abs(unit * (back - given)).max(axis=2) / np.maximum(np.abs(unit * given).max(axis=2), 1e-300)
    assert off.max() < {"fp32": 2.0**-24, "fp16": 2.0**-11, "int8": 2.0**-6}[kept.storage]
    with_lost = diagonal_blocks(kept.blocks, kept.variables)[WITHIN]
    np.testing.assert_allclose(with_lost, kept.diagonal[WITHIN] + (given - back).sum(axis=0), rtol=1e-12, atol=1e-12)


def test_a_value_that_is_not_finite_is_seen_in_the_diagonal_block(kept):
    for value in (np.nan, np.inf):
        given, blocks = kept.given.copy(), np.zeros_like(kept.blocks)
        given[4, 2, 3, 1, 1, 1] = value
        back = np.zeros((6 * kept.variables**2, *SHAPE))
        kept.program.launch(
            "keep_blocks", SIZE, **PLACE, given=given.reshape(-1, *SHAPE), blocks=blocks, back=back
        )  # fmt: skip
        found = np.isfinite(diagonal_blocks(blocks, kept.variables))
        assert not found[2, 3, 1, 1, 1] and found[:, :, 2:].all()


@pytest.mark.parametrize("direction", [None, 0, 1, 2])
def test_sweeps_over_nodes_and_lines_solve_as_numpy_does(kept, direction):
    """Of a matrix whose neighbours are of the size of 1, with what is kept of them, of inverses and of the update: the
    steps of the elimination in FP64, in which NumPy rounds to FP32 what the sweeps keep in it."""
    n, strides = kept.variables, (1, PLACE["sj"], PLACE["sk"])
    rounding = {"fp64": np.float64, "fp32": np.float32}[kept.precision]
    given = kept.given.copy()
    for side, row in ((0, 1), (0, 2), (3, 2), (3, 3)):
        given[side, row] = 0.5
    blocks, back = kept.blocks.copy(), np.zeros((6 * n * n, *SHAPE))
    blocks[: n * n] = in_coloured_order(kept.diagonal)
    kept.program.launch("keep_blocks", SIZE, **PLACE, given=given.reshape(-1, *SHAPE), blocks=blocks, back=back)
    diagonal, beside = diagonal_blocks(blocks, n), back.reshape(6, n, n, *SHAPE)
    x = np.random.default_rng(5).normal(size=(n, *SHAPE))
    right, update = np.zeros((n, *SHAPE)), np.zeros((packed_reals(n, kept.precision), *SHAPE))
    kept.program.launch("begin_sweeps", SHAPE[::-1], **PLACE | {"o": 0}, x=x, right=right, update=update)
    np.testing.assert_array_equal(in_grid_order(right), x)
    assert not update.any()
    wanted = np.random.default_rng(6).normal(size=(n, *SHAPE)).astype(rounding)
    places = np.arange(PLACE["sv"], dtype=np.int32)
    everywhere = {"p": places, "row": PLACE["sj"], "sv": PLACE["sv"], "update": update}
    kept.program.launch("update_from_exchange", (len(places), 1, 1), **everywhere, exchanged=wanted.astype(float))
    ni, nj, nk = SIZE
    read = {"right": right, "di": 1, "dj": strides[1], "dk": strides[2]}
    extent = ((ni if direction == 0 else (ni + 1) // 2), ((nj + 1) // 2 if direction == 0 else nj), nk)
    common = {**PLACE, "first": 1, "update": update, "blocks": blocks}
    if direction is None:
        kept.program.launch("invert_diagonals", SIZE, **PLACE, sides=None, blocks=blocks)
        inverses = inverse_blocks(blocks[: packed_reals(n * n, kept.precision)], n, kept.precision)
    else:
        along = {"direction": direction, "length": SIZE[direction]}
        factors = np.zeros((packed_reals(n * n, kept.precision), *SHAPE))
        firsts = tuple(1 if d == direction else size for d, size in enumerate(SIZE))
        kept.program.launch(
            "factor_lines", firsts, **PLACE, step=strides[direction], blocks=blocks, factors=factors, **along
        )
        inverses = inverse_blocks(factors, n, kept.precision)
        common |= {"columns": ni, "rows": nj, **along}
    inverses = np.where(np.isfinite(inverses), inverses, 0.0).astype(float)

    def solve(line: list[tuple[int, int, int]]) -> None:
        """The nodes (k, j, i) of a line, one after the other; of a single node its own equations."""
        rest = []
        for node in line:
            known = x[(..., *node)].copy()
            for side in range(6):
                other = list(node)
                other[2 - side // 2] += 2 * (side % 2) - 1
                if tuple(other) not in line:
                    known -= beside[(side, ..., *node)] @ wanted[(..., *other)]
            rest.append(known if direction is None else known.astype(rounding))
        last, pivots = np.zeros(n), []
        for m, node in enumerate(line):
            pivot = diagonal[(..., *node)].copy()
            if m and direction is not None:
                lower = beside[(2 * direction, ..., *node)]
                pivot -= lower @ np.linalg.inv(pivots[-1]) @ beside[(2 * direction + 1, ..., *line[m - 1])]
                rest[m] = rest[m] - lower @ last
            pivots.append(pivot)
            np.testing.assert_allclose(inverses[(..., *node)] @ pivot, np.eye(n), atol=200 * np.finfo(rounding).eps)
            last = inverses[(..., *node)] @ rest[m]
            wanted[(..., *node)] = last
        for node in line[-2::-1]:
            upper = beside[(2 * direction + 1, ..., *node)]
            last = wanted[(..., *node)] - inverses[(..., *node)] @ (upper @ last)
            wanted[(..., *node)] = last

    for colour in (0, 1):
        if direction is None:
            kept.program.launch("colour_sweep", extent, **common, **read, length=ni, colour=colour)
        else:
            kept.program.launch("line_right", extent, **common, **read, colour=colour)
            kernel, of_lines = range_of_lines(kept.program, extent, direction)
            assert (kernel == "line_sweep") == (kept.where == "cpu")
            kept.program.launch(kernel, of_lines, **common, step=strides[direction], factors=factors, colour=colour)
        for start in product(*(range(1 if d == direction else size) for d, size in enumerate(SIZE))):
            if (sum(start) + 1) % 2 == colour:
                length = 1 if direction is None else SIZE[direction]
                solve([tuple(1 + a + m * (d == direction) for d, a in enumerate(start))[::-1] for m in range(length)])
    found = np.zeros((n, *SHAPE))
    kept.program.launch("update_to_vector", SIZE, **PLACE, update=update, x=found)
    np.testing.assert_array_equal(found[WITHIN], in_precision(update, n, kept.precision)[WITHIN])
    off = np.abs(found - wanted)[WITHIN]
    assert np.abs(wanted).max() > 0.1 and off.max() < 4 * np.finfo(rounding).eps * np.abs(wanted).max()


def test_inverses_have_pivots_from_below_the_diagonal(kept):
    """Blocks with 0 on the diagonal, and one without an inverse."""
    n, rounding = kept.variables, {"fp64": np.float64, "fp32": np.float32}[kept.precision]
    given = np.random.default_rng(8).normal(size=(n, n, *SHAPE)) + 3 * np.eye(n)[:, ::-1, None, None, None]
    given[np.arange(n), np.arange(n)] = 0.0
    given[:, :, 2, 3, 4] = 1.0
    blocks = np.concatenate([in_coloured_order(given), np.zeros((6 * neighbour_words(kept.storage, n), *SHAPE))])
    kept.program.launch("invert_diagonals", SIZE, **PLACE, sides=None, blocks=blocks)
    found = inverse_blocks(blocks[: packed_reals(n * n, kept.precision)], n, kept.precision)
    assert not np.isfinite(found[:, :, 2, 3, 4]).all()
    given[:, :, 2, 3, 4] = found[:, :, 2, 3, 4] = np.eye(n)
    of_node = np.moveaxis(given[WITHIN], (0, 1), (-2, -1))
    wanted = np.moveaxis(np.linalg.inv(of_node), (-2, -1), (0, 1))
    off = np.abs(found[WITHIN] - wanted).max(axis=(0, 1)) / np.abs(wanted).max(axis=(0, 1))
    assert (off < 20 * np.finfo(rounding).eps * np.linalg.cond(of_node)).all()


def test_the_update_goes_to_the_exchange_and_back(kept):
    n, rounding = kept.variables, {"fp64": np.float64, "fp32": np.float32}[kept.precision]
    update, natural = np.zeros((packed_reals(n, kept.precision), *SHAPE)), np.zeros((n, *SHAPE))
    values = np.random.default_rng(6).normal(size=(n, *SHAPE)).astype(rounding)
    natural[:] = values
    places = np.arange(0, PLACE["sv"], 2, dtype=np.int32)
    common = {"row": PLACE["sj"], "sv": PLACE["sv"], "update": update, "p": places}
    kept.program.launch("update_from_exchange", (len(places), 1, 1), **common, exchanged=natural)
    found = in_precision(update, n, kept.precision).reshape(n, -1)
    np.testing.assert_array_equal(found[:, ::2], values.reshape(n, -1)[:, ::2])
    assert not found[:, 1::2].any()
    natural[:] = 0.0
    kept.program.launch("update_to_exchange", (len(places), 1, 1), **common, exchanged=natural)
    np.testing.assert_array_equal(natural.reshape(n, -1), found)
