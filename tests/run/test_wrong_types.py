"""What a script gives that is no case, no number of steps, and no scalar: one clear error."""

import pytest

from hiresx import Case, HiresxError, Simulation, load


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
