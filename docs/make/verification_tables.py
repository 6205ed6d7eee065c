"""Tables of the verification page, made from curves that are already measured: a function for each group of checks that
has one takes {check: curves} and returns columns and rows.
"""

from collections.abc import Mapping, Sequence

from hiresx.verify.groups.mms import NORMS, orders
from hiresx.verify.groups.waves import POINTS

Curves = Mapping[str, Mapping[str, Sequence[float]]]
Table = tuple[list[str], list[list[str]]]


def mms(found: Curves) -> Table:
    """Errors on the finest grid and orders."""
    columns = ["flow", "cells along each direction", *(f"{norm}, order" for norm in NORMS)]
    rows = []
    for check, curve in found.items():
        values = zip((curve[norm][-1] for norm in NORMS), orders(curve), strict=True)
        cells = ", ".join(f"{n:.0f}" for n in curve["n"])
        rows.append([check, cells, *(f"{error:.2g}, {order:.2f}" for error, order in values)])
    return columns, rows


def waves(found: Curves) -> Table:
    """Errors of the first check of each scheme."""
    columns = ["scheme, amplitude", *(f"{n} points" for n in POINTS)]
    rows = []
    for check, curve in found.items():
        pairs = zip(curve["amplitude"], curve["phase"], strict=True)
        rows.append([check.partition(":")[0], *(f"{100 * a:.2f} %, {p:.2f}°" for a, p in pairs)])
    return columns, rows
