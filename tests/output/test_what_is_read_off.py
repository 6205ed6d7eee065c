"""What is read off histories: the extremes of a column."""

import numpy as np

from hiresx import Simulation
from hiresx.case import Case
from hiresx.cli import execute


def test_extremes_of_what_is_finite(tmp_path, capsys):
    """The rate of kinetic energy, and what follows from it, is not known at the first sample."""
    grid = {"generator": "box", "n": [8, 8, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x", "y"]}
    tables = {"grid": grid, "time": {"steps": 3}, "kinetic_energy": {"every": 1}}
    boundary = [{"faces": "all", "type": "periodic"}]
    case = Case.from_dict(tables | {"boundary": boundary})

    def shear(x, y, z):
        return 1, 0.1 * np.sin(2 * np.pi * y), 0, 0, 1 / 1.4

    Simulation(case, "cpu", initial=shear, out=tmp_path / "run").run(progress=False)
    capsys.readouterr()
    assert execute(["history", str(tmp_path / "run"), "kinetic_energy"]) == 0
    said = capsys.readouterr().out
    row = next(line.split() for line in said.splitlines() if line.split()[:1] == ["rate"])
    assert row[1] == "nan" and float(row[3]) <= float(row[2]) <= float(row[4])
    for name in ("rate", "dissipation_numerical"):
        assert f"{name}: 1 of 4 samples not finite" in said
    assert said.count("not finite") == 2
