"""On the edge where two inflows give the nodes, the one that the case has first holds, whatever the directions of the
indexes."""

import numpy as np
import pytest

from hiresx import Case, Simulation

SLOW = {"rho": 1.0, "u": 0.3, "v": 0.2, "w": 0.1, "p": 0.7}
DENSE = {"rho": 1.3, "u": 0.2, "v": 0.3, "w": 0.1, "p": 0.8}
FIRST = {"type": "supersonic-inflow", "state": DENSE, "scalars": {"dye": 0.9}}
SECOND = [
    {"type": "supersonic-inflow", "state": SLOW, "scalars": {"dye": 0.4}},
    {"type": "total-pressure-inflow", "total_pressure": 0.75, "total_temperature": 1.1, "scalars": {"dye": 0.4}},
]


@pytest.mark.parametrize("second", SECOND, ids=lambda condition: condition["type"])
@pytest.mark.parametrize("faces", [("imin", "jmin"), ("jmin", "imin"), ("kmax", "imin"), ("jmax", "kmin")])
def test_the_first_one_holds(second, faces):
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [8, 9, 10], "lower": [0, 0, 0], "upper": [1, 1, 1]},
        "initial": {"state": SLOW},
        "scalar": [{"name": "dye"}],
        "time": {"steps": 2, "dt": 0.01},
        "boundary": [
            {"faces": [faces[0]]} | FIRST,
            {"faces": [faces[1]]} | second,
            {"faces": "all", "type": "far-field", "state": SLOW, "scalars": {"dye": 0.4}},
        ],
    })  # fmt: skip
    simulation = Simulation(case, "cpu")
    simulation.run(progress=False)
    (block,) = simulation.blocks
    edge = tuple(slice(None) if f is None else (0, -1)[f.endswith("max")] for f in _of_axes(faces))
    for name, value in (DENSE | FIRST["scalars"]).items():
        np.testing.assert_allclose(block.state(name)[edge], value, rtol=1e-14)


def _of_axes(faces):
    """The face normal to k, j and i, or None."""
    return [next((f for f in faces if f[0] == axis), None) for axis in "kji"]
