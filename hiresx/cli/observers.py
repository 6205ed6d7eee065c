"""Parsing of observers of the far field from options of the command line."""

from pathlib import Path

import numpy as np

from hiresx.cli.options import numbers
from hiresx.errors import HiresxError
from hiresx.output.show import lines
from hiresx.post.farfield import ObserverArc


def read(
    observers: str | None,
    arc: str | None,
    centre: str | None = None,
    azimuth: float | None = None,
    azimuths: int | None = None,
) -> np.ndarray | ObserverArc:
    """Return the positions of acoustic observers, an array of shape (m, 3) in units of the length scale L, or an
    `ObserverArc`, from options of the command line. `observers`: "x,y,z;x,y,z", or the path of a CSV file with columns
    x, y, z. `arc`: "radius,from,to,number", with angles in degrees, around `centre` (by default the origin), in the
    half plane at the angle `azimuth` (by default 0), or in `azimuths` half planes around the x axis. Raises HiresxError
    unless exactly one of `observers` and `arc` is given, for an option that needs an arc, and for a text that cannot be
    parsed."""
    if (observers is None) == (arc is None):
        raise HiresxError("observers are given by --observers or by --arc", "give one of them, e.g. --arc 50,20,160,15")
    if arc is not None:
        values = numbers(arc, "--arc", "50,20,160,15", 4)
        middle = numbers(centre or "0,0,0", "--centre", "0,0,0", 3)
        if values[3] != int(values[3]) or not values[3] >= 1:
            raise HiresxError(f'--arc "{arc}": the number of observers is a whole one, 1 or more', "--arc 50,20,160,15")
        radius, start, end, number = values
        place = (middle[0], middle[1], middle[2])
        return ObserverArc(radius, start, end, int(number), place, azimuth or 0.0, azimuths or 1)
    if any(value is not None for value in (centre, azimuth, azimuths)):
        raise HiresxError("--centre, --azimuth and --azimuths belong to an --arc, and there is none", "leave them out")
    assert observers is not None
    if observers.lower().endswith(".csv"):
        table = lines.read_table(Path(observers), "x", "y,z")
        if not set("xyz") <= table.keys():
            raise HiresxError(f"{observers} is no table of observers", "its columns are x, y, z, numbers in L")
        return np.stack([table[axis] for axis in "xyz"], axis=1)
    rows = [text for text in observers.split(";") if text.strip()]
    return np.array([numbers(text, "--observers", "10,20,0;30,40,0", 3) for text in rows]).reshape(-1, 3)
