"""In which numbers each precision computes and keeps its arrays, and what the kernels are told of it."""

import pytest

from hiresx.equations.storage import EXTENDED, PRECISIONS, STORAGE, precision_of


@pytest.mark.parametrize(("precision", "sizes", "carries"), [
    ("fp64", (8, 8, 8, 8), False), ("mixed", (8, 8, 4, 8), False), ("differences", (8, 4, 4, 4), True),
    ("fp32", (4, 4, 4, 4), False),
])  # fmt: skip
def test_the_numbers_of_a_precision(precision, sizes, carries):
    """Bytes of what is computed with, and kept of the state, of work arrays and of rates; only differences from a
    reference carry along what their rounding lost."""
    storage = STORAGE[precision]
    assert storage.sizes == sizes and storage.carries is carries and precision_of(storage) == precision
    assert storage.output == ("fp32" if precision == "fp32" else "fp64")
    narrow = [size < sizes[0] for size in sizes[1:]]
    macros = ("HX_STORED_FP32", "HX_WORK_FP32", "HX_RATE_FP32")
    assert storage.defines == dict(zip(macros, narrow, strict=True)) | {"HX_DIFFERENCES": carries}
    kinds = dict(zip(("stored_real", "work_real", "rate_real"), narrow, strict=True))
    wide = {"wide": "double" if precision == "fp32" else "real"}
    assert storage.c_types == {name: "float" if is_narrow else "real" for name, is_narrow in kinds.items()} | wide


def test_every_precision_is_stored_in_its_own_way():
    assert tuple(STORAGE) == (*PRECISIONS, EXTENDED) and len(set(STORAGE.values())) == 5
