"""What is said of a value that cannot be: whose key it is, what it may be, and that before anything is compiled."""

import pytest

from hiresx import Case, Simulation
from hiresx.case import load
from hiresx.cli import execute
from hiresx.device.cpu import CpuBackend
from hiresx.errors import HiresxError


def said(*overrides: str) -> tuple[str, str]:
    with pytest.raises(HiresxError) as caught:
        load("sod", overrides=overrides)
    return caught.value.message.partition("case.toml: ")[2], caught.value.hint


@pytest.mark.parametrize(
    ("override", "message", "hint"),
    [
        ("scalar=[{name='dye', initial='initail'}]", "--set scalar.0.initial: ", 'did you mean "initial"?'),
        (
            'boundary=[{faces="all", type="far-field", state={rho=1.0, p=1.0}, scalars={dye="gg"}}]',
            "--set boundary.0.scalars.dye: ",
            "functions: exact, initial",
        ),
        ('probe=[{name="residual", x=0.5}]', '--set probe.0.name = "residual": every run has', ""),
        ("boundary.0.type=axis", '--set boundary.0 has type = "axis"', ""),
        ("boundary.0.tpye=axis", '--set boundary.0.tpye = "axis": unknown key', 'did you mean "type"?'),
        ("time.steps=0", "--set time.steps = 0: must be greater than or equal to 1", "steps: steps to stop after"),
        (
            "gas.gamma=1",
            "--set gas.gamma = 1: must be greater than 1",
            "gamma: ratio of specific heats; the default",
        ),
        (
            'output.subset=[{name="a", line={start=[0, 0, 0], y=1.0}}]',
            "--set output.subset.0.line.start: unknown key",
            "choices: x, y, z; line: line { y = 0.0 } through a 2-D field",
        ),
        ("grid.n=[0,1,1]", "--set grid.n.0 = 0: must be", "n: nodes [ni, nj, nk] along x, y, z"),
    ],
)
def test_the_key_and_what_it_may_be(override, message, hint):
    scalars = ["scalar=[{name='dye'}]"] if "gg" in override else []
    found, told = said(*scalars, override)
    assert found.startswith(message) and hint in told and " or a " not in found and "correct this key" not in told


def test_a_range_that_the_schema_knows():
    with pytest.raises(HiresxError) as caught:
        Case.from_dict({"grid": {"generator": "channel-bump", "thickness": 0.6, "cells": [9, 9, 9], "n_normal": 9},
                        "time": {"steps": 1}})  # fmt: skip
    assert "more than 0 and less than 0.5" in caught.value.hint


def test_what_is_in_the_file_is_not_laid_to_set(tmp_path):
    (tmp_path / "case.toml").write_text(
        'grid = { generator = "box", n = [9, 9, 1], lower = [0.0, 0.0, 0.0], upper = [1.0, 1.0, 0.0] }\n'
        "time = { steps = 1 }\ninitial = { state = { rho = 1.0, p = 1.0 } }\n"
        '[[boundary]]\nfaces = "all"\ntype = "axis"\n'
    )
    with pytest.raises(HiresxError) as caught:
        load(tmp_path, overrides=['probe=[{name="a", x=0.5}]'])
    assert 'case.toml: boundary.0 has type = "axis"' in caught.value.message


@pytest.mark.parametrize(
    ("override", "name", "signs"),
    [
        ('probe=[{name="a/b", x=0.5}]', "a-b", "letters, digits, hyphens and underscores, beginning with a letter or"),
        ('scalar=[{name="a-b"}]', "ab", "letters and digits, beginning with a letter, 100 at most"),
        (
            'output.subset=[{name="a-b", every_steps=1, line={y=0.0}}]',
            "a_b",
            "letters, digits and underscores",
        ),
    ],
)
def test_the_rule_of_a_name_is_the_one_that_holds(override, name, signs):
    found, hint = said(override)
    assert ": not a name" in found and hint.startswith(signs)
    load("sod", overrides=[override.replace("a/b", name).replace("a-b", name)])


def test_a_condition_without_a_class_is_named_before_anything_is_compiled(monkeypatch):
    case = load("sod")
    monkeypatch.setattr(type(case.boundary[0]), "kernel", "vent")
    monkeypatch.setattr(CpuBackend, "compile", lambda *_: pytest.fail("it compiles"))
    with pytest.raises(HiresxError, match=r'no class in hiresx/rhs/boundary\.py has kernel = "vent"') as caught:
        Simulation(case, "cpu")
    assert "characteristic" in caught.value.hint and "outflow" in caught.value.hint
    assert execute(["check", "sod"]) == 2
