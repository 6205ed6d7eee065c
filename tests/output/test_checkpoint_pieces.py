"""Pieces of arrays in checkpoints, without a communicator: any box from any cut."""

import random
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from checkpoint_pieces import cut, inside
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hiresx.decomposition.held_arrays import LazyArray, Piece
from hiresx.grid.blocks import slices
from hiresx.mpi.communicator import Communicator
from hiresx.output.saved import container, distributed_arrays
from hiresx.output.saved.container import DamagedCheckpoint


def stored(path: Path, boxes: list, array: np.ndarray) -> container.Container:
    made = [Piece("q", box, array[(..., *slices(box))]) for box in boxes]
    container.write(path, {}, distributed_arrays.label_pieces("p/", made))
    return container.Container(path)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9), parts=st.integers(1, 9), lead=st.sampled_from([(), (5,), (2, 3)]))
def test_any_box_is_read_from_any_cut(tmp_path_factory, seed, parts, lead):
    dice, size = random.Random(seed), (11, 7, 5)
    array = np.random.default_rng(seed).random((*lead, *reversed(size)))
    boxes = cut(size, parts, dice)
    found = stored(tmp_path_factory.getbasetemp() / "cut.hxc", boxes, array)
    kept = distributed_arrays.read_from_memory(Piece("q", box, array[(..., *slices(box))]) for box in boxes)
    for read in (distributed_arrays.read_from_file(found, "p/"), kept):
        assert read.whole("q") == tuple((0, n) for n in size)
        for box in (read.whole("q"), inside(size, dice), inside(size, dice)):
            assert np.array_equal(read("q", box), array[(..., *slices(box))])


def test_large_arrays_are_read_a_few_planes_at_a_time(tmp_path, monkeypatch):
    array = np.random.default_rng(1).random((3, 9, 8, 7))
    found = stored(tmp_path / "c", [((0, 7), (0, 8), (0, 4)), ((0, 7), (0, 8), (4, 9))], array)
    for chunk in (1, 500, 1000, 2500):
        monkeypatch.setattr(container, "_CHUNK", chunk)
        for box in (((0, 7), (0, 8), (0, 9)), ((2, 3), (1, 7), (3, 8))):
            assert np.array_equal(distributed_arrays.read_from_file(found, "p/")("q", box), array[(..., *slices(box))])


def test_a_piece_is_held_neither_in_writing_nor_in_reading(tmp_path):
    shape, size = (5, 64, 64, 64), (64, 64, 64)
    nbytes = 8 * 5 * 64**3  # 10 MB
    made = [
        (
            distributed_arrays.label("q", ((64 * n, 64 * (n + 1)), (0, 64), (0, 64))),
            LazyArray(shape, float, lambda: np.ones(shape)),
        )
        for n in range(8)
    ]
    tracemalloc.start()
    try:
        container.write(tmp_path / "c", {}, made)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * nbytes, "one array after the other"
        container._CHUNK, chunk = 1 << 18, container._CHUNK
        read = distributed_arrays.read_from_file(container.Container(tmp_path / "c"))
        tracemalloc.reset_peak()
        part = read("q", ((60, 70), (0, 64), (0, 64)))
        assert tracemalloc.get_traced_memory()[1] < part.nbytes + 2**20
    finally:
        container._CHUNK = chunk
        tracemalloc.stop()
    assert part.shape == (5, 64, 64, 10) and (part == 1).all() and read.whole("q")[1] == (0, size[1])


