"""The history of the residuals: nothing is said where nothing was measured, and the last step is in it."""

import numpy as np
from watched_runs import pulse, tables

from hiresx import Case, Simulation
from hiresx.output.watch import history
from hiresx.sweeps.run_numbers import column

RATES = ("rho", "rho_u", "rho_v", "rho_w", "e")


def kept(folder):
    return history.read(folder / "history/residual.nc").data


def test_the_beginning_has_no_rates_and_the_last_step_is_there(tmp_path, capfd):
    def count(simulation):
        return {"seen": simulation.step_count}

    case = Case.from_dict(tables(monitor={"every": 4}))
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    simulation = Simulation(case, "cpu", out=whole, initial=pulse, monitors=[count])
    simulation.run(steps=10, progress=False)
    found = kept(whole)
    assert found["step"].tolist() == [0, 4, 8, 10]
    of_user = history.read(whole / "history/count.nc").data
    assert of_user["step"].tolist() == of_user["seen"].tolist() == [0, 4, 8, 10]
    assert all(np.isnan(found[name][0]) for name in RATES)
    assert all(np.isfinite(found[name][1:]).all() for name in RATES)
    assert found["rho"][-1] == simulation.history[-1]["rho"] > 0
    assert np.isnan(simulation.history[0]["rho"]) and found["least_rho"][0] > 0
    assert column("residual.rho:min").value(whole) == found["rho"][1:].min()

    Simulation(case, "cpu", out=parts, initial=pulse, monitors=[count]).run(steps=3, progress=False)
    assert kept(parts)["step"].tolist() == [0, 3]
    again = Simulation(case, "cpu", restart=parts, monitors=[count])
    again.run(steps=3)
    assert kept(parts)["step"].tolist() == [0, 4, 6]
    again.run(steps=4)
    assert "dropped" not in capfd.readouterr().err
    assert history.read(parts / "history/count.nc").data["seen"].tolist() == [0, 4, 8, 10]
    # the same to the last bit, with nothing of the places where it stopped
    for name, values in found.items():
        np.testing.assert_array_equal(kept(parts)[name], values)


def test_a_run_that_ends_at_a_sample_has_it_once(tmp_path):
    case = Case.from_dict(tables(monitor={"every": 4}))
    Simulation(case, "cpu", out=tmp_path, initial=pulse).run(steps=8, progress=False)
    assert kept(tmp_path)["step"].tolist() == [0, 4, 8]
