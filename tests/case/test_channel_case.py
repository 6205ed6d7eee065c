"""The turbulent channel, on a very coarse grid and for some steps."""

import re

import numpy as np
import pytest

from hiresx import Simulation, load
from hiresx.estimate import estimate
from hiresx.output.watch import history


def test_the_estimate_says_that_its_step_knows_no_eddies():
    small = ["grid.n=[16, 17, 12]"]
    for given, told in ((small, 1), ([*small, "turbulence.model=none"], 0), ([*small, "time.dt=1e-3"], 0)):
        case = load("channel", overrides=given)
        assert sum("without eddy viscosity" in note for note in estimate(case)["notes"]) == told


def test_the_estimate_says_up_to_which_eddy_viscosity_its_step_holds():
    """A constant viscosity beside mu, with the same Prandtl number, is a lower Reynolds number."""
    same = ["grid.n=[16, 17, 12]", "turbulence.prandtl=0.7", 'gas.viscosity.law="constant"']
    planned = estimate(load("channel", overrides=same))
    room = float(re.search(r"exceeds (\S+) mu_ref", " ".join(planned["notes"])).group(1))
    for share, holds in ((0.99, True), (1.01, False)):
        reynolds = f"gas.reynolds={2000 / (1 + share * room)}"
        dt = estimate(load("channel", overrides=[*same, "turbulence.model=none", reynolds]))["dt"]
        assert (dt == planned["dt"]) is holds


@pytest.mark.slow
def test_it_starts_as_described(tmp_path):
    """The mass flow stays that of the Mach number, the walls keep their temperature, and the model of turbulence, which
    acts inside, all but vanishes at the walls."""
    case = load("channel", overrides=["grid.n=[16, 17, 12]", "time.steps=20", "body_force.every=1"])
    run = Simulation(case, "cpu", out=tmp_path / "run")
    run.run(progress=False)
    found = history.read(history.histories(tmp_path / "run")["body_force"]).data
    # the start has a mean of rho u that the coarse grid integrates to 2e-3
    assert found["mass_flow"] == pytest.approx(1.5, rel=4e-3)
    assert abs(found["mass_flow"][-1] - 1.5) < abs(found["mass_flow"][0] - 1.5)
    block = run.blocks[0]
    temperature = 1.4 * block.state("p") / block.state("rho")
    np.testing.assert_allclose(temperature[:, [0, -1]], 1.0, rtol=0, atol=1e-12)
    eddies = run.solver.field(0, "eddy_viscosity")[0]
    assert eddies.max() > 5
    assert eddies[:, [0, -1]].max() < 0.02 * eddies.max()
