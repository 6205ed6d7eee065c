"""Faults drawn by a seed: the same ones again, plausible programs, at places all over the sources, and told as caught
or not. Trying many of them takes an hour: python tests/random_faults.py."""

import random
import tomllib
from functools import cache
from itertools import islice
from pathlib import Path

import mutations
import pytest
import random_faults as script
import reached
from mutations import of_kernel

KERNEL = """
#include <math.h>
// a + b of a comment
template <class T> HD T sum(const T *a, T b) {
    const T first = a[0] * b - real(3.0 / 10) * square(a[1] + b);
    if (b < first && first > T(real(0))) return smaller(first, b);
    return first + a[2] * (b - a[0]) / b;
}
"""


@cache
def all_of(text: str) -> set[str]:
    dice = random.Random("all")
    return {of_kernel(text, dice).applied(text) for _ in range(2000)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a[0] * b - real", "a[0] * b + real"),
        ("a[0] * b - real", "a[0] - real"),
        ("3.0 / 10", "6.0 / 10"),
        ("3.0 / 10", "3.0 / 11"),
        (" - real(3.0 / 10) * square(a[1] + b);", ";"),
        (" * square(a[1] + b);", ";"),
        ("a[1]", "a[0]"),
        ("a[2]", "a[1]"),
        ("b < first", "b <= first"),
        ("&&", "||"),
        ("first > T", "first >= T"),
        ("smaller(", "larger("),
        ("(b - a[0]) / b", "(b - a[0])"),
        (" + a[2] * (b - a[0]) / b;", ";"),
    ],
)
def test_changes_of_a_kernel(old, new):
    assert KERNEL.replace(old, new) in all_of(KERNEL)


def test_comments_and_other_lines_of_no_code_stay():
    changed = all_of(KERNEL)
    assert 20 <= len(changed) <= 40
    assert all(text.startswith(KERNEL[: KERNEL.index("const T *a")]) for text in changed)


def test_changes_of_python():
    pytest.importorskip("cosmic_ray", reason="pip install '.[mutants]'")
    text = "def share(a, n):\n    '''1 + 2'''\n    if a < n and n:\n        return a + 2\n    return -a / n\n"
    dice = random.Random("python")
    found = {mutations.of_python(text, dice).applied(text) for _ in range(300)}
    for old, new in [("a < n", "a <= n"), ("and", "or"), ("a + 2", "a - 2"), ("a / n", "a * n"), ("-a", "a")]:
        assert text.replace(old, new) in {one.replace("return  a", "return a") for one in found}, (old, found)
    assert all("1 + 2" in one for one in found)


def test_a_change_is_told_from_others_like_it():
    text = "x = 1\ny = 2\nx = 1\ny = 3\n"
    old, new = mutations.Mutation(16, 17, "5", "").anchored(text)
    assert text.count(old) == 1 and text.replace(old, new) == "x = 1\ny = 2\nx = 5\ny = 3\n"


@pytest.mark.slow
def test_the_same_seed_draws_the_same_faults():
    pytest.importorskip("cosmic_ray", reason="pip install '.[mutants]'")
    drawn = list(script.drawn("a word", 12))
    assert drawn == list(islice(script.drawn("a word", 30), 12)) != list(script.drawn("another", 12))
    for one in drawn:
        fault = one.fault
        assert fault.anchored(script.ROOT) and fault.old != fault.new
        assert fault.tests and all((script.ROOT / file).is_file() for file in fault.tests), fault
        assert tomllib.loads(script.as_entry(fault))["fault"][0]["old"] == fault.old


def test_every_source_has_tests():
    names = script.sources()
    assert {name.split("/")[0] for name in names} == set(script.DRAWN) and len(names) > 300
    assert not [
        name for name in names for room in script.packages_of(name) if not (script.ROOT / "tests" / room).is_dir()
    ]
    assert script.tests_of("kernels/flux/roe.h")[0] == "tests/device/test_convection_numpy.py"
    assert script.tests_of("hiresx/grid/adf.py")[0].startswith("tests/grid/")


