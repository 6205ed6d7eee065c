"""Numbers of things in messages."""

import pytest

from hiresx.base.plural import plural


@pytest.mark.parametrize(
    ("number", "noun", "form", "text"),
    [
        (1, "rank", "", "1 rank"), (0, "GPU", "", "0 GPUs"), (3, "sample", "", "3 samples"),
        (1200, "step", ",", "1,200 steps"), (1, "process", "", "1 process"), (2, "process", "", "2 processes"),
    ],
)  # fmt: skip
def test_the_noun_follows_the_number(number, noun, form, text):
    assert plural(number, noun, form) == text
