"""What is read off histories: the highest place of a spectrum, the extremes of a column."""

import numpy as np
import pytest

from hiresx import Simulation
from hiresx.case import Case
from hiresx.cli import execute
from hiresx.output.show import plot_history
from hiresx.output.show.plot_history import spectrum


@pytest.mark.parametrize("periods", [1, 2, 3])
def test_the_lowest_frequency_counts(periods):
    """A tone with few periods in a segment, two fifths of the record, is found where it is; a single one is no peak."""
    time = np.linspace(0, 1, 501)
    found = spectrum(time, np.sin(2 * np.pi * 2.5 * periods * time) + 0.02 * np.sin(2 * np.pi * 60 * time))
    assert found.peak == pytest.approx(periods * found.frequency[1])
    assert found.density[1:].max() == found.density[periods]
    assert found.resolved == (periods >= plot_history.PERIODS)
    assert ("no peak is resolved" in plot_history._said(found)) != found.resolved


def test_a_drift_is_no_peak():
    time = np.linspace(0, 10, 400)
    for values in (time, time**2, np.exp(-0.1 * time)):
        assert not spectrum(time, values + 1e-3 * np.sin(40 * time)).resolved


def test_extremes_of_what_is_finite(tmp_path, capsys):
    """The rate of kinetic energy is not known at the first sample."""
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
    assert "rate: 1 of 4 samples not finite" in said and said.count("not finite") == 1
