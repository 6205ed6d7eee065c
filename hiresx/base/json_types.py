"""Types of JSON values."""

import math
from collections.abc import Mapping
from typing import Any


def to_json_types(value: Any, finite: bool = True) -> Any:
    """Return `value` converted to types that JSON can represent: arrays and tuples become lists, NumPy's numbers
    Python's numbers, and other objects strings. If `finite` is true, nan and inf become null. Otherwise they are kept,
    and Python's json module writes them as NaN and Infinity."""
    if isinstance(value, Mapping):
        return {str(key): to_json_types(entry, finite) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_json_types(entry, finite) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) or not finite else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)
