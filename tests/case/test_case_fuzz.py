"""Case files as hurried and hostile hands write them: a case or one clear error, never a traceback.

`HIRESX_FUZZ_EXAMPLES` sets how many are tried (10,000 once, by hand; a modest number here).
"""

import copy
import os
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiresx import HiresxError
from hiresx.case import Case, bundled_cases, find
from hiresx.case.loader import load
from hiresx.case.toml import dumps

EXAMPLES = int(os.environ.get("HIRESX_FUZZ_EXAMPLES", "150"))
CASES = {name: tomllib.loads(find(name).read_text(encoding="utf-8")) for name in bundled_cases()}
TEXTS = {name: find(name).read_text(encoding="utf-8") for name in bundled_cases()}

numbers = st.integers(-(2**70), 2**70) | st.floats() | st.sampled_from([0, 1, -1, 7, 1e-300, 1e300])
words = st.sampled_from(["box", "wavy", "periodic", "slip-wall", "far-field", "imin", "all", "js", "inf", "", "x"])
values = st.recursive(
    numbers | words | st.booleans() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def places(tree, path=()):
    """Paths of every entry of nested tables and lists."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def change(tree, path, how, value):
    *way, last = path
    for key in way:
        tree = tree[key]
    if how == "replace":
        tree[last] = value
    elif how == "remove":
        del tree[last]
    elif isinstance(tree, dict):
        tree[f"{last}x"[:40]] = value
    else:
        tree.append(copy.deepcopy(tree[last]))


def survives(path):
    try:
        load(str(path))
    except HiresxError as error:
        assert error.message and "Traceback" not in str(error)


fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@fuzzed
@given(data=st.data())
@pytest.mark.slow
def test_changed_keys_and_values(tmp_path, data):
    tree = copy.deepcopy(CASES[data.draw(st.sampled_from(sorted(CASES)))])
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(sorted(places(tree), key=str)))
        change(tree, path, data.draw(st.sampled_from(["replace", "remove", "add"])), data.draw(values))
        if not tree:
            return
    file = tmp_path / "case.toml"
    file.write_text(dumps(tree), encoding="utf-8")
    survives(file)


@fuzzed
@given(data=st.data())
def test_changed_text(tmp_path, data):
    text = TEXTS[data.draw(st.sampled_from(sorted(TEXTS)))]
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 40))
    put = data.draw(st.text(max_size=6) | st.sampled_from(["[", "]", "=", '"', "\n[[", "{", "#", "\x00", "\n\n", "."]))
    file = tmp_path / "case.toml"
    file.write_bytes((text[:at] + put + text[at + cut :]).encode("utf-8", "surrogatepass"))
    survives(file)


WRONG = [3, float("nan"), True, "x", [3], [[{"a": 1}]], {"a": 1}]


@pytest.mark.parametrize("key", [field.alias or name for name, field in Case.model_fields.items()])
def test_every_table_of_a_wrong_type(key):
    """A case with a function `derived`, so that what this reads is wrong too."""
    for wrong in WRONG:
        tables = copy.deepcopy(CASES["planar-jet"]) | {key: wrong}
        try:
            Case.from_dict(tables, directory=find("planar-jet").parent)
        except HiresxError as error:
            assert error.message and error.hint is not None
