"""The kernels of ghosts of tiles beside those of patched faces, which read all nodes of a ghost at once."""

import numpy as np
import pytest
from kernels_alone import BACKENDS, GAMMA, ORIGIN, POINTS, SHAPE, STRIDES, conservative, primitive, program, random

from hiresx.decomposition.tile_ghosts import first_places, over_boxes
from hiresx.device.arguments import address
from hiresx.equations.gas import Gas
from hiresx.exchange.filled_lists import ListBoxes, filled_lists
from hiresx.simulation.prolongation import _line, interpolate

KERNELS = ("half_point.h", "metrics.h", "interpolated.h", "boundary/patched.h", "level_ghosts.h")
# For three boxes: the normal, and the columns along i, j and k. Layers along j go towards its first node.
BOXES = [
    (0, [0, 1], range(4, 9), range(10, 13)),
    (1, range(1, 4), [9, 8, 7], range(11, 14)),
    (2, range(3), range(5, 8), [10, 11, 12]),
]
START = np.array([0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1], np.int32)
HALFWAY = np.array([3, -25, 150, 150, -25, 3]) / 256


def weights_of_lines(rng):
    """(2, 6, columns): on a node in every second column, halfway in the others, and in some a part of the stencil."""
    weights = np.zeros((2, 6, len(START)))
    weights[0, :, ::2], weights[1, 2:4, ::2] = HALFWAY[:, None], 0.5
    weights[:, 2, 1::2] = 1.0
    weights[:, 4:, 6] = weights[:, :2, 10] = 0.0
    return weights * rng.uniform(0.9, 1.1, len(START))


@pytest.mark.parametrize("what", ["state", "flux", "field"])
def test_boxes_have_the_shares_of_their_ghosts_one_by_one(backend, what):
    rng = random(5)
    made, weights = program(backend, KERNELS, viscosity="constant"), weights_of_lines(rng)
    rows, giving, of_ghosts, values = [], [], [], 0
    for normal, *columns in BOXES:
        columns = [np.array(some) for some in columns]
        face = [d for d in range(3) if d != normal]
        first = [START[columns[d]].min() for d in face]
        width = [START[columns[d]].max() + 6 - lo for d, lo in zip(face, first, strict=True)]
        layers = columns[normal]
        origin = ORIGIN + sum(lo * STRIDES[d] for d, lo in zip(face, first, strict=True))
        of_face = [len(columns[d]) for d in face] + [columns[d][0] for d in face] + width + first
        strides = [STRIDES[d] for d in (normal, *face)]
        rows.append([len(giving), values, *strides, origin, layers[0], layers[1] - layers[0], 0, *of_face])
        values += len(layers) * width[0] * width[1]
        for layer in layers:
            for second in columns[face[1]]:
                for one in columns[face[0]]:
                    own = [0, 0, 0]
                    own[normal], own[face[0]], own[face[1]] = layer, one, second
                    giving.append(ORIGIN + sum(START[c] * s for c, s in zip(own, STRIDES, strict=True)))
                    of_ghosts.append(weights[:, :, own].transpose(0, 2, 1))
    count, width = len(giving), {"state": 10, "flux": 12, "field": 3}[what]
    q = conservative(primitive(rng, *SHAPE))
    m = np.eye(3).reshape(9, 1, 1, 1) + rng.uniform(-0.2, 0.2, (9, *SHAPE))
    given = {
        "state": {"q": q},
        "flux": {"wj": 6, "wk": 6, "m": m, "flux": rng.normal(size=(12, *SHAPE))},
        "field": {"field": rng.normal(size=(3, *SHAPE))},
    }[what]
    variables = {"variables": width} if what == "field" else {}
    to = rng.permutation(count).astype(np.int32)
    strides = {"sj": STRIDES[1], "sk": STRIDES[2], "sv": POINTS}
    wanted, found, layers = np.zeros((count, width)), np.full((count, width), np.nan), np.full((width, values), np.nan)
    made.launch(
        f"patched_{what}", (count, 1, 1), n=count, **({"wi": 6, "wj": 6, "wk": 6} | given), **strides, **variables,
        giving=np.array(giving, np.int32), to=to, weights=np.ascontiguousarray(np.stack(of_ghosts, axis=-1)),
        buffer=wanted,
    )  # fmt: skip
    kind = "" if what == "state" else f"{what}_"
    common = {
        "n": values, "boxes": len(rows), "columns": len(START), "box": np.array(rows, np.int32).ravel(), "start": START,
        "weights": weights, "layers": layers, **variables,
    }  # fmt: skip
    arrays = [given[name] for name in ("q", "m", "flux", "field") if name in given]
    part = [*(address(array) for array in arrays), *[0] * (2 - len(arrays)), POINTS, 6, 6]
    made.launch(f"level_{kind}layers", (values, 1, 1), **common, part=np.array(part, np.int64))
    made.launch(f"level_{kind}shares", (count, 1, 1), **common, to=to, buffer=found)
    assert np.abs(wanted).max() > 0.1
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14 * np.abs(wanted).max())


