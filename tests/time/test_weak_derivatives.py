"""Extended precision keeps the digits of derivatives that are small beside those of other numbers or keys."""

import numpy as np
import pytest
from ranks import run_ranks
from test_gradients import DUCT, LENGTH

from hiresx.gradients import forward, gradient, numbers
from hiresx.gradients.flow import SteadyFlow
from hiresx.gradients.parameters import CaseFamily, parameter
from hiresx.gradients.tangent import Differences, TangentSolver
from hiresx.mpi.communicator import world

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def duct(tmp_path_factory):
    path = tmp_path_factory.mktemp("duct") / "duct.toml"
    path.write_text(DUCT.replace("n = [9, 7, 1]", "n = [25, 7, 1]"))
    return path


def _of_both_methods(comm, path) -> list[float]:
    return [
        gradient(
            path, ["force_y"], ["parameters.back"], None, {}, "cpu", 2**-12, comm=comm, adjoint=way, extended=True
        ).derivatives["floor.force_y"]["parameters.back"]
        for way in (True, False)
    ]


@pytest.mark.parametrize("ranks", [1, 2])
def test_both_methods_agree(duct, ranks):
    for found in run_ranks(ranks, _of_both_methods, duct, timeout=300.0):
        assert found == pytest.approx([-LENGTH] * 2, rel=1e-12, abs=0.0)


def test_the_contributions_of_nodes_to_forces_are_not_rounded_to_fp64(duct):
    """They follow a change of the flow by 1e-17."""
    family = CaseFamily(duct, (), {})
    flow = SteadyFlow(family.case(), "cpu", world())
    differences = Differences(family, flow, parameter(flow.case, "parameters.back"), 1e-3, extended=True)
    shifted, y, found = differences._flows[0], differences.vector(), []
    for share in (1.0, 1e-17):
        differences.add(share, flow.state(), y)
        shifted.put(y)
        (of_floor,) = numbers.shares(shifted.simulation, ["floor.force_y"])
        found.append(of_floor.values["floor.force_y"])
    assert np.median(found[1] / found[0] - 1) == pytest.approx(1e-17, rel=0.02, abs=0.0)
    differences.close()


def test_the_derivative_of_the_flow_is_stored_in_extended_precision(duct):
    family = CaseFamily(duct, (), {})
    flow = SteadyFlow(family.case(), "cpu", world())
    differences = Differences(family, flow, parameter(flow.case, "parameters.back"), 1e-3, extended=True)
    x, y = flow.state(), differences.vector()
    for weight in (1.0, 1e-17, -1.0):
        differences.add(weight, x, y)
    left, whole = (flow.system.gather(vector) for vector in (differences.rounded(y), x))
    assert left[whole != 0] / whole[whole != 0] == pytest.approx(1e-17, rel=0.02)
    assert np.isfinite(left).all()
    differences.close()


def test_rough_derivatives_of_the_flow_give_the_same_step(duct):
    family = CaseFamily(duct, (), {})
    flow = SteadyFlow(family.case(), "cpu", world())
    solver, y = TangentSolver(family, flow, forward._ignore), flow.state()
    steps = []
    for _ in range(3):
        steps.append(solver._step(parameter(flow.case, "parameters.back"), y))
        flow.system.scale(1.004, y)
    assert steps == [2**-12] * 3
