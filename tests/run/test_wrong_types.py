"""What a script gives that is no case, no number of steps, and no scalar: one clear error."""

import numpy as np
import pytest

from hiresx import Case, HiresxError, Simulation, gradient, load, sweep
from hiresx.grid import Grid, matched_connections, read_plot3d, write_plot3d


@pytest.mark.parametrize("given", [{}, 3, ["sod"]])
def test_a_simulation_of_what_is_no_case(given):
    with pytest.raises(HiresxError, match="takes a case, not a"):
        Simulation(given)


@pytest.mark.parametrize("given", [None, "abc", 3])
def test_a_case_of_what_is_no_dictionary(given):
    with pytest.raises(HiresxError, match="made of a dictionary"):
        Case.from_dict(given)


@pytest.mark.parametrize("steps", [-5, 1.5, "2"])
def test_steps_that_are_no_number_of_steps(steps):
    run = Simulation("sod", "cpu")
    with pytest.raises(HiresxError, match="steps are a whole number"):
        run.run(steps=steps, progress=False)
    assert run.step_count == 0


def test_a_scalar_that_the_case_does_not_have():
    block = Simulation("sod", "cpu").blocks[0]
    with pytest.raises(HiresxError, match='no scalar "dye"'):
        block.set_state(1.0, 0.0, 0.0, 0.0, 0.7, scalars={"dye": 0.3})


def test_a_power_with_more_digits_than_there_is_time_for():
    with pytest.raises(HiresxError, match="nan everywhere"):
        Simulation(load("sod", overrides=['source.e="9**9**9"']), "cpu")


@pytest.mark.parametrize("name", [3, ["p"], None, np.ones(2)])
def test_a_state_by_what_is_no_name_says_which_names_there_are(name):
    block = Simulation("sod", "cpu").blocks[0]
    with pytest.raises(HiresxError, match="there is no variable") as error:
        block.state(name)
    assert "there are rho, u, v, w, p" in error.value.hint and "mach" in error.value.hint


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"backend": 3}, "backend: 3 is not a text"),
        ({"out": 1.5}, "out: 1.5 is not a text or a path or None"),
        ({"weights": "1,1"}, "weights: '1,1' is not a list of numbers or None"),
        ({"weights": ["1"]}, "is not a list of numbers"),
        ({"transport": ["auto"]}, "is not a text"),
        ({"parts": []}, r"parts: \[\] is not a function or None"),
        ({"restart": 3}, "restart: 3 is neither a run nor a checkpoint"),
        ({"rebalance": 2.5}, "rebalance: 2.5 is not a"),
    ],
)
def test_arguments_of_a_simulation_of_another_type(given, words):
    with pytest.raises(HiresxError, match=words) as error:
        Simulation("sod", **{"backend": "cpu", **given})
    assert error.value.hint


def test_arguments_of_other_calls_of_another_type():
    run = Simulation("sod", "cpu")
    for call, words in (
        (lambda: run.rebuild(weights=3), "weights: 3 is not a list of numbers"),
        (lambda: run.rebuild(parts="equal"), "parts: 'equal' is not a function"),
        (lambda: run.blocks[0].set_state(1, 0, 0, 0, 1, 3), "scalars: 3 is not a dictionary"),
        (lambda: load("sod", overrides=3), "overrides: 3 is not a list of texts or a dictionary"),
        (lambda: load("sod", unset=[3]), r"unset: \[3\] is not a list of texts"),
        (lambda: run.run(steps=True), "steps are a whole number"),
        (lambda: Simulation("sod", "cpu", placement="best"), 'no placement strategy "best"'),
        (lambda: sweep("sod", {"time.cfl": [0.5]}, out=3), "out: 3 is not a text or a path"),
        (lambda: gradient("bump", of=3, by=["grid.thickness"]), "of: 3 is not a list of texts"),
        (lambda: Grid(3), "blocks: 3 is not a list of blocks"),
        (lambda: matched_connections([3]), r"blocks: \[3\] is not a list of objects of the class Block"),
        (lambda: read_plot3d(3), "path: 3 is not a text or a path"),
        (lambda: write_plot3d("a.xyz", 3), "grid: 3 is not an object of the class Grid"),
    ):
        with pytest.raises(HiresxError, match=words):
            call()
    run.rebuild(weights=np.ones(1))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda run: run.step(dt=-1),
            r"Simulation\.step: got an unexpected keyword argument 'dt'\n  it has no arguments",
        ),
        (lambda run: run.blocks[0].set_state(), r"set_state: missing a required argument: 'rho'\n  .* rho, u, v, w, p"),
        (lambda run: Simulation("sod", case="lax"), "Simulation: multiple values for argument 'case'"),
    ],
)
def test_arguments_that_are_missing_or_too_many(call, words):
    with pytest.raises(HiresxError, match=words):
        call(Simulation("sod", "cpu"))
