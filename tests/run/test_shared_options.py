"""Options that commands share: what Typer sees of a dataclass, and what the command gets."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest

from hiresx.cli.look_options import LookOptions
from hiresx.cli.option_groups import Only, expand_option_groups
from hiresx.errors import HiresxError


@dataclass(frozen=True)
class Span:
    start: int = 1
    end: int = 2


def command(name: str, every: int = 3, *, span: Span, look: Annotated[LookOptions, Only("zoom", "levels")]) -> tuple:
    """What it does."""
    return name, every, span, look


def test_fields_stand_where_the_dataclass_stood():
    seen = inspect.signature(expand_option_groups(command)).parameters
    assert list(seen) == ["name", "every", "start", "end", "levels", "zoom"]
    assert seen["name"].default is inspect.Parameter.empty
    assert [seen[name].default for name in list(seen)[1:]] == [3, 1, 2, None, None]
    assert (
        expand_option_groups(command).__doc__ == "What it does." and expand_option_groups(command).__name__ == "command"
    )


def test_the_command_gets_the_dataclass():
    found = expand_option_groups(command)(name="a", every=4, start=7, end=8, levels="5", zoom=None)
    assert found == ("a", 4, Span(7, 8), LookOptions(levels="5"))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"levels": "5"}, {"levels": 5}),
        ({"levels": "0.5,1"}, {"levels": (0.5, 1.0)}),
        ({"limits": "0,2", "zoom": "0,10"}, {"limits": (0.0, 2.0), "zoom": (0.0, 10.0)}),
        ({"width": 5.0, "font": 8.0, "exponent": 1.0}, {"width": 5.0, "font": 8.0, "exponent": 1.0}),
    ],
)
def test_the_look_that_options_ask_for(given, wanted):
    look = LookOptions(**given).look()
    assert {name: getattr(look, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("given", "message"), [({"limits": "1"}, "--range"), ({"zoom": "1,2,3"}, "--zoom"), ({"levels": "a"}, "--levels")]
)
def test_a_look_that_is_not_understood(given, message):
    with pytest.raises(HiresxError, match=message):
        LookOptions(**given).look()
