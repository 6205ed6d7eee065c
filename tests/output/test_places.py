"""Where values lie in files, without a communicator."""

import itertools
import random
from types import SimpleNamespace

import numpy as np
import pytest
from rank_fields import KINDS, VARIABLES, contents, cut, grid, written

from hiresx.mpi.communicator import single_process
from hiresx.output.fields import field_file as fields
from hiresx.output.saved.files import FileLayout
from hiresx.output.saved.places import IndexBox, IndexPoints


@pytest.mark.parametrize("seed", range(30))
def test_places_hold_what_numpy_would_put_there(tmp_path, seed, monkeypatch):
    dice = random.Random(seed)
    monkeypatch.setattr("hiresx.output.saved.files._SLAB", dice.choice([1, 300, 1 << 24]))
    shape = tuple(dice.randint(1, 9) for _ in range(3))
    ends = tuple((0, n) if dice.random() < 0.4 else tuple(sorted(dice.sample(range(n + 1), 2))) for n in shape)
    chosen = sorted(dice.sample(range(np.prod(shape)), dice.randint(0, int(np.prod(shape)))))
    chance = np.random.default_rng(seed)
    with (tmp_path / "a").open("wb+") as file:
        for place in (IndexBox(shape, ends), IndexPoints(np.array(chosen, np.int64))):
            for count, dtype in ((1, "f8"), (3, "f4"), (1, "u1")):
                kind = np.dtype(dtype)
                parts = [chance.integers(0, 200, place.shape).astype(float) for _ in range(count)]
                expected = np.zeros((*shape, count), kind)
                values = np.stack(parts, axis=-1)
                if isinstance(place, IndexBox):
                    expected[tuple(slice(*e) for e in ends)] = values
                else:
                    expected.reshape(-1, count)[chosen] = values
                file.truncate(0)
                file.truncate(11 + expected.nbytes)
                layout = FileLayout(11 + expected.nbytes, [], {"a": (11, kind, expected.shape)})
                layout.put(file.fileno(), "a", place, parts)
                file.seek(11)
                assert file.read() == expected.tobytes()


@pytest.mark.parametrize(
    "place",
    [
        IndexBox((4, 3, 6), ((0, 4), (0, 3), (0, 5))),  # of another array
        IndexBox((4, 3, 5), ((0, 4), (0, 3), (3, 6))),
        IndexBox((4, 3, 5), ((3, 5), (0, 3), (0, 5))),
        IndexPoints(np.array([2, 60])),
        IndexPoints(np.array([-1, 5])),
    ],
    ids=["other shape", "beyond i", "beyond k", "beyond", "before"],
)
def test_places_that_an_array_does_not_have_are_refused_before_anything_is_written(tmp_path, place):
    (tmp_path / "a").write_bytes(b"-" * 1000)
    layout = FileLayout(11 + 480, [], {"a": (11, np.dtype("f8"), (4, 3, 5, 1))})
    with (tmp_path / "a").open("rb+") as file, pytest.raises(ValueError, match="no place in an array of the shape"):
        layout.put(file.fileno(), "a", place, [np.ones(place.shape)])
    assert (tmp_path / "a").read_bytes() == b"-" * 1000


def test_many_parts_of_one_process(tmp_path):
    """Cuts within a rank: the same files."""
    written(single_process(), tmp_path / "a", "solid")
    parts = cut(grid(KINDS["solid"][1]), 9, 1, random.Random(3))
    assert len(parts) > 5
    written(single_process(), tmp_path / "b", "solid", parts)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_where_arrays_lie_in_a_file_of_many_blocks(tmp_path):
    blocks = [SimpleNamespace(name=f"b{n}", shape=(3, 40, 30 + n % 7), gaps=()) for n in range(60)]
    series = fields.Series(blocks, {"title": "", "output": {"variables": VARIABLES}}, precision="fp32")
    found = series.measure_layout(tmp_path / "f.nc")
    assert len(found.arrays) == 2 + 60 * (3 + len(VARIABLES))
    ends = sorted((offset, dtype.itemsize * int(np.prod(shape))) for offset, dtype, shape in found.arrays.values())
    assert all(a + size <= b for (a, size), (b, _) in itertools.pairwise(ends))