def test_kernels_are_found_that_come_past_a_place():
    name = "kernels/arithmetic.h"
    text = (script.ROOT / name).read_text(encoding="utf-8")
    at = text.index("sin(6.28")
    assert script.kernels_around(name, at) == {"wave_weights": 1}
    assert script.tests_of(name, at)[0] == "tests/device/test_kernels_waves.py"
    own = (script.ROOT / "kernels/waves.h").read_text(encoding="utf-8")
    assert script.kernels_around("kernels/waves.h", own.index("rint(")) == {"wave_weights": 0}
    assert script.kernels_around("kernels/weno5.h", 2000)["interpolate"] >= 1


def test_what_is_called_equivalent_is_there_and_says_why():
    for (file, old, new), reason in script.equivalent().items():
        text = (script.ROOT / file).read_text(encoding="utf-8")
        assert text.count(old) == 1 and old != new and len(reason) > 20, (file, old)


NOTED = "tests/decomposition/test_partition.py"
# A line of hiresx/decomposition/halo_bytes.py.
ANCHOR = "per_node = cut.stencil.halo"


def noted(tests, **digests):
    """Notes of a run in which these tests passed, and came past everything."""
    found = reached.Reached(Path("nowhere"), {}, dict.fromkeys(tests, 0.1), {"metrics": set(tests)})
    texts = script._test_files()
    found.digests.update({file: reached.digest(texts[file]) for file in map(script._file, tests)} | digests)
    return found


def test_tests_that_come_past_a_fault_are_run_in_turn(monkeypatch):
    """Quick ones of the nearest files first; files that have changed whole; where none is known those that name it."""
    near, far = f"{NOTED}::near", "tests/exchange/test_ranks.py::far"
    fault = script.Fault(
        "f",
        "hiresx/decomposition/halo_bytes.py",
        ANCHOR,
        ANCHOR.replace("=", "= 2 +"),
        (NOTED,),
    )
    one, notes = script.Drawn(fault, "a kind"), noted([near, far, f"{NOTED}::long", "tests/post/test_jet.py::endless"])
    notes.seconds.update({f"{NOTED}::long": 4.0, "tests/post/test_jet.py::endless": 1e3})
    monkeypatch.setattr(reached.Reached, "tests", lambda self, name, text, at: set(self.seconds))
    (batch,) = script.batches(one, notes, False)
    assert (batch.files, batch.order, batch.marked) == (
        (NOTED, "tests/exchange/test_ranks.py"), (near, far, f"{NOTED}::long"), "not slow",
    )  # fmt: skip
    assert [found.marked for found in script.batches(one, notes, True)] == ["not slow", "slow"]
    whole = script.batches(one, noted([near, far], **{NOTED: "another"}), False)
    assert [(found.files, found.order) for found in whole] == [
        (("tests/exchange/test_ranks.py",), (far,)), ((NOTED,), None),
    ]  # fmt: skip
    monkeypatch.setattr(reached.Reached, "tests", lambda self, name, text, at: set())
    assert script.batches(one, notes, False) == [script.Batch((NOTED,), None, "not slow")]
    assert script.batches(one, None, False) == [script.Batch((NOTED,), None, "not slow")]


def test_a_statement_has_all_its_lines():
    text = "x = (\n    1,\n    2,\n)\nif x and (\n    x[0]\n):\n    y = 1\nelse:\n    y = 2\n"
    assert [reached.statement(text, line) for line in (1, 3, 5, 6, 8, 10)] == [
        (1, 4), (1, 4), (5, 7), (5, 7), (8, 8), (10, 10),
    ]  # fmt: skip


def test_what_is_run_at_an_import_is_not_that_of_the_test_that_came_first():
    text = "x = 1\n\n\n@cache\ndef f(\n    a=1\n):\n    return a\n\n\nclass C:\n    b = 2\n"
    assert [n for n in range(1, 13) if reached.in_function(text, n)] == [8]
    lines = {1: {"first"}, 8: {"a", "b"}}
    notes = reached.Reached(Path("nowhere"), {"m.py": reached.digest(text)}, {}, {})
    object.__setattr__(notes, "_lines", lambda name: lines)
    assert notes.tests("m.py", text, 0) == {"first", "a", "b"}
    assert notes.tests("m.py", text, text.index("return")) == {"a", "b"}


