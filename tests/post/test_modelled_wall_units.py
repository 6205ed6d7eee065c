"""Wall units at walls with a wall model: of the stress that the model gave."""

import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

from hiresx import Case, Simulation
from hiresx.output.watch import history
from hiresx.post import turbulence

REYNOLDS, SPEED = 20.0, 0.2
FORCES = [{"name": "lower", "faces": ["jmin"], "every": 3}, {"name": "upper", "faces": ["jmax"], "every": 3}]


def start(x, y, z):
    return 1 + 0 * x, SPEED * y + 0 * x, 0 * x, 0 * x, 1 / 1.4 + 0 * x


def couette_case(force, wall_temperature=1.0, steps=12, **average) -> Case:
    """Gas at T = 1 between walls at y = 0 and 1, of which the upper one moves."""
    wall = {"type": "modelled-wall"} | ({"temperature": wall_temperature} if wall_temperature else {})
    return Case.from_dict(
        {
            "grid": {
                "generator": "box", "n": [9, 17, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x"],
            },
            "gas": {"reynolds": REYNOLDS, "viscosity": {"law": "power", "exponent": 0.7}},
            "scheme": {"inviscid": "split"},
            "time": {"steps": steps},
            "boundary": [
                {"faces": ["jmin"], **wall},
                {"faces": ["jmax"], "velocity": [SPEED, 0.0, 0.0], **wall},
                {"faces": ["imin", "imax"], "type": "periodic"},
            ],
            "force": force,
            "average": {"every": 3} | average,
        }
    )  # fmt: skip


def couette(force, folder, *given, **average):
    Simulation(couette_case(force, *given, **average), "cpu", initial=start, out=folder).run(progress=False)
    return turbulence(folder)


def test_stress_and_units_are_those_of_the_model(tmp_path):
    found = couette(FORCES, tmp_path, budget=True)
    assert [row["wall"] for row in found.summary["walls"]] == ["jmin", "jmax"] and not found.summary["warnings"]
    for row, name in zip(found.summary["walls"], ("lower", "upper"), strict=True):
        data = history.read(history.histories(tmp_path)[name]).data
        weights = np.diff(data["time"], prepend=0.0)
        mean = abs((data["friction_x"] / data["area"]) @ weights) / weights.sum()
        assert row["stress"] == pytest.approx(mean, rel=1e-12) and row["stress_from"] == f'force "{name}"'
        assert row["stress"] == pytest.approx(SPEED / REYNOLDS, rel=2e-3)
        assert row["re_tau"] == pytest.approx(0.5 * REYNOLDS * row["u_tau"] * row["rho"], rel=1e-12)
    distance = 0.5 - abs(found.data["y"].values - 0.5)
    np.testing.assert_allclose(found.data["u_plus"].values, distance * SPEED / np.sqrt(SPEED / REYNOLDS), atol=0.01)
    assert "u_van_driest" in found.data and "u_trettel_larsson" not in found.data


@pytest.mark.parametrize("temperature", [0.8, None])
def test_density_and_viscosity_are_those_of_the_wall(tmp_path, temperature):
    """The gas beside it has another temperature: the node on the wall slips."""
    found = couette(FORCES, tmp_path, temperature, 3)
    row = found.summary["walls"][0]
    p, t, u = (found.data[name].values[0] for name in ("p", "T", "u"))
    wall = temperature or t + 0.2 * 0.89 * u**2
    assert row["T"] == pytest.approx(wall, rel=1e-9)
    assert row["rho"] == pytest.approx(1.4 * p / wall, rel=1e-9)
    assert row["u_tau"] == pytest.approx(np.sqrt(row["stress"] / row["rho"]), rel=1e-12)
    assert row["viscous_length"] == pytest.approx(wall**0.7 / REYNOLDS / (row["rho"] * row["u_tau"]), rel=1e-9)


def test_a_wall_without_a_force_is_told(tmp_path):
    found = couette([{"name": "all"}, FORCES[1]], tmp_path)
    assert [row["wall"] for row in found.summary["walls"]] == ["jmax"]
    (warning,) = found.summary["warnings"][-1:]
    assert warning.startswith("no wall units at jmin") and 'faces = ["jmin"]' in warning
    np.testing.assert_allclose(found.data["wall_distance"].values, 1 - found.data["y"].values, atol=1e-12)


def test_a_history_that_begins_late_is_told(tmp_path):
    """Forces that were asked for after most of the time had been averaged."""
    couette([], tmp_path)
    case = couette_case(FORCES, 1.0, 15)
    Simulation(case, "cpu", restart=tmp_path, initial=start).run(progress=False)
    found = turbulence(tmp_path)
    assert [row["wall"] for row in found.summary["walls"]] == ["jmin", "jmax"]
    told = [text.split(" of the ")[0] for text in found.summary["warnings"] if "are averaged" in text]
    assert [text.rpartition(" ")[0] for text in told] == [
        f"the stress at {face} is that of" for face in ("jmin", "jmax")
    ]
