"""Units of the lengths in a CGNS file (SIDS, chapter 4: data class, dimensional units, exponents, conversion).

Each of these may be given for the base and again for any node below it; the nearest one applies. Lengths with units are
converted to metres. Lengths without units, or that are declared dimensionless, are not changed."""

from dataclasses import dataclass, replace

import numpy as np

from hiresx.base.plural import plural
from hiresx.grid.cgns_tree import Node

METRES = {"Meter": 1.0, "Centimeter": 0.01, "Millimeter": 0.001, "Foot": 0.3048, "Inch": 0.0254}
# The note on lengths whose units are not applied.
PURE = ("NormalizedByUnknownDimensional", "NondimensionalParameter", "DimensionlessConstant")
# Position of the length among the units and exponents: mass, length, time, temperature, angle.
LENGTH = 1
WIDTH = 32


@dataclass(frozen=True)
class Units:
    """The units of lengths below a node of a CGNS file. `unit`: the name of the unit, "" if none is given. `kind`: the
    data class."""

    unit: str = ""
    kind: str = ""

    def below(self, node: Node) -> "Units":
        """Return the units that apply to `node`, a child of the CGNS node to which these units apply: its own units if
        it gives any, otherwise these. Raises HiresxError for a unit of length that CGNS does not define."""
        found = self
        for child in node.children("DataClass_t"):
            found = replace(found, kind=child.text())
        for child in node.children("DimensionalUnits_t"):
            names = child.rows(WIDTH)
            if len(names) <= LENGTH:
                raise child.error(f"names {plural(len(names), 'unit')}, 5 are expected")
            if names[LENGTH] not in (*METRES, "Null", "UserDefined", ""):
                raise child.error(f'"{names[LENGTH]}" is no unit of length', f"the standard knows {', '.join(METRES)}")
            found = replace(found, unit=names[LENGTH])
        return found

    @property
    def metres(self) -> float:
        """Metres per unit of length in the file; 1 if the file gives no unit."""
        return 1.0 if self.kind in PURE else METRES.get(self.unit, 1.0)

    @property
    def describe(self) -> str:
        """Sentence on the conversion of coordinates to metres, for the log; "" if there is none."""
        if self.metres != 1.0:
            return f"coordinates in the unit {self.unit} scaled by {self.metres:g} to metres"
        if self.unit == "UserDefined" and self.kind not in PURE:
            return "coordinates in a unit that the file does not name, left as they are"
        return ""


def conversion(array: Node, units: Units) -> tuple[float, float]:
    """Return (factor, offset) with which a coordinate array of a CGNS file is converted to metres: factor times
    coordinate plus offset. `array`: the CGNS node of the array. `units`: the units that apply to it. Raises HiresxError
    for a unit that is not a length."""
    for child in array.children("DimensionalExponents_t"):
        exponents = child.vector(8)
        if len(exponents) < 5 or exponents[LENGTH] != 1 or np.any(np.delete(exponents, LENGTH)):
            raise child.error(f"{exponents.tolist()} is no length", "a coordinate has the exponents 0, 1, 0, 0, 0")
    factor, offset = 1.0, 0.0
    if units.kind == "NormalizedByDimensional":
        for child in array.children("DataConversion_t"):
            given = child.vector(2)
            if len(given) != 2 or given[0] == 0:
                raise child.error("is not a scale and an offset")
            factor, offset = map(float, given)
    return factor * units.metres, offset * units.metres
