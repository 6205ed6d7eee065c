"""The order of a stage follows from what its terms need and give."""

from itertools import permutations

import pytest

from hiresx import HiresxError, kernels
from hiresx.device.fields import Field
from hiresx.rhs.terms import FLUX_FIELDS, Step, Term, check_flux_fields, in_order


def names(steps):
    return [name for step in steps for name, _ in step.tasks]


def step(name, needs="", gives=""):
    return Step([(name, print)], needs.split(), gives.split())


def test_each_comes_behind_what_it_needs():
    """Whatever order they stand in; two that give the same are both waited for, and else the order is kept."""
    steps = [step("sum", "a b"), step("late", "sensor", "b"), step("one", "", "a"), step("other", "", "sensor a")]
    for given in permutations(steps):
        found = names(in_order(given))
        assert found.index("late") > found.index("other") and found[-1] == "sum"
    assert names(in_order([step("x"), step("y"), step("z")])) == ["x", "y", "z"]


def test_what_cannot_be_put_in_order_is_refused():
    with pytest.raises(ValueError, match="nothing gives sensor"):
        in_order([step("flux", "sensor")])
    with pytest.raises(ValueError, match="wait for each other: a, b"):
        in_order([step("one", "b", "a"), step("other", "a", "b")])


def test_what_a_term_gives_with_its_ghosts_is_kept_in_work_numbers():
    """The kernel that repeats nodes of faces knows no others."""
    with pytest.raises(ValueError, match='field "mark": what a term, or the metrics, give'):
        Field("mark", "stored", lambda layout: 1, halo="term")


def test_a_flux_that_reads_a_field_which_no_term_gives_is_refused(monkeypatch):
    monkeypatch.setattr(kernels, "trait", lambda folder, name, what, **rest: 2 * (name == "blended"))
    check_flux_fields("roe", [])
    check_flux_fields("blended", [Term("other", []), Term("sensor", [], gives=(FLUX_FIELDS,))])
    with pytest.raises(HiresxError, match=r"kernels/flux/blended\.h reads 2 numbers of every node") as error:
        check_flux_fields("blended", [Term("other", [])])
    assert "hiresx/rhs/terms/<name>.py" in error.value.hint and 'gives=("flux_fields",)' in error.value.hint
