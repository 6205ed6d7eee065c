"""Values as types of JSON."""

import math
from collections.abc import Mapping
from typing import Any


def to_json_types(value: Any, finite: bool = True) -> Any:
    """Convert `value` to types of JSON: arrays and tuples to lists, NumPy's numbers to Python's, other objects to
    texts. With `finite`, nan and inf become null; without, they stay as Python's json writes them."""
    if isinstance(value, Mapping):
        return {str(key): to_json_types(entry, finite) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [to_json_types(entry, finite) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) or not finite else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)
