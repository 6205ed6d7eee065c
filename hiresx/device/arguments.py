"""Checks of kernel arguments for every backend: their names, their types, and arrays large enough for the nodes
visited."""

import operator
from collections.abc import Mapping, Sequence
from functools import cache
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from hiresx.kernels import Signature

# numpy's name of the item of an argument, by C type; `real` depends on the configuration.
_ITEMS = {"int": "int32", "long long": "int64", "double": "float64", "float": "float32", "mark": "int8"}

# Least and largest value by C type.
INT_RANGES = {"int": (-(2**31), 2**31 - 1), "long long": (-(2**63), 2**63 - 1)}

# Bytes that a thread of a GPU reads at once (kernels/implicit/chunks.h).
CHUNK = 16

# Counts and strides of the nodes, starting from the first node, `o`.
Place: TypeAlias = tuple[tuple[str, str], ...]

# The meaning of the names of strides (hiresx.kernels).
_I = ("hx_ni", "1")
_PLACES: tuple[Place, ...] = (
    (_I, ("hx_nj", "sj"), ("hx_nk", "sk")),
    (("hx_ni", "s1"), ("hx_nj", "s2")),
    (_I, ("hx_nj", "s2"), ("hx_nk", "sd")),  # lines in chunks along k: a lower bound of the number of nodes visited
)
_CPU_PLACES: tuple[Place, ...] = ((("nd", "sd"), ("n1", "s1"), ("n2", "s2")),)


def item(kind: str, real: str) -> str:
    """Return NumPy's name of the number type of a kernel argument. `kind`: the C++ type of the argument, such as "const
    double *". `real`: the type that the name `real` stands for in kernels, "float64" or "float32"."""
    base = kind.removeprefix("const ").removesuffix(" *")
    return _ITEMS.get(base, real)


def is_pointer(kind: str) -> bool:
    """Return whether `kind`, the C++ type of a kernel argument, is a pointer."""
    return kind.endswith("*")


def is_written(kind: str) -> bool:
    """Return whether `kind`, the C++ type of a kernel argument, is a pointer through which the kernel may write."""
    return is_pointer(kind) and not kind.startswith("const ")


def scalar(dtype: np.dtype[Any], value: Any) -> int | float:
    """Return `value` as a Python number for a kernel argument of the type `dtype`. Raises TypeError if it is not a
    number or does not fit the type, and for an integer if `dtype` is a floating-point type."""
    if dtype.kind == "i":
        number = operator.index(value)
        limits = np.iinfo(dtype)
        if not limits.min <= number <= limits.max:
            raise TypeError(f"{number} does not fit {dtype}")
        return number
    if not isinstance(value, Real):
        raise TypeError(f"needs a number, got {type(value).__name__}")
    if isinstance(value, Integral):
        raise TypeError(f"needs a number with a fraction, got the {type(value).__name__} {value}")
    return float(value)


def check_array(array: Any, wanted: type[Any], dtype: np.dtype[Any]) -> None:
    """Raise TypeError unless `array` is an instance of the class `wanted`, has the number type `dtype`, and is
    contiguous along the last axis."""
    if not isinstance(array, wanted):
        raise TypeError(f"needs a {wanted.__module__}.{wanted.__name__} of {dtype}, got {type(array).__name__}")
    if array.dtype != dtype:
        raise TypeError(f"needs an array of {dtype}, got one of {array.dtype}")
    strides = array.strides
    if strides and strides[-1] != dtype.itemsize and array.shape[-1] > 1:
        raise TypeError("needs items side by side along the last axis, got a strided view")


def order_arguments(signature: Signature, arguments: Mapping[str, Any]) -> list[Any]:
    """Return the values of the named `arguments` in the order of a kernel's parameters. `signature`: the names and
    types of the parameters. Raises TypeError for a missing argument and for an unknown one."""
    names = [name for _, name in signature.arguments]
    if arguments.keys() == set(names):
        return [arguments[name] for name in names]
    for name in arguments:
        if name not in names:
            raise TypeError(f"kernel {signature.name} takes no argument {name}; it takes {', '.join(names)}")
    missing = [f"{name} ({kind})" for kind, name in signature.arguments if name not in arguments]
    raise TypeError(f"kernel {signature.name}: missing argument {', '.join(missing)}")


