"""What Python gives is refused where it cannot be meant: states that are none, profiles that nobody asks for."""

import numpy as np
import pytest

from hiresx import HiresxError, Simulation, Waves, load
from hiresx.case import Case
from hiresx.grid import Block, Grid, build
from hiresx.post import wall

P = 1 / 1.4
BOX = {"generator": "box", "n": [9, 8, 1], "lower": [0, 0, 0], "upper": [0.8, 1, 0]}


def case(*boundary, **tables) -> Case:
    initial = {"initial": {"state": {"rho": 1.0, "u": 2.0, "p": P}}}
    rest = {"faces": "all", "type": "slip-wall"}
    return Case.from_dict({"grid": BOX, "time": {"steps": 1}, **initial, **tables, "boundary": [*boundary, rest]})


def test_a_grid_that_python_gave_is_named_where_it_is_missing(tmp_path):
    """A checkpoint does not have it, and the case has another one."""
    given = Grid((Block("given", *(getattr(build(case().grid).blocks[0], axis).copy() for axis in "xyz")),))
    Simulation(case(), "cpu", grid=given, out=tmp_path / "given").run(progress=False)
    with pytest.raises(HiresxError, match="whose grid was given in Python"):
        Simulation(restart=tmp_path / "given", backend="cpu")
    with pytest.raises(HiresxError, match="does not contain its grid, which was given in Python"):
        wall(tmp_path / "given")
    assert Simulation(restart=tmp_path / "given", backend="cpu", grid=given).step_count == 1
    Simulation(case(), "cpu", out=tmp_path / "own").run(progress=False)
    assert wall(tmp_path / "own").summary["nodes"] > 0


def test_a_state_that_is_none_is_refused_by_place():
    block = Simulation(case(), "cpu").blocks[0]
    before = block.state("p")
    rho = np.ones(block.x.shape)
    rho[0, 2, 5] = np.nan
    for given, words in (
        ((1, 0, 0, 0, -1), r"block 'box': p = -1 at \(x, y, z\) = \(0, 0, 0\)"),
        ((rho, 0, 0, 0, P), r"rho = nan at \(x, y, z\) = \(0.5, 0.285714, 0\)"),
        ((1, np.inf, 0, 0, P), "u = inf"),
        ((0, 0, 0, 0, P), "rho = 0"),
        ((1, 0, np.zeros(3), 0, P), r"v has the shape \(3,\)"),
        (("much", 0, 0, 0, P), "rho = 'much' is not a real number"),
        ((None, 0, 0, 0, P), "rho = None is not a real number"),
        ((1, 2 + 1j, 0, 0, P), r"u = \(2\+1j\) is not a real number"),
        ((rho + 0j, 0, 0, 0, P), "rho is an array of type complex128"),
        ((1, 0, [[1.0, 2.0], [3.0]], 0, P), "v has rows of different lengths"),
        ((1, 0, 0, np.zeros(9, "datetime64[s]"), P), "w is an array of type datetime64"),
        ((1, 0, 0, 0, np.array([P, None])), "p is an array of type object"),
    ):
        with pytest.raises(HiresxError, match=words) as error:
            block.set_state(*given)
        assert error.value.hint
        np.testing.assert_array_equal(block.state("p"), before)
    block.set_state(np.ones(9), 0, 0, np.zeros((8, 1)), P)


def test_a_block_that_is_none_is_refused_with_those_that_are_there():
    run = Simulation(case(), "cpu")
    with pytest.raises(HiresxError, match="rho = 'box' is not a real number") as error:
        run.blocks[0].set_state("box", 1, 0, 0, P)
    assert "simulation.blocks[n]`, where 0 is 'box'" in error.value.hint
    for block in ("box", 1, 0.0, None):
        with pytest.raises(HiresxError, match="is not the number of a block") as error:
            run.solver.set_state(block, 1, 0, 0, 0, P)
        assert error.value.hint == "block 0 is 'box'"


def inflow(x, y, z, t):
    return 1.0, 2.0, 0.0, 0.0, P


ASKS = {"faces": ["imin"], "type": "profile-inflow", "function": "inflow"}
SPONGE = {"axis": "x", "start": 0.5, "end": 0.8, "strength": 1.0, "function": "quiet"}


