"""Plot3D files: round trips, Fortran's records and text, what is refused, hostile bytes."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiresx.errors import HiresxError
from hiresx.grid import (
    Block,
    Grid,
    matched_connections,
    plot3d,
    read_plot3d,
    write_plot3d,
)


def random_blocks(sizes, seed=0) -> Grid:
    random = np.random.default_rng(seed)
    return Grid(
        tuple(
            Block(f"block-{n}", *(random.normal(size=size[::-1]) * (d < 2 or size[2] > 1) for d in range(3)))
            for n, size in enumerate(sizes, 1)
        )
    )


@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
@pytest.mark.parametrize(
    "sizes, layout",
    [
        ([(7, 8, 9)], {}),
        ([(7, 8, 9)], {"single": True}),
        ([(7, 8, 9), (10, 7, 11)], {}),
        ([(7, 8, 1)], {"planar": True, "single": True}),
        ([(7, 8, 1), (9, 10, 1), (8, 7, 1)], {"planar": True}),
        ([(7, 8, 1), (9, 10, 1)], {}),
    ],
)
def test_plot3d_round_trip(tmp_path, ascii, precision, sizes, layout):
    grid = random_blocks(sizes)
    for big_endian in (False, True):
        write_plot3d(tmp_path / "g.xyz", grid, ascii=ascii, precision=precision, big_endian=big_endian, **layout)
        blocks = read_plot3d(tmp_path / "g.xyz")
        assert [b.name for b in blocks] == [b.name for b in grid.blocks]
        for block, original in zip(blocks, grid.blocks, strict=True):
            for name in "xyz":
                wanted = getattr(original, name).astype({"fp64": "f8", "fp32": "f4"}[precision])
                # Shortest text reads back as the number it was in the precision it was written in.
                np.testing.assert_array_equal(getattr(block, name).astype(wanted.dtype), wanted)
    assert [p.name for p in tmp_path.iterdir()] == ["g.xyz"]


def test_plot3d_subrecords(tmp_path, monkeypatch):
    monkeypatch.setattr(plot3d, "SUBRECORD", 1000)
    grid = random_blocks([(7, 8, 9), (7, 7, 7)])
    write_plot3d(tmp_path / "g.xyz", grid)
    for block, original in zip(read_plot3d(tmp_path / "g.xyz"), grid.blocks, strict=True):
        np.testing.assert_array_equal(block.x, original.x)


def test_plot3d_fortran_text(tmp_path):
    """List-directed output: repeat counts, commas, D exponents, lines anywhere."""
    x = " ".join(["0.0, .1D0, 2D-1, 3d-1 0.4 0.5 0.6"] * 7)
    y = " ".join(f"7*{0.5 * n}" for n in range(7))
    (tmp_path / "g.x").write_text(f"  7 , 7\n{x}\n{y}\n")
    (block,) = read_plot3d(tmp_path / "g.x")
    assert block.x.shape == (1, 7, 7)
    np.testing.assert_allclose(block.x[0, 3], np.arange(7) / 10)
    np.testing.assert_allclose(block.y[0, :, 2], np.arange(7) / 2)
    (tmp_path / "many.x").write_text(f"1\n2*7\n{x}\n{y}\n")  # one block, and repeat counts among the sizes
    (same,) = read_plot3d(tmp_path / "many.x")
    assert np.array_equal(same.x, block.x) and np.array_equal(same.y, block.y)


def record(data: bytes) -> bytes:
    n = len(data).to_bytes(4, "little")
    return n + data + n


def integers(*values) -> bytes:
    return record(np.array(values, "<i4").tobytes())


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "empty"),
        (b"\0", "byte 0"),
        (b"\0" * 100, "byte 0"),
        (b"hello world\n", r"line 1: 'hello'"),
        (b"solid part\n", r"line 1: 'solid'"),
        (b"2 2\n1 2\n3 x 1\n", r"line 3: 'x'"),
        (b"7 7\n" + b"1 " * 97, "take 100 numbers, the file holds 99"),
        (b"7 7\n" + b"0,5 1,0\n" * 49, "line 2: '0,5' has a decimal comma"),
        (b"7 7\n" + b"1 0;\n -2,5E-01;\n" * 49, "line 3: '-2,5E-01' has a decimal comma"),
        (b"7 7\n" + b"0.5,1 " * 30, "take 100 numbers, the file holds 62"),
        (b"2 7 7 1 9 7 1\n" + b"1 " * 97, "7 x 7 x 1, 9 x 7 x 1 nodes take 343 numbers, the file holds"),
        (b"nan 7\n", "line 1"),
        (b"9999 9999 9999\n1 2 3\n", "take 2999100090000 numbers"),
        (b"1000 1000 1000 999999999*0 999999999*0 999999999*0 3*0\n", "cannot describe"),
        (b"9 999999999*9\n", "line 1"),
        (b"2*3*4 1", r"'2\*3\*4'"),
        (b"9" * 100_000, "line 1"),
        (integers(1), "ends before the block sizes"),
        (integers(7, 7), "ends before block 1"),
        (integers(1)[:-1], "byte 0"),
        (integers(-1) + integers(7, 7, 7), "byte 12"),
        (integers(2**31 - 1) + integers(7, 7, 7), "byte 12.*cannot hold"),
        (integers(1) + integers(7, -7, 7), "byte 12.*7 x -7 x 7"),
        (integers(2**31 - 1, 2**31 - 1, 2**31 - 1) + record(b"12345678"), "byte 20.*neither single nor double"),
        (integers(7, 7) + record(bytes(49 * 8))[:-1], "beyond the file's end"),
        (integers(7, 7) + record(bytes(49 * 8))[:-4] + b"\1\0\0\0", "trailing length 1 differ"),
        (integers(7, 7) + record(bytes(49 * 12)), "49 blanked nodes"),
        (integers(7, 7) + record(bytes(49 * 8)) + b"\0", "byte 416: the file ends within"),
        (integers(7, 7) + record(bytes(49 * 8)) + record(b""), "8 bytes follow"),
        (integers(7, 7) + record(np.full(98, np.nan).tobytes()), r": block 'block-1': x is not finite at node"),
        (integers(7, 3) + record(bytes(21 * 8)), "3 nodes in direction j"),
        (b"".join(n.to_bytes(4, "little") for n in (7, 8, 9)) + bytes(6200), "7 x 8 x 9 nodes take 12108 bytes"),
        (
            b"".join(n.to_bytes(4, "little") for n in (2, 7, 8, 1, 9, 8, 1)) + bytes(1600),
            "7 x 8 x 1, 9 x 8 x 1 nodes take 3100 bytes",
        ),
    ],
)
def test_plot3d_refusals(tmp_path, content, message):
    path = tmp_path / "bad.xyz"
    path.write_bytes(content)
    with pytest.raises(HiresxError, match=message) as caught:
        read_plot3d(path)
    if re.search("ends before|beyond the file's end|the file holds 99$", caught.value.message):
        assert "copy the file again if it was cut short" in caught.value.hint


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_plot3d_hostile_bytes(tmp_path, data):
    """Whatever the bytes, a grid or a HiresxError."""
    small = np.arange(7 * 7 * 2, dtype="<f4")
    start = data.draw(
        st.sampled_from(
            [
                b"",
                b"1\n7 7\n" + b" ".join(b"%d" % n for n in range(98)),
                integers(1) + integers(7, 7) + record(small.tobytes()),
                integers(7, 7, 1) + record(np.zeros(147, "<f8").tobytes()),
                (4).to_bytes(4, "big") + (1).to_bytes(4, "big") + (4).to_bytes(4, "big"),
            ]
        )
    )
    cut = data.draw(st.integers(0, len(start)))
    tail = data.draw(
        st.one_of(
            st.binary(max_size=60),
            st.text("0123456789*.-+eED, \n", max_size=60).map(str.encode),
            st.lists(st.integers(-(2**31), 2**31 - 1), max_size=8).map(lambda v: integers(*v)),
            st.just(start[cut:]),
        )
    )
    content = bytearray(start[:cut] + tail)
    if content and data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "fuzz.xyz"
    path.write_bytes(content)
    try:
        blocks = read_plot3d(path)
        matched_connections(blocks)
    except HiresxError as error:
        assert error.message


def test_plot3d_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "g.xyz"
    path.write_bytes(b"before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(plot3d, "_put_record", full)
    with pytest.raises(HiresxError, match="the disk is full"):
        write_plot3d(path, random_blocks([(7, 7, 7)]))
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]


def test_plot3d_missing_places(tmp_path):
    with pytest.raises(HiresxError, match=r"missing\.xyz: cannot be read"):
        read_plot3d(tmp_path / "missing.xyz")
    with pytest.raises(HiresxError, match=r"cannot write .*its directory is gone"):
        write_plot3d(tmp_path / "nowhere" / "g.xyz", random_blocks([(7, 7, 7)]))
    with pytest.raises(HiresxError, match="no 2-D layout"):
        write_plot3d(tmp_path / "g.xyz", random_blocks([(7, 7, 7)]), planar=True)
    with pytest.raises(HiresxError, match="no single-block layout"):
        write_plot3d(tmp_path / "g.xyz", random_blocks([(7, 7, 7)] * 2), single=True)
