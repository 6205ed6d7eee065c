"""Rows of nvidia-smi's matrices: where the levels begin."""

import pytest

from hiresx.topology.smi_rows import Row


@pytest.mark.parametrize(
    ("words", "column", "start"),
    [
        ("X NV1 SYS 0-3", 0, 0),
        ("NV1 X SYS 0-3", 1, 0),
        ("0-3 NV1 X SYS", 1, 1),  # affinities on the left
        ("NV1 X SYS 0-3", 0, None),  # a level before the first column
        ("0-3 NV1 X SYS", 0, None),
        ("X NV1 SYS 0-3", 1, None),  # no room for the columns before
        ("X X SYS", 0, None),
        ("NV1 NV1 SYS", 0, None),
    ],
)
def test_the_x_tells_where_the_matrix_begins(words, column, start):
    assert Row(1, "GPU0", words.split(), [], words).place(column) == start
