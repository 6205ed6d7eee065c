"""The values that a sweep goes through, and the curves that are drawn of its table."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import made_runs
import numpy as np
import pytest
from swept_case import written

import hiresx
from hiresx.errors import HiresxError
from hiresx.sweeps import running
from hiresx.sweeps.members import SweepMember
from hiresx.sweeps.run_numbers import analyses, column
from hiresx.sweeps.table import SweepTable, row
from hiresx.sweeps.values import combinations, parse, split_values


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1,2", ["1", "2"]),
        ("[1,2],[3,4]", ["[1,2]", "[3,4]"]),
        ("[[1,2],[3]],5", ["[[1,2],[3]]", "5"]),
        ('"a,b",c', ['"a,b"', "c"]),
        ("'a,[',c", ["'a,['", "c"]),
        (r'"a\",b",c', [r'"a\",b"', "c"]),
        ('{law="power", a=[1,2]},{law="constant"}', ['{law="power", a=[1,2]}', '{law="constant"}']),
    ],
)
def test_values_are_parted_at_commas_outside_brackets_and_quotes(text, parts):
    assert split_values(text, "here") == parts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.b=", "no value"), ("a.b=1,,2", "a value is missing"), ("a.b=1,", "a value is missing"), ("a.b", "not of"),
        ("a.b=[1,2", "a ] is missing"), ("a.b=1],2", 'the "]" closes nothing'), ('a.b="1,2', 'a " is missing'),
        ("a b=1", "not of the form"), ("=1", "not of the form"),
    ],
)  # fmt: skip
def test_values_that_are_none(text, message):
    with pytest.raises(HiresxError, match=message.replace("]", r"\]")):
        parse([text])


def test_all_combinations_or_values_side_by_side():
    axes = {"a": [1, 2], "b": [3, 4], "c": [5]}
    assert [tuple(row.values()) for row in combinations(axes, False)] == [(1, 3, 5), (1, 4, 5), (2, 3, 5), (2, 4, 5)]
    assert [tuple(row.values()) for row in combinations(axes, True)] == [(1, 3, 5), (2, 4, 5)]
    with pytest.raises(HiresxError, match="different numbers of values: a 2, b 3"):
        combinations({"a": [1, 2], "b": [3, 4, 5]}, True)
    with pytest.raises(HiresxError, match="1000000 runs"):
        combinations({"a": list(range(1000)), "b": list(range(1000))}, False)


def test_a_curve_for_each_combination_of_the_other_keys():
    rows = [
        {"run": f"{a}{b}", "x.a": a, "x.b": b, "n": 10 * a, "y": y}
        for a, b, y in ((1, "p", 3.0), (2, "p", 4.0), (1, "q", 5.0), (2, "q", None))
    ]
    found = SweepTable("A table", ("x.a", "x.b"), tuple(rows[0]), tuple(rows))

    def curves(x: str, y: str) -> dict[str, list[tuple[float, float]]]:
        return {line.get_label(): line.get_xydata().tolist() for line in found.plot(x, y)[1].lines}

    assert curves("a", "y") == {"b = p": [[1, 3], [2, 4]], "b = q": [[1, 5]]}
    assert curves("b", "y") == {"a = 1": [[0, 3], [1, 5]], "a = 2": [[0, 4]]}
    only = SweepTable("A table", ("x.a",), tuple(rows[0]), tuple(rows[:2]))
    (line,) = only.plot("n", "y")[1].lines
    assert line.get_xydata().tolist() == [[10, 3], [20, 4]]
    with pytest.raises(HiresxError, match=r'no run has a number in the column "x\.b"'):
        found.plot("a", "b")


def test_a_notebook_shows_the_table():
    shown = SweepTable("t", (), ("run", "y"), ({"run": "<a>", "y": 1 / 3}, {"run": "b", "y": None}))._repr_html_()
    rows = ("<th>run</th><th>y</th>", "<td>&lt;a&gt;</td><td>0.333333</td>", "<td>b</td><td></td>")
    assert shown == f"<table>{''.join(f'<tr>{cells}</tr>' for cells in rows)}</table>"


def test_the_row_of_a_run_has_what_analyses_find_and_why_others_fail(tmp_path):
    made_runs.run(tmp_path / "one")

    def fails(run):
        raise HiresxError(f"jet: no probe in {run.name}")

    every = [SimpleNamespace(values=fails), SimpleNamespace(values=lambda run: {"spectrum.bins": 4})]
    case = json.loads((tmp_path / "one/run.json").read_text())["case"]
    found = row(tmp_path, SweepMember("one", {}, case), (), every)
    assert found["spectrum.bins"] == 4 and found["error"] == "jet: no probe in one"


def test_a_sample_at_the_start_counts(tmp_path):
    made_runs.probe(made_runs.run(tmp_path), "one", np.array([0.0, 0.5, 1.0]), [[0, 0, 0]], p=np.array([[1], [2], [4]]))
    assert column("one.p:min", 0.5).value(tmp_path) == 2.0
    assert column("one.p:mean", 1.0).value(tmp_path) == 4.0
    with pytest.raises(HiresxError, match=r"no sample from time 1\.1 on"):
        column("one.p:mean", 1.1).value(tmp_path)


def test_wall_time_is_that_of_all_processes_of_a_run(tmp_path):
    made_runs.run(tmp_path / "one")
    record = tmp_path / "one" / "run.json"
    entries = json.loads(record.read_text()) | {"wall_s": 2.5}
    one = SweepMember("one", {}, entries["case"])
    record.write_text(json.dumps(entries))
    assert row(tmp_path, one)["wall_s"] == 2.5
    before = [{"before": {"wall_s": 40.0}}, {"before": {"wall_s": 300.0}}, {"before": {}}]
    record.write_text(json.dumps(entries | {"restarts": before}))
    assert row(tmp_path, one)["wall_s"] == 342.5


@pytest.mark.parametrize(("words", "runs"), [({}, 4), ({"zip": True}, 2)])
def test_a_script_has_all_combinations_unless_it_asks_for_values_side_by_side(tmp_path, monkeypatch, words, runs):
    asked = []

    def run(of, *others):
        asked.append([one.values for one in of.members])
        return running.SweepEnd(SweepTable("", (), (), ()))

    monkeypatch.setattr(running, "run", run)
    values = {"parameters.strength": [0.1, 0.2], "time.steps": [4, 5]}
    hiresx.sweep(written(tmp_path / "tube"), values, tmp_path / "sweep", **words)
    (members,) = asked
    assert len(members) == runs and {"parameters.strength": 0.1, "time.steps": 4} in members


def test_a_run_that_is_about_to_end_is_waited_for(monkeypatch, tmp_path):
    """It is said once; one that does not end is not waited for for ever."""
    tries, said = iter([False, False, True]), []

    @contextmanager
    def locked(place):
        if not next(tries, False):
            raise HiresxError("in use")
        yield

    monkeypatch.setattr(running.directories, "lock_directory", locked)
    monkeypatch.setattr(running.wall, "sleep", lambda seconds: None)
    assert running._free(tmp_path, said.append)
    assert said == [f"{tmp_path} is still running: waiting for its end"]
    monkeypatch.setattr(running, "PATIENCE", -1.0)
    assert not running._free(tmp_path, said.append)


def test_two_analyses_of_one_verb_have_names_of_their_own():
    found = analyses(["jet --from 15", "spectrum lips", "jet --from 30"])
    assert [(one.name, one.command, one.words) for one in found] == [
        ("jet", "jet", ("--from", "15")), ("spectrum", "spectrum", ("lips",)), ("jet-2", "jet", ("--from", "30"))
    ]  # fmt: skip
