"""What of a case is compiled into its kernels."""

import pytest

from hiresx import load
from hiresx.solver.case_configuration import configuration


@pytest.mark.parametrize(("reynolds", "same"), [("inf", True), ("100.0", False)])
def test_the_prandtl_number_matters_where_heat_is_conducted(reynolds, same):
    made = [configuration(load("free-stream", overrides=[f"gas.reynolds={reynolds}", *more]))
            for more in ([], ["gas.prandtl=0.9"])]  # fmt: skip
    assert (made[0] == made[1]) is same