def test_lists_are_linear_functions_in_boxes(backend):
    """With more entries than one point sets, in boxes that begin and end within the work of a point."""
    rng = random(6)
    sizes, steps = rng.integers(1, 6, (40, 3)), rng.integers(-9, 9, (40, 3))
    value, nodes = rng.integers(-99, 99, 40), sizes.prod(axis=1)
    first = 3 * first_places(nodes)
    boxes = [ListBoxes(sizes, value, steps, first, 3), ListBoxes(sizes[:7], 4, 0, first[:7] + 1, 3)]
    found = filled_lists(BACKENDS[backend](), program(backend, KERNELS), 3 * int(nodes.sum()), boxes)
    (wanted,) = over_boxes(sizes[:, ::-1], value[None], steps[None, :, ::-1])
    np.testing.assert_array_equal(found[::3], wanted)
    np.testing.assert_array_equal(found[1 : 3 * nodes[:7].sum() : 3], 4)


def test_nodes_of_new_tiles_are_those_of_the_interpolation_in_numpy(backend):
    """A smooth flow with a jump, at nodes near the ends of a level and far from them."""
    coarse, windows, dense = (14, 12, 11), [], []
    lines = [_line(lo, hi, n, (0, n)) for (lo, hi), n in zip(((0, 9), (5, 16), (11, 21)), coarse, strict=True)]
    for (first, last), start, weights in lines:
        windows.append(slice(first, last))
        made = np.zeros((2, len(start), last - first))
        for n, a in enumerate(start):
            made[:, n, a : a + 6] = weights[:, :, n]
        dense.append(made)
    k, j, i = np.meshgrid(*(np.arange(n) / n for n in reversed(coarse)), indexing="ij")
    wave = 0.3 * np.sin(7 * i + 2 * j) * np.cos(5 * k) + np.where(i + j > 0.9, 2.0, 0.0)
    given = conservative(np.stack([3 + wave, wave, 0.4 * wave, 1 - wave, 4 + wave]))
    window = np.ascontiguousarray(given[(slice(None), *reversed(windows))])
    wanted = interpolate(window, dense, Gas(GAMMA))
    size = wanted.shape[:0:-1]
    q = np.full(wanted.shape, np.nan)
    start = np.concatenate([start for _, start, _ in lines]).astype(np.int32)
    weights = np.ascontiguousarray(np.concatenate([own for *_, own in lines], axis=-1))
    program(backend, (*KERNELS, "new_tiles.h")).launch(
        "new_tile_nodes", size, o=0, sj=size[0], sk=size[0] * size[1], sv=q[0].size, nodes_i=size[0], nodes_j=size[1],
        columns=len(start), wi=window.shape[3], wj=window.shape[2], wk=window.shape[1], start=start, weights=weights,
        coarse=window, q=q,
    )  # fmt: skip
    np.testing.assert_allclose(q, wanted, rtol=1e-13)
    linear = interpolate(window, [np.stack([own[1]] * 2) for own in dense], Gas(GAMMA))
    assert np.abs(q - linear).max() > 1e-3
