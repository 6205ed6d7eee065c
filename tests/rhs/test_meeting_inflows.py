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


@pytest.mark.parametrize("faces", [("imin", "jmin"), ("jmin", "imin"), ("imin", "jmin", "kmin")])
def test_reservoirs_that_meet_leave_their_edge_at_rest(faces):
    """What enters is normal to both faces there, as of the potential x y. From a start at rest the flow is the same
    along both directions, and one from the same reservoir stays at rest."""
    for mach in (0.3, 0.0):
        total = 1 + 0.2 * mach**2
        inflow = {"type": "total-pressure-inflow", "total_pressure": total**3.5 / 1.4, "total_temperature": total}
        others = {"faces": "all", "type": "pressure-outflow", "pressure": 1 / 1.4, "relaxation": 2.0}
        n = [9, 9, 9 if len(faces) > 2 else 1]
        case = Case.from_dict({
            "grid": {"generator": "box", "n": n, "lower": [0, 0, 0], "upper": [1, 1, float(n[2] > 1)]},
            "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
            "time": {"steps": 100, "cfl": 0.5},
            "boundary": [*({"faces": [face]} | inflow for face in faces), others],
        })  # fmt: skip
        simulation = Simulation(case, "cpu")
        simulation.run(progress=False)
        u, v, p = (simulation.blocks[0].state(name) for name in ("u", "v", "p"))
        # the outflow at kmax meets the edge beyond
        np.testing.assert_allclose([u[:5, 0, 0], v[:5, 0, 0]], 0.0, atol=1e-9)
        np.testing.assert_allclose(p[:5, 0, 0], total**3.5 / 1.4, rtol=1e-9)
        np.testing.assert_allclose(u[:5], v[:5].swapaxes(1, 2), atol=1e-6)
        assert (abs(u).max() > 0.05) if mach else (abs(u).max() < 1e-12)
