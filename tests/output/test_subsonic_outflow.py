"""A flow that arrives at a supersonic outflow and leaves it more slowly than sound is spoken of, once."""

import numpy as np
import pytest

from hiresx import Case, Simulation

CENTRE = {"u=0.5, all": (0.5, "boundary.1", 1.0), "u=0.5, a part": (0.5, "boundary.1", 0.5), "u=2": (2.0, None, 1.0)}


def noted(u: float, covered: float, capfd) -> list[str]:
    """Lines of a run in which a plane pulse that fills `covered` of the width goes down a channel at the velocity u."""
    case = Case.from_dict(
        {
            "grid": {"generator": "box", "n": [41, 16, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0],
                     "periodic": ["y"]},
            "time": {"end": 0.9},
            "monitor": {"every": 5},
            "boundary": [
                {"faces": ["imin"], "type": "characteristic-inflow", "state": {"rho": 1.0, "u": u, "p": 1 / 1.4}},
                {"faces": ["imax"], "type": "supersonic-outflow"},
                {"faces": ["jmin", "jmax"], "type": "periodic"},
            ],
        }
    )  # fmt: skip

    def initial(x, y, z):
        pulse = 0.01 * np.exp(-(((x - 1.6) / 0.1) ** 2)) * (y < covered)
        return 1 + pulse, u, 0.0, 0.0, (1 + 1.4 * pulse) / 1.4

    capfd.readouterr()
    Simulation(case, backend="cpu", initial=initial).run()
    text = "".join(capfd.readouterr())
    return [line for line in text.splitlines() if "normal to the face" in line]


@pytest.mark.parametrize("what", CENTRE)
def test_what_leaves_more_slowly_than_sound(what, capfd):
    u, where, covered = CENTRE[what]
    lines = noted(u, covered, capfd)
    if where is None:
        assert lines == []
        return
    (line,) = lines
    assert line.startswith(f"{where} (supersonic-outflow): at time 0.") and f"{u:.2f} on the mean" in line
    assert 'type = "characteristic-outflow"' in line
    assert ("below 1 on 100 % of it" in line) == (covered == 1.0)


def test_a_flow_that_rests_there_is_left_alone(capfd):
    Simulation("sod", backend="cpu").run(steps=100)
    assert "normal to the face" not in "".join(capfd.readouterr())
