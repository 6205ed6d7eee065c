"""Gradients of laminar flow: the adjoint method beside the forward method."""

import numpy as np
import pytest
from ranks import run_ranks
from test_gradients import DUCT

from hiresx import load
from hiresx.gradients import gradient, jacobian, sparse_solver
from hiresx.gradients.flow import SteadyFlow
from hiresx.gradients.jacobian import SparseLinearisation
from hiresx.mpi.communicator import world

pytestmark = pytest.mark.slow

# Flow along a wall that is wavy along the stream and across it.
WALL = """
[gas]
reynolds = 100.0
[grid]
generator = "wavy"
n = [15, 8, 7]
lower = [0.0, 0.0, 0.0]
upper = [2.0, 1.0, 1.0]
amplitude = [0.0, 0.05, 0.0]
waves = [0.5, 0.25, 1.0]
periodic = ["z"]
[scheme]
flux = "hllc"
epsilon = 1e-2
[time]
integrator = "implicit"
steps = 100
[implicit]
krylov = 60
[parameters]
mach = 0.5
slope = 0.1
[initial]
state = { rho = 1.0, u = "= parameters.mach", v = "= parameters.mach * parameters.slope", p = 0.7142857142857143 }
[[force]]
name = "wall"
faces = ["jmax"]
pressure = 0.7142857142857143
[[boundary]]
faces = ["kmin", "kmax"]
type = "periodic"
[[boundary]]
faces = ["jmax"]
type = "no-slip-wall"
[[boundary]]
faces = ["imax"]
type = "pressure-outflow"
pressure = 0.7142857142857143
[[boundary]]
faces = "all"
type = "far-field"
state = { rho = 1.0, u = "= parameters.mach", v = "= parameters.mach * parameters.slope", p = 0.7142857142857143 }
"""
OF, BY = ["lift", "drag", "friction_x"], ["gas.reynolds", "parameters.slope", "grid.amplitude.1"]


@pytest.fixture(scope="module")
def wall(tmp_path_factory):
    path = tmp_path_factory.mktemp("wall") / "wall.toml"
    path.write_text(WALL)
    return path


def _of_both_methods(comm, path):
    return [
        gradient(path, OF, BY, None, {}, "cpu", comm=comm, adjoint=way, extended=True).derivatives
        for way in (True, False)
    ]


@pytest.mark.parametrize("ranks", [1, 2])
def test_by_the_adjoint_method_as_by_the_forward_method(wall, ranks):
    for one, other in run_ranks(ranks, _of_both_methods, wall, timeout=500.0):
        for name, by in one.items():
            for key, found in by.items():
                assert found == pytest.approx(other[name][key], rel=1e-10, abs=0.0)


def test_without_factors_of_the_whole_matrix(wall, monkeypatch):
    monkeypatch.setattr(sparse_solver, "LARGEST", 0)
    one, other = (
        gradient(wall, OF, BY[-1:], None, {}, "cpu", adjoint=way, extended=True).derivatives for way in (True, False)
    )
    for name, by in one.items():
        assert by[BY[-1]] == pytest.approx(other[name][BY[-1]], rel=1e-10, abs=0.0)


@pytest.fixture(scope="module")
def corner(tmp_path_factory):
    """A duct with a no-slip wall, which meets the far field. The scheme has a kink at the state itself: the velocity is
    zero at the node in both conditions."""
    path = tmp_path_factory.mktemp("corner") / "duct.toml"
    text = DUCT.replace("[scheme]", "[gas]\nreynolds = 200.0\n[scheme]")
    text = text.replace('faces = ["jmin"]\n', 'faces = ["jmin"]\nextrema = true\n')
    wall = '[[boundary]]\nfaces = ["jmin"]\ntype = "no-slip-wall"\n'
    path.write_text(text.replace('[[boundary]]\nfaces = "all"', f'{wall}[[boundary]]\nfaces = "all"'))
    return path


def test_where_a_wall_meets_the_far_field(corner):
    """With one-sided differences the forward method leaves 0.99 of the linear equations. Extended precision has no
    extrema of a force."""
    of, by = ["lift", "friction_x"], ["parameters.back", "gas.reynolds", "grid.upper.0"]
    one, other = (
        gradient(corner, of, by, None, {"grid.n": [17, 9, 1]}, "cpu", adjoint=way, extended=True).derivatives
        for way in (True, False)
    )
    for name, found in one.items():
        for key, value in found.items():
            assert value == pytest.approx(other[name][key], rel=1e-10, abs=0.0)


@pytest.mark.parametrize(
    ("limits", "off"),
    [
        pytest.param({}, jacobian.ACCURATE, id="default"),
        pytest.param({"COUNTS": 1e-5, "REACHES": (8,)}, 1e-3, id="small-entries"),
    ],
)
def test_the_matrix_in_three_dimensions_where_a_wall_meets_the_far_field(corner, monkeypatch, limits, off):
    """One-sided differences are slopes of one side of the kink. The entries that the matrix leaves out by default are
    larger than their error, which is therefore seen with all entries above 1e-5. By default a product is as accurate as
    is required of those with other vectors, unless dependences are missed."""
    for name, value in limits.items():
        monkeypatch.setattr(jacobian, name, (*getattr(jacobian, name)[:2], value))
    flow = SteadyFlow(load(corner, overrides=["grid.n=[9,7,7]", "grid.upper=[2.0,1.0,1.0]"]), "cpu", world())
    flow.converge(1e6)
    system, x = flow.system, flow.state()
    made = SparseLinearisation(flow, x, ["floor.lift"])
    direction, along = np.random.default_rng(0).uniform(-1, 1, made.unknowns), system.vector()
    made.fill(direction, along)
    value, found = system.vector(), system.vector()
    flow.residual(x, value)
    flow.product(x, value)(along, found)
    expected = -made.flat(found)
    assert np.linalg.norm(made.jacobian @ direction - expected) < off * np.linalg.norm(expected)
