"""Dense blasts near no-slip walls: the nodes of the walls stay positive, and the mass stays."""

import numpy as np
import pytest
from heated_gaps import Gap, P
from wall_sums import total

from hiresx.decomposition import domain
from hiresx.device import backend
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import random_parts


def blast(n, adiabatic, ratio, steps, where="cpu", parts=1):
    """The solver of gas with pressure and density `ratio` times those around within 0.2 of (0.8, 0), and the mass at
    first."""
    gas, time = {"reynolds": 200.0}, {"steps": steps, "cfl": 0.5, "viscous_cfl": 0.5}
    gap = Gap(n, 0.6, adiabatic, ring=True, gas=gas, time=time, scheme={"flux": "hllc", "positivity": "limiter"})
    chance = np.random.default_rng(1)
    cut = domain(gap.case, grid=gap.grid, parts=lambda whole: random_parts(whole, parts, chance))
    solver = Solver(gap.case, backend(where), domain=cut)

    def dense(x, y, z):
        rho = np.where(np.hypot(x - 0.8, y) < 0.2, ratio, 1.0)
        return rho, 0 * x, 0 * x, 0 * x, P * rho

    solver.initialize(dense)
    before = total(solver) if parts == 1 else None
    for _ in range(steps):
        solver.step()
    return solver, before


@pytest.mark.parametrize("adiabatic", [True, False])
@pytest.mark.parametrize("ratio", [300.0, 1e4])
def test_a_ring_with_oblique_lines(adiabatic, ratio):
    """The density of the inner wall's node fell to -30 in the first step, whatever its length."""
    solver, mass = blast(25, adiabatic, ratio, 20)
    assert solver.primitives(0)["rho"].min() > 0.9
    assert solver.retaken == 0
    assert total(solver) == pytest.approx(mass, rel=1e-13)


def test_walls_with_nodes_in_common():
    """Of seven nodes the fourth is before both walls."""
    found = [blast(7, True, 30.0, 10, where)[0].primitives(0)["p"] for where in ("cpu", "emulated")]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
    solver, mass = blast(7, True, 30.0, 10)
    assert total(solver) == pytest.approx(mass, rel=1e-13)


def test_cuts_change_nothing():
    whole, _ = blast(25, False, 300.0, 5)
    several, _ = blast(25, False, 300.0, 5, parts=4)
    for n, state in enumerate(several.states):
        wanted = whole.primitives(0)["p"][state.part.slices]
        np.testing.assert_allclose(several.primitives(n)["p"], wanted, rtol=1e-11)