@pytest.mark.slow
def test_what_tests_reach_is_noted(tmp_path):
    """In the process of the tests and in those that they begin, and which kernels they launch."""
    pytest.importorskip("coverage", reason="pip install '.[mutants]'")
    reached.note(tmp_path, ["time"], None, ("-k", "bytes_of_a_point"))
    notes, name = reached.Reached.read(tmp_path), "hiresx/device/fields.py"
    text = (script.ROOT / name).read_text(encoding="utf-8")
    asked = notes.tests(name, text, text.index("return layout.equations.variables"))
    assert len(asked) == 4 and asked == set(notes.seconds) and notes.kernels["metrics"]


@pytest.mark.slow
def test_the_script_tells_what_is_caught(tmp_path, capsys, monkeypatch):
    name = "hiresx/decomposition/halo_bytes.py"
    test = ("tests/decomposition/test_partition.py::test_bytes_of_a_stage",)
    made = [
        ("caught", ANCHOR, ANCHOR.replace("=", "= 2 +")),
        ("survives", ANCHOR, "per_node = (cut.stencil.halo)"),
    ]
    faults = [script.Drawn(script.Fault(word, name, old, new, test), "a kind") for word, old, new in made]
    kept = tmp_path / "equivalent.toml"
    entry = script.as_entry(script.Fault("", name, ANCHOR, ANCHOR.replace("= ", "= +"), test))
    kept.write_text(f'{entry}\nreason = "a sign that changes nothing"\n')
    monkeypatch.setattr(script, "equivalent", lambda read=script.equivalent: read(kept))
    faults.append(script.Drawn(script.Fault("same", name, ANCHOR, ANCHOR.replace("= ", "= +"), test), "a kind"))
    assert script.run(faults, 1, tmp_path / "out", script.Bounds()) == 1
    said = capsys.readouterr().out
    lines = (
        f"caught  caught  a kind  {test[0]}",
        "survived  survives",
        "equivalent  same",
        "1 of 2 caught (50.0%), 3 drawn",
    )
    assert all(line in said for line in lines), said
    assert said.count("[[fault]]") == 1


def test_what_is_red_by_chance_is_left_out(tmp_path, monkeypatch):
    """One test is red without the fault, one once in a while; the third is red with it alone."""
    asked, error = [], "AssertionError"

    def outcome(fault, place, cache, longest, *options):
        asked.append((fault.tests, options))
        red = next((test for test in ("t.py::always", "t.py::once", "t.py::true") if test not in options), None)
        if fault.tests == ("t.py::once",):
            return script.SURVIVED, script.deliberate.Tried(0, "", 1.0, 1.0)
        return script.CAUGHT, script.deliberate.Tried(1, f"FAILED {red} - {error}", 1.0, 1.0)

    def pytest_(place, cache, tests, *options, longest):
        return script.deliberate.Tried(int(tests == ["t.py::always"]), "", 1.0, 1.0)

    monkeypatch.setattr(script.deliberate, "outcome", outcome)
    monkeypatch.setattr(script.deliberate, "pytest", pytest_)
    one = script.Drawn(script.Fault("f", "f.py", "a", "b", ("t.py",)), "ReplaceBinaryOperator_Div_FloorDiv")
    found = script.tried(one, tmp_path, tmp_path, script.Bounds())
    assert (found["outcome"], found["test"], found["seconds"]) == ("caught", "t.py::true", 3.0)
    assert asked[-2][1][-4:] == ("--deselect", "t.py::always", "--deselect", "t.py::once")
    error = "TypeError: unsupported operand type(s) for //: 'PosixPath' and 'str'"
    assert script.tried(one, tmp_path, tmp_path, script.Bounds())["outcome"] == "does not run"
