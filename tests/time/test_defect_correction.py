"""Defect correction, steps towards steady flow by the sweeps alone (`implicit.krylov = 0`), and what is refused beside
them and beside sweeps without stored blocks."""

from itertools import pairwise

import numpy as np
import pytest
from wholes import whole

from hiresx import Simulation, load
from hiresx.decomposition.parts import Part
from hiresx.errors import HiresxError
from hiresx.estimate.resources import _vectors
from hiresx.output.watch.monitors.implicit_convergence import stall
from hiresx.verify.turned_blocks import difference

ALONE = ["implicit.krylov=0", "implicit.largest_cfl=100.0"]


def aerofoil(*more):
    keys = [
        'time.integrator="implicit"', "grid.n_airfoil=41", "grid.n_wake=12", "grid.n_normal=21",
        "grid.first_spacing=2e-2", "grid.trailing_edge_spacing=3e-2",
    ]  # fmt: skip
    return load("naca0012", preset=["quick", "subsonic"], overrides=[*keys, *more])


def test_sweeps_without_gmres_find_the_same_steady_flow():
    """In more steps, without a product and without the vectors of GMRES."""
    cases = [aerofoil("implicit.drop=1e10", *more) for more in ([], ALONE)]
    wanted, found = (Simulation(case, "cpu") for case in cases)
    for simulation in (wanted, found):
        simulation.run(progress=False)
        assert simulation.solver.integrator.converged
    report = found.solver.integrator.report
    assert report["products"] == 0 and np.isnan(report["linear_drop"]) and found.step_count > wanted.step_count
    assert 0.0 < difference(whole(found.solver), whole(wanted.solver)) < 1e-6
    assert _vectors(cases[0]) - _vectors(cases[1]) == 2 * cases[0].implicit.krylov


@pytest.mark.parametrize(("lines", "alike"), [("none", True), ("j", True), ("i", False)])
def test_a_cut_that_divides_no_lines_changes_no_step_of_defect_correction(lines, alike):
    """Where it divides lines the flows differ on the way, by less than the residual that is left."""

    def parts(whole):
        ends = [(0, block.size[0] * 2 // 5 | 1, block.size[0]) for block in whole.blocks]  # an odd first node
        return [
            Part(b, ((lo, hi), *((0, n) for n in block.size[1:])))
            for b, block in enumerate(whole.blocks)
            for lo, hi in pairwise(ends[b])
        ]

    case = aerofoil(*ALONE, f'implicit.lines="{lines}"')
    one, two = (Simulation(case, "cpu", parts=cut) for cut in (None, parts))
    for simulation in (one, two):
        simulation.run(steps=3, progress=False)
    assert len(two.solver.states) == 2 * len(one.solver.states)
    found = difference(whole(two.solver), whole(one.solver))
    assert found < 1e-10 if alike else 1e-9 < found < 1e-6


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (["implicit.krylov=0", "implicit.linear_drop=0.1"], "implicit.linear_drop has no effect without GMRES"),
        (
            ["implicit.krylov=0", 'implicit.krylov_residual="preconditioned"'],
            "implicit.krylov_residual has no effect without GMRES",
        ),
        (['time.integrator="bdf2"', "implicit.krylov=0"], 'the stages of "bdf2" are solved by GMRES'),
        (['implicit.storage="none"'], 'not for implicit.lines = "auto", the default, whose'),
        (['implicit.storage="none"', 'implicit.lines="auto"'], 'not for implicit.lines = "auto", whose'),
    ],
)
def test_what_does_not_go_together_is_refused(overrides, named):
    with pytest.raises(HiresxError, match=named):
        load("bump", overrides=['time.integrator="implicit"', *overrides])


def test_a_stall_without_a_linear_residual_says_so():
    place = {"block": "wing", "node": [1, 2, 3], "equation": "e"}
    told = stall({"linear_drop": np.nan, "share": 1.0, "drop": 100.0, "cfl": 5.0, "largest": place}, 1e10, None)
    assert "no linear residual known; a smaller implicit.largest_cfl" in told


@pytest.mark.parametrize(
    ("linear_drop", "share", "sweeps", "advice"),
    [
        (0.2, 0.5, None, "not solved: more implicit.krylov, a smaller implicit.largest_cfl"),
        (0.2, 0.5, 3, "not solved: more implicit.krylov, implicit.sweeps left out or raised, a smaller"),
        (0.01, 0.5, None, "a smaller time.cfl"),
        (0.01, 1.0, None, "more time.steps"),
    ],
)
def test_what_to_do_about_a_stall_follows_from_its_cause(linear_drop, share, sweeps, advice):
    place = {"block": "wing", "node": [1, 2, 3], "equation": "e"}
    told = stall({"linear_drop": linear_drop, "share": share, "drop": 1.0, "cfl": 5.0, "largest": place}, 1e10, sweeps)
    assert advice in told and "node (i, j, k) = (1, 2, 3) of block 'wing'" in told
