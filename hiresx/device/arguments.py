"""What an argument of a kernel must be, for every backend."""

import operator
from numbers import Real
from typing import Any

import numpy as np

from hiresx.device.interface import Array

# numpy's name of what an argument of that C type is or points to; `real` depends on the configuration.
_ITEMS = {"int": "int32", "long long": "int64", "double": "float64"}

# Least and largest value by C type.
INT_RANGES = {"int": (-(2**31), 2**31 - 1), "long long": (-(2**63), 2**63 - 1)}


def item(kind: str, real: str) -> str:
    """numpy's name of what an argument of C type `kind` is or points to, `real` being "float64" or "float32"."""
    base = kind.removeprefix("const ").removesuffix(" *")
    return _ITEMS.get(base, real)


def is_pointer(kind: str) -> bool:
    return kind.endswith("*")


def is_written(kind: str) -> bool:
    return is_pointer(kind) and not kind.startswith("const ")


def scalar(dtype: np.dtype, value: Any) -> int | float:
    """`value` as a Python number that fits `dtype`. Raises TypeError if it is none or does not fit."""
    if dtype.kind == "i":
        number = operator.index(value)
        limits = np.iinfo(dtype)
        if not limits.min <= number <= limits.max:
            raise TypeError(f"{number} does not fit {dtype}")
        return number
    if not isinstance(value, Real):
        raise TypeError(f"wants a number, got {type(value).__name__}")
    return float(value)


def check_array(array: Array, wanted: type, dtype: np.dtype) -> None:
    """Raises TypeError unless `array` is a `wanted` of `dtype` whose items lie side by side along the last axis."""
    if not isinstance(array, wanted):
        raise TypeError(f"wants a {wanted.__module__}.{wanted.__name__} of {dtype}, got {type(array).__name__}")
    items: Array = array  # an instance of whatever `wanted` is
    if items.dtype != dtype:
        raise TypeError(f"wants an array of {dtype}, got one of {items.dtype}")
    strides = items.strides
    if strides and strides[-1] != dtype.itemsize and items.shape[-1] > 1:
        raise TypeError("wants items side by side along the last axis, got a strided view")