def test_only_pieces_that_meet_the_box_are_read(tmp_path):
    array = np.random.default_rng(1).random((2, 3, 4, 12))
    found = stored(tmp_path / "c", [((0, 6), (0, 4), (0, 3)), ((6, 12), (0, 4), (0, 3))], array)
    content = bytearray((tmp_path / "c").read_bytes())
    content[len(container.MAGIC) + array.nbytes // 2 + 5] ^= 1  # in the second
    (tmp_path / "c").write_bytes(content)
    read = distributed_arrays.read_from_file(found, "p/")
    left = ((1, 6), (0, 4), (0, 2))
    assert np.array_equal(read("q", left), array[(..., *slices(left))])
    with pytest.raises(DamagedCheckpoint, match=r"array p/q\[6:12,0:4,0:3\] was changed"):
        read("q", ((5, 7), (0, 1), (0, 1)))


def test_pieces_that_do_not_fit_are_refused(tmp_path):
    box, array = ((0, 3), (0, 2), (0, 1)), np.zeros((1, 2, 3))
    with pytest.raises(ValueError, match=r"q\[0:3,0:2,0:1\]: an array of the shape"):
        Piece("q", box, np.zeros((1, 3, 2)))
    with pytest.raises(ValueError, match="do not make up a whole"):
        distributed_arrays.check_whole(["q[0:3,0:2,0:1]", "q[2:5,0:2,0:1]"])
    with pytest.raises(ValueError, match="do not make up a whole"):
        distributed_arrays.check_whole(["a", "q[3:5,0:2,0:1]"])
    distributed_arrays.check_whole(["a", "q[0:3,0:2,0:1]", "q[3:5,0:2,0:1]", "b[0:1,0:1,0:1]"])
    container.write(
        tmp_path / "c", {}, [("q[0:3,0:2,0:1]", array), ("q[2:5,0:2,0:1]", array), ("r[0:2,0:3,0:1]", array)]
    )
    found = container.Container(tmp_path / "c")
    with pytest.raises(DamagedCheckpoint, match="the pieces of r do not fit"):
        distributed_arrays.read_from_file(found)
    container.write(tmp_path / "c", {}, [("q[0:3,0:2,0:1]", array), ("q[2:5,0:2,0:1]", array)])
    read = distributed_arrays.read_from_file(container.Container(tmp_path / "c"))
    assert not read("q", ((0, 2), (0, 2), (0, 1))).any()
    with pytest.raises(DamagedCheckpoint, match=r"two pieces of q hold nodes of \[2:5,"):
        read("q", ((0, 5), (0, 2), (0, 1)))
    with pytest.raises(DamagedCheckpoint, match=r"nodes of q\[3:6,0:2,0:1\] are in no piece"):
        read("q", ((3, 6), (0, 2), (0, 1)))
    with pytest.raises(DamagedCheckpoint, match="there is no array p"):
        read("p", box)
    with pytest.raises(LookupError, match="no array"):
        distributed_arrays.read_from_memory([])("p", box)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_pieces_in_other_places_are_refused(tmp_path_factory, seed):
    dice, size, path = random.Random(seed), (6, 5, 4), tmp_path_factory.getbasetemp() / "moved.hxc"
    array = np.random.default_rng(seed).random((2, *reversed(size)))
    boxes = cut(size, 4, dice)
    made = dict(distributed_arrays.label_pieces("", [Piece("q", box, array[(..., *slices(box))]) for box in boxes]))
    label = dice.choice(list(made))
    numbers, change = [int(n) for n in re.findall(r"\d+", label)], dice.choice([1, 2, 10**6, 999_999_000])
    d = dice.randrange(3)
    ends = [(numbers[2 * e] + change * (e == d), numbers[2 * e + 1] + change * (e == d)) for e in range(3)]
    assume(distributed_arrays.label("q", ends) not in made)
    container.write(
        path, {}, [(key if key != label else distributed_arrays.label("q", ends), made[key]) for key in made]
    )
    with pytest.raises(DamagedCheckpoint):
        distributed_arrays.read_from_file(container.Container(path))("q", tuple((0, n) for n in size))
    with pytest.raises(DamagedCheckpoint):  # nor is a large array made for it
        read = distributed_arrays.read_from_file(container.Container(path))
        read("q", ((0, read.whole("q")[0][1]), *((0, 10**9),) * 2))


def test_a_team_of_one_writes_the_same_file(tmp_path):
    arrays = [("a", np.arange(5)), ("b", np.eye(3))]
    container.write(tmp_path / "a", {"x": 1}, arrays)
    container.write(tmp_path / "b", {"x": 1}, iter(arrays), Communicator())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_shares_of_what_is_verified_are_even_and_miss_nothing(tmp_path):
    sizes = [1, 7, 100, 3, 50, 50, 0, 99, 2]
    container.write(tmp_path / "c", {}, [(str(n), np.zeros(size)) for n, size in enumerate(sizes)])
    found = container.Container(tmp_path / "c")
    for number in (1, 2, 3, 20):
        shares = found._shares(number)
        assert sorted(entry.name for share in shares for entry in share) == sorted(found.names)
        assert max(sum(entry.bytes for entry in share) for share in shares) <= 8 * max(100, sum(sizes) / number + 50)