def test_arguments_of_other_kinds_are_refused():
    for given, words in (
        ({"initial": 3}, "initial: 3 is not a function"),
        ({"monitors": inflow}, "monitors: not a list of functions"),
        ({"monitors": ["drag"]}, "monitors: not a list of functions"),
        ({"profiles": {"inflow": 3}}, "profiles: not a dictionary of functions"),
        ({"profiles": [inflow]}, "profiles: not a dictionary of functions"),
        ({"scalars": {"dye": 0.5}}, "scalars: not a dictionary of functions"),
        ({"scalars": {"dye": inflow}}, 'scalars: the case has no scalar "dye"'),
        ({"grid": "a.xyz"}, "grid: 'a.xyz' is not a Grid"),
    ):
        with pytest.raises(HiresxError, match=words) as error:
            Simulation(case(), "cpu", **given)
        assert error.value.hint
    with pytest.raises(HiresxError, match="preset: 3 is not a text or a list of texts"):
        load("sod", preset=3)


def test_a_profile_that_nobody_asks_for_is_refused():
    for boundary, profiles, words, hint in (
        ([ASKS], {"inflow": inflow, "inflw": inflow}, 'asks for "inflw"', "inflow"),
        ([], {"inflow": inflow}, 'asks for "inflow"', "the case asks for no function"),
    ):
        with pytest.raises(HiresxError, match=words) as error:
            Simulation(case(*boundary), "cpu", profiles=profiles)
        assert hint in error.value.hint
    with pytest.raises(HiresxError, match="initial state") as error:
        Simulation(case(initial={"function": "pulse"}), "cpu", profiles={"pulse": inflow})
    assert "initial=pulse" in error.value.hint
    with pytest.raises(HiresxError, match="monitor") as error:
        Simulation(case(monitors=["drag"]), "cpu", profiles={"drag": inflow})
    assert "monitors=[drag]" in error.value.hint


def test_profiles_of_conditions_and_sponges_are_taken():
    def quiet(x, y, z):
        return 1.0, 2.0, 0.0, 0.0, P

    Simulation(case(ASKS, sponge=[SPONGE]), "cpu", profiles={"inflow": inflow, "quiet": quiet})


def test_functions_give_the_initial_values_of_scalars():
    """In place of a number, or of a function that the case names; they may have the parameters of the case."""

    def dye(x, y, z, *, width):
        return np.exp(-((x / width) ** 2))

    for initial in (0.25, "dye"):
        made = case(
            scalar=[{"name": "dye", "initial": initial}, {"name": "ink", "initial": 0.5}], parameters={"width": 0.3}
        )
        block = Simulation(made, "cpu", scalars={"dye": dye}).blocks[0]
        np.testing.assert_array_equal(block.state("dye"), dye(block.x, block.y, block.z, width=0.3))
        np.testing.assert_array_equal(block.state("ink"), 0.5)
    with pytest.raises(HiresxError, match="initial value of a scalar") as error:
        Simulation(made, "cpu", profiles={"dye": dye})
    assert 'scalars={"dye": dye}' in error.value.hint


def test_masked_entries_are_refused_by_place():
    block = Simulation(case(), "cpu").blocks[0]
    rho = np.ma.masked_array(np.ones(block.x.shape))
    block.set_state(rho, 0, 0, 0, P)
    rho[0, 2, 5] = np.ma.masked
    with pytest.raises(HiresxError, match=r"block 'box': rho is masked at \[0, 2, 5\]"):
        block.set_state(rho, 0, 0, 0, P)
    with pytest.raises(HiresxError, match=r"something else than a state: p is masked at \[0, 2, 5\]"):
        Simulation(case(), "cpu", initial=lambda x, y, z: (1, 0, 0, 0, rho))
    with pytest.raises(HiresxError, match=r"block 'a': y is masked at \[0, 2, 5\]"):
        Block("a", block.x, rho, block.z)
    with pytest.raises(HiresxError, match="block 'a': z is an array of type complex128"):
        Block("a", block.x, block.y, block.z + 0j)
    for given in ((rho, [1.0]), (1.0, [2.0], [rho])):
        with pytest.raises(HiresxError, match=r"is masked at \[0, 2, 5\]"):
            Waves(*given)
