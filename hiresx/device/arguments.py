"""What the arguments of a kernel must be, for every backend: named as the kernel declares them, of its types, arrays
that hold the nodes which it visits."""

import operator
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from hiresx.kernels import Signature

# numpy's name of what an argument of that C type is or points to; `real` depends on the configuration.
_ITEMS = {"int": "int32", "long long": "int64", "double": "float64", "float": "float32"}

# Least and largest value by C type.
INT_RANGES = {"int": (-(2**31), 2**31 - 1), "long long": (-(2**63), 2**63 - 1)}

# Counts and strides by which nodes follow each other from the first, `o`, on.
Place: TypeAlias = tuple[tuple[str, str], ...]

# What the names of strides mean (hiresx.kernels).
_I = ("hx_ni", "1")
_PLACES: tuple[Place, ...] = (
    (_I, ("hx_nj", "sj"), ("hx_nk", "sk")),
    (("hx_ni", "s1"), ("hx_nj", "s2")),
    (_I, ("hx_nj", "s2"), ("hx_nk", "sd")),  # lines, in chunks along k: at least the first so many nodes
)
_CPU_PLACES: tuple[Place, ...] = ((("nd", "sd"), ("n1", "s1"), ("n2", "s2")),)


def item(kind: str, real: str) -> str:
    """numpy's name of what an argument of C type `kind` is or points to, `real` being "float64" or "float32"."""
    base = kind.removeprefix("const ").removesuffix(" *")
    return _ITEMS.get(base, real)


def is_pointer(kind: str) -> bool:
    return kind.endswith("*")


def is_written(kind: str) -> bool:
    return is_pointer(kind) and not kind.startswith("const ")


def scalar(dtype: np.dtype[Any], value: Any) -> int | float:
    """`value` as a Python number that fits `dtype`. Raises TypeError if it is none or does not fit, and for an integer
    where a number with a fraction is wanted."""
    if dtype.kind == "i":
        number = operator.index(value)
        limits = np.iinfo(dtype)
        if not limits.min <= number <= limits.max:
            raise TypeError(f"{number} does not fit {dtype}")
        return number
    if not isinstance(value, Real):
        raise TypeError(f"wants a number, got {type(value).__name__}")
    if isinstance(value, Integral):
        raise TypeError(f"wants a number with a fraction, got the {type(value).__name__} {value}")
    return float(value)


def check_array(array: Any, wanted: type[Any], dtype: np.dtype[Any]) -> None:
    """Raises TypeError unless `array` is a `wanted` of `dtype` whose items lie side by side along the last axis."""
    if not isinstance(array, wanted):
        raise TypeError(f"wants a {wanted.__module__}.{wanted.__name__} of {dtype}, got {type(array).__name__}")
    if array.dtype != dtype:
        raise TypeError(f"wants an array of {dtype}, got one of {array.dtype}")
    strides = array.strides
    if strides and strides[-1] != dtype.itemsize and array.shape[-1] > 1:
        raise TypeError("wants items side by side along the last axis, got a strided view")


def order_arguments(signature: Signature, arguments: Mapping[str, Any]) -> list[Any]:
    """The named `arguments` as the kernel takes them. Raises TypeError for one that is missing and for one that it does
    not take."""
    names = [name for _, name in signature.arguments]
    for name in arguments:
        if name not in names:
            raise TypeError(f"kernel {signature.name} takes no argument {name}; it takes {', '.join(names)}")
    missing = [f"{name} ({kind})" for kind, name in signature.arguments if name not in arguments]
    if missing:
        raise TypeError(f"kernel {signature.name}: missing argument {', '.join(missing)}")
    return [arguments[name] for name in names]


def misfit(signature: Signature, name: str, why: object) -> TypeError:
    """That argument `name` of a kernel does not fit."""
    kind = next(kind for kind, called in signature.arguments if called == name)
    return TypeError(f"kernel {signature.name}, argument {name} ({kind}): {why}")


def place(signature: Signature) -> Place | None:
    """Where the kernel's nodes are, as far as its arguments say it."""
    names = {name for _, name in signature.arguments}
    for found in _CPU_PLACES if signature.kind == "CPU_KERNEL" else _PLACES:
        if names.issuperset({"o", *(word for step in found for word in step if not word.startswith("hx_"))} - {"1"}):
            return found
    return None


def last_node(signature: Signature) -> str | None:
    """A formula in the arguments and hx_ni, hx_nj, hx_nk, the extent, for the number of the last node visited."""
    where = place(signature)
    return None if where is None else " + ".join(["o", *(f"({count} - 1) * {stride}" for count, stride in where)])


def fit_conditions(signature: Signature) -> list[str]:
    """Conditions in the arguments and hx_last, the last node's number, under which the arrays certainly hold what is
    visited; none where nothing is known. What does not meet them, `check_places` judges."""
    where, names = place(signature), {name for _, name in signature.arguments}
    if where is None:
        return []
    found = ["0 <= o", *(["sj <= sk"] if names.issuperset({"sj", "sk"}) else []), *(["hx_last < sv"] * ("sv" in names))]
    for name, count in signature.holds.items():
        found.append(f"hx_last + {count - 1} * sv < {name}.size" if count > 1 else f"hx_last < {name}.size")
    return found


def check_places(signature: Signature, extent: Sequence[int] | None, values: Sequence[Any]) -> None:
    """Raises TypeError where strides are not those of nodes in an array [variable, k, j, i], or an array among the
    `values` does not hold the variables that the kernel takes of every node it visits."""
    where = place(signature)
    if where is None:
        return
    given = dict(zip((name for _, name in signature.arguments), values, strict=True)) | {"1": 1}
    given |= dict(zip(("hx_ni", "hx_nj", "hx_nk"), extent or (), strict=False))
    if any(given[count] <= 0 for count, _ in where):
        return
    steps = [(given[count] - 1) * given[stride] for count, stride in where]
    first, last = (given["o"] + sum(f(step, 0) for step in steps) for f in (min, max))
    if first < 0:
        raise misfit(signature, "o", f"the first node has the number {first}")
    if given.get("sj", 0) > given.get("sk", np.inf):
        raise misfit(signature, "sk", f"the stride along k is {given['sk']}, and that along j, sj, {given['sj']}")
    apart = given.get("sv")
    if apart is not None and last >= apart:
        raise misfit(signature, "sv", f"variables lie {apart} items apart, but there are nodes up to number {last}")
    for name, count in signature.holds.items():
        wanted, held = last + (count - 1) * (apart or 0) + 1, _items(given[name])
        if held < wanted:
            raise misfit(
                signature, name, f"wants {count} variables of nodes up to number {last}, {wanted} items; got {held}"
            )


def _items(array: Any) -> int:
    """From the first to the last item of a view."""
    if not array.size:
        return 0
    reach = sum((n - 1) * abs(stride) for n, stride in zip(array.shape, array.strides, strict=True))
    return 1 + int(reach) // int(array.itemsize)
