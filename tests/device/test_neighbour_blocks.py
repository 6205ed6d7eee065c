"""The blocks of neighbours of the implicit integrator in every storage, and sweeps with them, against NumPy."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from kernels_alone import with_implicit_program
from sweep_blocks import diagonal_blocks, line_blocks, neighbour_blocks

from hiresx.device.configuration import Configuration
from hiresx.device.cpu import CpuBackend
from hiresx.device.emulated import EmulatedBackend
from hiresx.device.fields import Layout, declared_field
from hiresx.device.wrappers import generate
from hiresx.equations import Equations
from hiresx.equations.diffusivity import transported_schmidt
from hiresx.equations.storage import STORAGE, block_reals, factor_reals, neighbour_words, packed_reals
from hiresx.solver.coloured_arrays import in_grid_order, in_precision, inverse_blocks, of_lines, unpacked_inverses
from hiresx.solver.sweeps import AHEAD

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
# Nodes along i, j, k; the same with a ghost on either side. Lines along j and k of one colour are a pack with a line
# less than it could have, those along i a pack and a line.
SIZE = (15, 18, 3)
SHAPE = tuple(size + 2 for size in SIZE[::-1])
PLACE = {"o": 1 + 17 + 17 * 20, "sj": 17, "sk": 17 * 20, "sv": 17 * 20 * 5}
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


def with_ghosts(inner: np.ndarray) -> np.ndarray:
    found = np.zeros((*inner.shape[:-3], *SHAPE))
    found[WITHIN] = inner
    return found


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
    steps of the elimination in FP64, in which NumPy rounds to FP32 what the sweeps keep in it. It takes the products
    that lines in FP32 read instead of blocks as they are kept."""
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
    extent = ((ni + 1) // 2, ((nj + 1) // 2 if direction == 0 else nj), nk)
    common, values = {**PLACE, "first": 1, "update": update}, np.zeros_like(update)
    if direction is None:
        kept.program.launch("invert_diagonals", SIZE, **PLACE, sides=None, blocks=blocks)
        inverses = inverse_blocks(blocks[: packed_reals(n * n, kept.precision)], n, kept.precision)
    else:
        across, others = (size for d, size in enumerate(SIZE) if d != direction)
        along = {"direction": direction, "length": SIZE[direction]}
        factors = np.zeros((factor_reals(kept.storage, n, kept.precision), *SHAPE))
        of_block = {"across": across, "others": others, "step": strides[direction]}
        kept.program.launch(
            "factor_lines", (across, others, 1), **PLACE, **along, **of_block, blocks=blocks, factors=factors
        )  # fmt: skip
        of_nodes = of_lines(factors, SIZE, direction)
        inverses = with_ghosts(unpacked_inverses(of_nodes, n, kept.precision))
        if kept.precision == "fp32":
            along_line = with_ghosts(line_blocks(of_nodes, kept.storage, n, kept.model))
        else:
            along_line = np.einsum("ab...,sbc...->sac...", inverses, beside[2 * direction : 2 * direction + 2])
        common |= along
    inverses = np.where(np.isfinite(inverses), inverses, 0.0).astype(float)
    error = (2.0**-11 if kept.storage == "fp16" else 2.0**-24) * 1.01  # of a row, and of pivots in FP64

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
            pivots.append(pivot)
            np.testing.assert_allclose(inverses[(..., *node)] @ pivot, np.eye(n), atol=200 * np.finfo(rounding).eps)
            last = inverses[(..., *node)] @ rest[m] - (along_line[(0, ..., *node)] @ last if m else 0.0)
            wanted[(..., *node)] = last
        for node in line[-2::-1]:
            last = wanted[(..., *node)] - along_line[(1, ..., *node)] @ last
            wanted[(..., *node)] = last
        for m, node in enumerate(line if direction is not None and kept.precision == "fp32" else []):
            for side, there in ((0, m > 0), (1, m + 1 < len(line))):
                exact = np.linalg.solve(pivots[m], beside[(2 * direction + side, ..., *node)]) * there
                size = np.abs(exact * units(n)[:, 0, 0, 0]).max(axis=1, keepdims=True) / units(n)[:, 0, 0, 0]
                off = np.abs(along_line[(side, ..., *node)] - exact)
                assert (off <= max(error, 200 * np.finfo(rounding).eps) * size).all()

    for colour in (0, 1):
        if direction is None:
            kept.program.launch("colour_sweep", extent, **common, blocks=blocks, **read, length=ni, colour=colour)
        else:
            rows = {"columns": ni, "rows": nj, "blocks": blocks, "across": across, "others": others}
            ahead = AHEAD in kept.program.signatures
            assert ahead == (kept.where == "emulated")
            rows["values"] = values if ahead and direction != 0 else None
            for parity in range(2 if direction == 0 else 1):
                kept.program.launch("line_right", extent, **common, **rows, **read, parity=parity, colour=colour)
            given = {**common, **of_block, "factors": factors, "colour": colour}
            turning = {**given, "values": values}
            for name in ("direction", "step", "factors"):
                del turning[name]
            if ahead and direction == 0:
                kept.program.launch("turn_lines", (1, 1, nk), **turning, way=0)
            if ahead:
                warps = -(-((across + 1) // 2) * others // 32)
                kept.program.launch(AHEAD, (warps, 1, 1), **given, ordered=1, values=values)
            else:
                kept.program.launch("line_sweep", ((across + 1) // 2, others, 1), **given)
            if ahead and direction == 0:
                kept.program.launch("turn_lines", (1, 1, nk), **turning, way=1)
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


def test_what_lines_along_i_solve_for_is_turned_and_turned_back(kept):
    """The numbers of the lines of one colour, from the order of the update to that of the factors, in several tiles."""
    if kept.where == "cpu":
        assert "turn_lines" not in kept.program.signatures
        return
    size, shape = (35, 67, 2), (4, 69, 37)
    reals = packed_reals(kept.variables, kept.precision)
    given = np.arange(1.0, reals * np.prod(shape) + 1).reshape(reals, *shape)
    turned, back = np.zeros_like(given), np.zeros_like(given)
    place = {"o": 1 + 37 + 37 * 69, "sj": 37, "sk": 37 * 69, "sv": 37 * 69 * 4, "first": 1, "colour": 1}
    place |= {"length": 35, "across": 67, "others": 2}
    kept.program.launch("turn_lines", (2, 2, 2), **place, way=0, update=given, values=turned)
    kept.program.launch("turn_lines", (2, 2, 2), **place, way=1, update=back, values=turned)
    rows = (np.arange(67) + np.arange(2)[:, None]) % 2 == 0  # the sum of indices and of `first` is odd
    in_grid = in_precision(given, kept.variables, kept.precision)[WITHIN]
    wanted = np.where(rows[..., None], in_grid, 0.0)
    of_kind = in_precision(given, kept.variables, kept.precision).dtype
    found = of_lines(turned.reshape(-1).view(of_kind)[: kept.variables * place["sv"]].reshape(-1, *shape), size, 0)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(in_precision(back, kept.variables, kept.precision)[WITHIN], wanted)
