"""Coefficients of the force on walls."""

import re

import numpy as np
import pytest
from watched_runs import P, tables, watched

from hiresx import Case, HiresxError, Simulation


def test_coefficients_are_those_of_the_force_and_of_its_moment():
    """Of a box in gas at rest whose walls feel a given pressure: its force and moment in closed form."""
    force = {"name": "low", "faces": ["jmin"], "coefficients": {
        "velocity": [0.3, 0.4, 0.0], "rho": 2.0, "area": 3.0, "length": 1.5, "centre": [0.5, 0.25, 0.0]}}  # fmt: skip
    walls = [{"faces": "all", "type": "slip-wall"}]
    simulation, found = watched(Case.from_dict(tables((25, 13, 1), boundary=walls, force=[force])))
    values = found["low"].measure(simulation.solver)
    x, y = values["force_x"], values["force_y"]
    scale = 0.5 * 2.0 * 0.25 * 3.0
    assert y == pytest.approx(-2 * P) and x == pytest.approx(0.0, abs=1e-13)
    assert values["drag_coefficient"] == pytest.approx((0.6 * x + 0.8 * y) / scale)
    assert values["lift_coefficient"] == pytest.approx((0.6 * y - 0.8 * x) / scale)
    # the force of an even pressure is in the middle of the wall, at x = 1
    assert values["moment_coefficient"] == pytest.approx(-(1.0 - 0.5) * y / scale / 1.5)
    assert "side_coefficient" not in values


def test_coefficients_in_space():
    """The wall z = 0 of a box, in a stream with a part along every axis: lift is towards z."""
    stream, centre = np.array([0.5, 0.1, 0.2]), np.array([0.1, 0.2, 0.3])
    force = {"name": "low", "faces": ["kmin"], "coefficients": {
        "velocity": stream.tolist(), "centre": centre.tolist(), "up": "z"}}  # fmt: skip
    case = Case.from_dict(
        tables((9, 8, 7), upper=(2.0, 1.0, 0.5), boundary=[{"faces": "all", "type": "slip-wall"}], force=[force])
    )
    simulation, found = watched(case)
    values = found["low"].measure(simulation.solver)
    whole = np.array([values[f"force_{c}"] for c in "xyz"])
    block = simulation.blocks[0]
    middle = np.array([np.mean([c.min(), c.max()]) for c in (block.x, block.y, block.z)]) * [1, 1, 0]
    drag = stream / np.linalg.norm(stream)
    lift = np.array([0, 0, 1]) - drag[2] * drag
    lift /= np.linalg.norm(lift)
    side, scale = np.cross(lift, drag), 0.5 * stream @ stream
    assert values["drag_coefficient"] == pytest.approx(whole @ drag / scale)
    assert values["lift_coefficient"] == pytest.approx(whole @ lift / scale)
    assert values["side_coefficient"] == pytest.approx(whole @ side / scale)
    assert values["moment_coefficient"] == pytest.approx(np.cross(middle - centre, whole) @ side / scale)


@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        ({}, {}, "has no stream"),
        ({"velocity": [0.0, 0.5, 0.0]}, {}, 'coefficients.up = "y": the stream is along it'),
        ({"velocity": [0.5, 0.0, 0.0]}, {"axisymmetric": True}, "not of axisymmetric flow"),
    ],
)
def test_coefficients_that_make_no_sense_are_refused(given, more, said):
    walls = [{"faces": "all", "type": "slip-wall"}]
    if more:
        walls.insert(0, {"faces": ["jmin"], "type": "axis"})
    force = [{"name": "low", "faces": ["jmax"], "coefficients": given}]
    case = Case.from_dict(tables((25, 13, 1), boundary=walls, force=force, **more))
    with pytest.raises(HiresxError, match=re.escape(said)):
        Simulation(case, "cpu")