def misfit(signature: Signature, name: str, why: object) -> TypeError:
    """Return a TypeError that says that the argument `name` of the kernel with this `signature` is not valid for the
    reason `why`."""
    kind = next(kind for kind, called in signature.arguments if called == name)
    return TypeError(f"kernel {signature.name}, argument {name} ({kind}): {why}")


def place(signature: Signature) -> Place | None:
    """Return, for each dimension of the set of nodes that a kernel visits, the names of the arguments with the number
    of nodes and with the stride, as pairs (count, stride); None if the kernel has no such arguments. `signature`: the
    names and types of the kernel's parameters."""
    return _place(signature.kind, signature.arguments)


@cache
def _place(kind: str, arguments: tuple[tuple[str, str], ...]) -> Place | None:
    names = {name for _, name in arguments}
    for found in _CPU_PLACES if kind == "CPU_KERNEL" else _PLACES:
        if names.issuperset({"o", *(word for step in found for word in step if not word.startswith("hx_"))} - {"1"}):
            return found
    return None


def last_node(signature: Signature) -> str | None:
    """Return a formula, as text, for the flat array index of the last node that a kernel visits; None if the kernel's
    parameters do not define this node. The formula contains the names of parameters, and hx_ni, hx_nj, hx_nk for the
    numbers of points of the launch. `signature`: the names and types of the kernel's parameters."""
    where = place(signature)
    return None if where is None else " + ".join(["o", *(f"({count} - 1) * {stride}" for count, stride in where)])


def fit_conditions(signature: Signature) -> list[str]:
    """Return conditions, as Python expressions, under which all array arguments of a kernel are large enough; none if
    the last node that the kernel visits is unknown. The expressions contain the names of the kernel's parameters, and
    hx_last for the flat array index of this node. They are sufficient, not necessary: arguments that do not meet them
    are valid if `check_places` accepts them. `signature`: the names and types of the kernel's parameters."""
    where, names = place(signature), {name for _, name in signature.arguments}
    if where is None:
        return []
    found = ["0 <= o", *(["sj <= sk"] if names.issuperset({"sj", "sk"}) else []), *(["hx_last < sv"] * ("sv" in names))]
    for name, count in signature.holds.items():
        fits = f"hx_last + {count - 1} * sv < {name}.size" if count > 1 else f"hx_last < {name}.size"
        found.append(f"({name} is None or {fits})" if name in signature.optional else fits)
    return found


def check_places(signature: Signature, extent: Sequence[int] | None, values: Sequence[Any]) -> None:
    """Raise TypeError if the strides among the arguments of a kernel do not fit an array [variable, k, j, i]. Also
    raises TypeError if an array is too small for the nodes that the kernel visits, or if its address does not have the
    alignment that the kernel needs. `signature`: the names and types of the kernel's parameters. `extent`: the numbers
    of points (ni, nj, nk) of the launch. `values`: the arguments, in the order of the parameters."""
    where = place(signature)
    if where is None and not signature.aligned:
        return
    given = dict(zip((name for _, name in signature.arguments), values, strict=True))
    for name in signature.aligned:
        if address(given[name]) % CHUNK:
            raise misfit(signature, name, f"needs an array that begins at a multiple of {CHUNK} bytes")
    if where is None:
        return
    given |= {"1": 1, **dict(zip(("hx_ni", "hx_nj", "hx_nk"), extent or (), strict=False))}
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
        if given[name] is None:
            continue
        wanted, held = last + (count - 1) * (apart or 0) + 1, _items(given[name])
        if held < wanted:
            raise misfit(
                signature, name, f"needs {count} variables of nodes up to number {last}, {wanted} items; got {held}"
            )


def address(array: Any) -> int:
    """Return the address of the first item of `array`, an array of NumPy or CuPy."""
    found = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(found["data"][0])


def _items(array: Any) -> int:
    """Return the number of items from the first to the last one of a view."""
    if not array.size:
        return 0
    reach = sum((n - 1) * abs(stride) for n, stride in zip(array.shape, array.strides, strict=True))
    return 1 + int(reach) // int(array.itemsize)
