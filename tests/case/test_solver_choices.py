"""What of a case is compiled into its kernels."""

import pytest

from hiresx import HiresxError, load
from hiresx.solver.case_configuration import configuration


@pytest.mark.parametrize(("reynolds", "same"), [("inf", True), ("100.0", False)])
def test_the_prandtl_number_matters_where_heat_is_conducted(reynolds, same):
    made = [configuration(load("free-stream", overrides=[f"gas.reynolds={reynolds}", *more]))
            for more in ([], ["gas.prandtl=0.9"])]  # fmt: skip
    assert (made[0] == made[1]) is same


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        (["cutoff=1e-6"], '"js" has no cut-off; leave it out, or take teno or teno_adaptive, or the hybrid'),
        (["cutoff=1e-6", 'inviscid="hybrid"'], '"js" has no cut-off'),
        (["cutoff=0.5", 'weights="teno"'], "less than or equal to 0.1"),
        (["cutoff=-0.5", 'weights="teno"'], "greater than 0"),
        (['interpolation="original6"'], '"js" does not weigh the 6 nodes .* take one of linear, teno, teno_adaptive'),
        (['interpolation="modified7"', 'weights="za"'], '"za" does not weigh the 7 nodes .* take one of .*js, .*z,'),
        (['hybrid.sensor="ducros"'], 'hybrid.sensor has no effect without scheme.inviscid = "hybrid"'),
        (
            ['inviscid="hybrid"', 'hybrid.sensor="teno"', "hybrid.threshold=1.5"],
            '1.5 is never reached .* "teno", .* most 1;',
        ),
        (['inviscid="split"', "hybrid.floor=0.1"], "hybrid.floor has no effect"),
    ],
)
def test_choices_of_the_scheme_that_do_not_suit_are_refused(scheme, said):
    with pytest.raises(HiresxError, match=said):
        load("sod", overrides=[f"scheme.{given}" for given in scheme])


def test_the_cutoff_is_compiled_in_where_it_is_given():
    made = [configuration(load("sod", overrides=['scheme.weights="teno"', *more])).cutoff
            for more in ([], ["scheme.cutoff=1e-7"])]  # fmt: skip
    assert made == [1e-5, 1e-7]


def test_a_filter_has_kernels_of_its_own_where_it_reads_more_nodes_than_the_interpolation():
    made = [configuration(load("sod", overrides=[f"filter.order={order}"])).filter_reach for order in (6, 8, 10)]
    assert made == [0, 4, 5]
