"""Adjoint derivatives of steady flows: the sparse Jacobian against differences, closed forms, the forward method."""

import numpy as np
import pytest
from ranks import run_ranks
from scipy import sparse as matrices
from scipy.linalg import hilbert
from test_gradients import BUMP, DUCT, LENGTH, LIFT, PRESSURE, SPEED

from hiresx import HiresxError
from hiresx.cli import execute
from hiresx.gradients import adjoint, forward, gradient, jacobian, sparse_solver
from hiresx.gradients.adjoint import AdjointSolver
from hiresx.gradients.flow import SteadyFlow
from hiresx.gradients.jacobian import SparseLinearisation
from hiresx.gradients.parameters import CaseFamily, parameter
from hiresx.gradients.tangent import Differences
from hiresx.mpi.communicator import world

FLOOR, BUMP_FORCES = ["floor.force_y", "floor.lift"], ["bump.force_x", "bump.force_y"]
BLOCKS = BUMP | {"grid.blocks": 3, "grid.cells": [7, 8, 7]}
# An airfoil on few nodes in a small far field whose circulation follows the lift.
AIRFOIL = {
    "time.integrator": "implicit", "grid.n_airfoil": 33, "grid.n_wake": 9, "grid.n_normal": 17,
    "grid.first_spacing": 2e-2, "grid.trailing_edge_spacing": 3e-2, "grid.far_field": 10.0, "grid.wake": 10.0,
    "output.subset": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def duct(tmp_path_factory):
    """A duct of more nodes than a node reaches."""
    path = tmp_path_factory.mktemp("duct") / "duct.toml"
    path.write_text(DUCT.replace("n = [9, 7, 1]", "n = [9, 25, 1]"))
    return path


@pytest.fixture(scope="module")
def in_duct(duct):
    flow = SteadyFlow(CaseFamily(duct, (), {}).case(), "cpu", world())
    flow.converge(1e10)
    return AdjointSolver(CaseFamily(duct, (), {}), flow, forward._ignore, FLOOR)


@pytest.fixture(scope="module")
def bump():
    """The flow over a bump on three blocks."""
    flow = SteadyFlow(CaseFamily("bump", ["subsonic"], BLOCKS).case(), "cpu", world())
    flow.converge(1e10)
    return flow


def _differences(flow, sparse, x, direction, numbers, step=1e-6):
    """Differences along a vector of unknowns at x: of the residual, as unknowns, and of numbers."""
    along, found = flow.system.vector(), flow.system.vector()
    residuals, values = [], []
    for sign in (1, -1):
        sparse.fill(x + sign * step * direction, along)
        values.append(flow.measure(along, numbers))
        flow.residual(along, found)
        residuals.append(sparse.flat(found))
    slopes = {name: (values[0][name] - values[1][name]) / (2 * step) for name in numbers}
    return (residuals[0] - residuals[1]) / (2 * step), slopes


def _check_linearisation(flow, of, of_matrix: float, of_gradients: float, at_kinks: int = 0) -> None:
    """The matrix and the gradients of the numbers `of` about the state of a flow against differences along a direction:
    relative errors at most. `at_kinks`: unknowns that may be off by up to 1e-5, since the flow is at a kink there."""
    made = SparseLinearisation(flow, flow.state(), of)
    x = made.flat(flow.state())
    direction = x * np.sin(np.arange(x.size) / 9)
    if not x.reshape(made.variables, -1)[3].any():  # no velocity across the plane of the flow
        direction.reshape(made.variables, -1)[3] = np.sin(np.arange(x.size // made.variables) / 7)
    expected, slopes = _differences(flow, made, x, direction, of)
    off = np.sort(np.abs(made.jacobian @ direction - expected)) / np.linalg.norm(expected)
    assert np.linalg.norm(off[: off.size - at_kinks]) < of_matrix and np.linalg.norm(off) < max(of_matrix, 1e-5)
    for name, slope in slopes.items():
        assert made.gradients[name] @ direction == pytest.approx(slope, rel=of_gradients)


def test_the_jacobian_on_several_blocks(bump):
    """Nodes of a block depend on those of the next one."""
    assert len(bump.simulation.solver.states) == 3
    _check_linearisation(bump, BUMP_FORCES, 1e-6, 1e-7, at_kinks=4)  # of one node


def test_nodes_of_an_outflow_depend_on_its_mean(bump, monkeypatch):
    """Those at one end on a change at the other one, where the flow along the face is not uniform."""
    monkeypatch.setattr(jacobian, "REACHES", ((10,),) * 3)
    at, system = bump.state(), bump.system
    values = system.gather(at)
    x = values * (1 + 0.1 * np.sin(np.arange(values.size) / 20))
    system.scatter(x, at)
    sparse = SparseLinearisation(bump, at, BUMP_FORCES)
    x, (variables, nodes) = sparse.flat(at), sparse._order.shape
    direction, rows = np.zeros((variables, nodes)), np.arange(variables * nodes).reshape(variables, nodes)
    direction[:, -1] = 1.0  # the last node of the outflow, in the last block
    direction, along = direction.ravel(), bump.simulation.solver.states[-1].size[0]
    far = rows[:, [nodes - 1 - n * along for n in (11, 12)]].ravel()
    expected, _ = _differences(bump, sparse, x, direction, BUMP_FORCES)
    assert np.linalg.norm(expected[far]) > 1e-4
    assert np.linalg.norm((sparse.jacobian @ direction - expected)[far]) < 1e-5 * np.linalg.norm(expected[far])


@pytest.mark.slow
def test_the_jacobian_with_a_vortex_in_the_far_field():
    """The far field depends on the pressure at the wall, by one more unknown."""
    flow = SteadyFlow(CaseFamily("naca0012", ["lifting", "vortex"], AIRFOIL).case(), "cpu", world())
    flow.converge(1e3)
    sparse = SparseLinearisation(flow, flow.state(), ["airfoil.lift"])
    x = sparse.flat(flow.state())
    direction = np.zeros(sparse._order.shape)
    along = flow.simulation.solver.states[0].size[0]
    direction[4, :along] = np.sin(np.arange(along) / 9)  # at j = 0
    direction = direction.ravel()
    expected, _ = _differences(flow, sparse, x, direction, ["airfoil.lift"])
    local = sparse.jacobian[: x.size, : x.size] @ direction
    far = local == 0
    circulation = -float((sparse.jacobian[[x.size]] @ np.append(direction, 0.0))[0])
    found = (sparse.jacobian @ np.append(direction, circulation))[: x.size]
    assert np.linalg.norm(expected[far]) > 1e-3
    assert np.linalg.norm(found[far] - expected[far]) < 1e-6 * np.linalg.norm(expected[far])
    assert sparse.gradients["airfoil.lift"][-1] == 0.0


@pytest.mark.parametrize(
    ("key", "force", "lift"),
    [
        ("parameters.back", -LENGTH, -LENGTH / (0.5 * SPEED**2)),
        pytest.param("grid.upper.0", -PRESSURE, LIFT / LENGTH, marks=pytest.mark.slow),
        pytest.param("parameters.speed", 0.0, -2 * LIFT / SPEED, marks=pytest.mark.slow),
        pytest.param("force.0.pressure", LENGTH, LENGTH / (0.5 * SPEED**2), marks=pytest.mark.slow),
    ],
)
def test_of_a_uniform_flow_in_closed_form(in_duct, key, force, lift):
    found = in_duct.solve(parameter(in_duct.case, key), FLOOR, 1e-3).numbers
    assert found["floor.force_y"] == pytest.approx(force, rel=1e-8, abs=1e-8)
    assert found["floor.lift"] == pytest.approx(lift, rel=1e-8)


@pytest.mark.parametrize("key", ["time.cfl", "implicit.linear_drop"])
def test_what_has_no_influence_is_refused_as_by_the_forward_method(in_duct, key, monkeypatch):
    """Where products and sums are fused, differences of a residual that is not 0 leave round-off, which the adjoint
    solution makes a number."""
    residual = Differences.residual

    def rounded(self, x, y, into):
        residual(self, x, y, into)
        in_duct._system.axpy(1e-25, x, into)

    monkeypatch.setattr(Differences, "residual", rounded)
    with pytest.raises(HiresxError, match=rf"--by {key}: neither the steady flow nor the results depend"):
        in_duct.solve(parameter(in_duct.case, key), FLOOR, None)


def test_the_adjoint_solution_corrects_the_derivative_of_the_flow(in_duct, monkeypatch):
    """A derivative of the flow with an error of 1e-3 leaves one of 1e-8 in the force."""
    solve = AdjointSolver._solve

    def badly(self):
        solve(self)
        self._system.scale(1 - 1e-3, self._update)
        return 0.0, 0

    monkeypatch.setattr(AdjointSolver, "_solve", badly)
    monkeypatch.setattr(AdjointSolver, "drop", 1e-2)
    monkeypatch.setattr(adjoint, "PRODUCT", 1.0)
    monkeypatch.setattr("hiresx.gradients.tangent.UNSOLVED", 1e-2)
    found = in_duct.solve(parameter(in_duct.case, "parameters.back"), FLOOR, 1e-3)
    assert 1e-4 < found.residual < 1e-2
    assert found.numbers["floor.force_y"] == pytest.approx(-LENGTH, rel=1e-7)


def test_of_an_update_the_best_multiple_is_taken(in_duct, monkeypatch):
    """Updates that leave 0.7 of the residual would take 45 corrections."""
    solve, made = AdjointSolver._solve, []

    def too_little(self):
        made.append(solve(self))
        self._system.scale(0.3, self._update)
        return 0.0, 0

    monkeypatch.setattr(AdjointSolver, "_solve", too_little)
    found = in_duct.solve(parameter(in_duct.case, "parameters.back"), FLOOR, 1e-3)
    assert found.residual < 1e-7 and len(made) <= 4
    assert found.numbers["floor.force_y"] == pytest.approx(-LENGTH, rel=1e-9)


@pytest.mark.slow
def test_of_a_bump_as_by_the_forward_method():
    by = ["grid.thickness", "boundary.1.pressure"]
    one, other = (
        gradient("bump", BUMP_FORCES, by, "subsonic", BLOCKS, "cpu", step=1e-3, adjoint=way, extended=True)
        for way in (True, False)
    )
    for key in by:
        largest = max(abs(other.derivatives[name][key]) for name in BUMP_FORCES)
        for name in BUMP_FORCES:
            assert one.derivatives[name][key] == pytest.approx(other.derivatives[name][key], abs=1e-10 * largest)


# Laminar flow around a thin airfoil at incidence, and a turbulent layer, on few nodes.
LAMINAR = {
    "grid.n_airfoil": 33, "grid.n_wake": 10, "grid.n_normal": 17, "grid.first_spacing": 1e-2,
    "grid.trailing_edge_spacing": 2e-2, "gas.reynolds": 1e3, "grid.far_field": 8.0, "grid.wake": 8.0,
    "output.subset": [],
}  # fmt: skip
WALL = [{"faces": ["jmin"], "range": "wall", "type": "no-slip-wall", "temperature": 1.1}]
FAR = [
    {
        "faces": "all",
        "type": "far-field",
        "state": {"rho": 1.0, "u": "= parameters.u", "v": "= parameters.v", "p": 0.7142857142857143},
    }
]
TURBULENT = {"grid.n": [19, 13, 1], "scheme.epsilon": 1e-2, "implicit.drop": 1e9, "time.steps": 150}


@pytest.mark.slow
def test_the_gradients_of_friction_and_heat():
    """What a node of the wall adds depends on the nodes within and on those beside it."""
    flow = SteadyFlow(CaseFamily("naca0012", ["laminar"], LAMINAR | {"boundary": WALL + FAR}).case(), "cpu", world())
    flow.converge(1e2)
    of = [f"airfoil.{name}" for name in ("friction_x", "friction_y", "heat")]
    _check_linearisation(flow, of, 1e-5, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "presets", "overrides", "of", "key", "step"),
    [
        ("naca0012", ["laminar", "inclined"], LAMINAR, ["drag", "friction_x"], "parameters.mach", 1e-3),
        (
            "naca0012",
            ["laminar", "inclined"],
            LAMINAR | {"boundary": WALL + FAR},
            ["drag", "heat"],
            "gas.reynolds",
            10.0,
        ),
        ("flat-plate-sa", ["quick"], TURBULENT, ["friction_x"], "boundary.1.pressure", 1.4e-3),
    ],
    ids=["adiabatic", "isothermal", "spalart-allmaras"],
)
def test_of_friction_and_heat_as_by_the_forward_method(case, presets, overrides, of, key, step):
    one, other = (gradient(case, of, [key], presets, overrides, "cpu", step=step, adjoint=way) for way in (True, False))
    for name, found in one.derivatives.items():
        assert found[key] == pytest.approx(other.derivatives[name][key], rel=1e-9)


@pytest.mark.slow
def test_in_extended_precision_both_methods_agree_in_turbulent_flow():
    """In double precision they differ by 2.9e-9 in the derivative with respect to the pressure, and by 3e-8 in the
    other. The other needs the forward equations solved to round-off, which takes several calls of GMRES that do not
    halve the residual."""
    of, keys = "plate.friction_x", ["boundary.1.pressure", "gas.reynolds"]
    one, other = (
        gradient("flat-plate-sa", [of], keys, ["quick"], TURBULENT, "cpu", adjoint=way, extended=True).derivatives[of]
        for way in (True, False)
    )
    for key in keys:
        assert one[key] == pytest.approx(other[key], rel=1e-10, abs=0.0)


def test_extended_precision_that_is_none_is_refused(duct, monkeypatch):
    monkeypatch.setattr(np, "longdouble", np.float64)
    with pytest.raises(HiresxError, match="--extended: a long double has no more digits than a double"):
        gradient(duct, ["force_y"], ["parameters.back"], backend="cpu", extended=True)


@pytest.fixture(scope="module")
def wide_duct(duct):
    """The solver of a duct in three dimensions, without factors of the whole matrix."""
    family = CaseFamily(duct, (), {"grid.n": [9, 7, 7], "grid.upper": [2.0, 1.0, 1.0]})
    flow = SteadyFlow(family.case(), "cpu", world())
    flow.converge(1e10)
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sparse_solver, "LARGEST", 1e6)
        solver = AdjointSolver(family, flow, said.append, FLOOR)
    assert any("factors of the whole would have 3 million numbers: GMRES instead" in line for line in said), said
    return solver


@pytest.mark.slow
@pytest.mark.parametrize(("key", "force"), [("parameters.back", -LENGTH), ("grid.upper.0", -PRESSURE)])
def test_of_a_uniform_flow_in_three_dimensions(wide_duct, key, force):
    found = wide_duct.solve(parameter(wide_duct.case, key), FLOOR, 1e-3).numbers
    assert found["floor.force_y"] == pytest.approx(force, rel=1e-8)


@pytest.mark.slow
def test_the_iterative_solution_in_three_dimensions_solves_the_adjoint_equations(wide_duct):
    assert wide_duct._iterative
    made = wide_duct._sparse
    for name, right in made.gradients.items():
        left = made.jacobian.T @ wide_duct._adjoint[name] - right
        assert np.linalg.norm(left) < 1e-5 * np.linalg.norm(right)


@pytest.mark.slow
def test_the_derivative_does_not_depend_on_the_adjoint_solver(in_duct, monkeypatch):
    """Where the factors do not fit in memory."""
    monkeypatch.setattr(sparse_solver, "host_memory", lambda: 1)
    family = CaseFamily(in_duct._family.name, (), {})
    said: list[str] = []
    flow = SteadyFlow(family.case(), "cpu", world())
    flow.converge(1e10)
    solver = AdjointSolver(family, flow, said.append, FLOOR)
    assert any("would take about" in line for line in said) and solver._iterative
    found = solver.solve(parameter(flow.case, "parameters.back"), FLOOR, 1e-3).numbers
    assert found["floor.force_y"] == pytest.approx(-LENGTH, rel=1e-9)


def _equations(nodes=120, variables=3):
    """A matrix of a chain of nodes whose unknowns are ordered by variable, and one unknown more."""
    random, n = np.random.default_rng(1), nodes * variables
    matrix = matrices.lil_array((n + 1, n + 1))
    for shift in (-1, 0, 1):
        for row in range(max(0, -shift), min(nodes, nodes - shift)):
            for a in range(variables):
                for b in range(variables):
                    matrix[a * nodes + row, b * nodes + row + shift] = random.uniform(0.2, 0.5)
    matrix.setdiag(4.0)
    matrix[n, : nodes // 2] = 0.1
    return matrix.tocsr(), random.uniform(-1, 1, n + 1)


def test_gmres_with_factors_of_parts_solves_as_the_factors_of_the_whole_do():
    matrix, right = _equations()
    solver = sparse_solver.Iterative(matrix, 3)
    assert len(solver._parts) == 3
    expected = sparse_solver.Factors(matrix, 3).adjoint(right)
    assert solver.adjoint(right) == pytest.approx(expected, abs=1e-5 * np.abs(expected).max())
    assert np.linalg.norm(matrix @ solver.roughly(right) - right) < 1e-2 * np.linalg.norm(right)
    matrix, right = _equations(40)  # a single part
    single, whole = sparse_solver.Iterative(matrix, 3), sparse_solver.Factors(matrix, 3)
    assert single._precondition(right, transposed=True) == pytest.approx(whole.adjoint(right))
    assert single._precondition(right, transposed=False) == pytest.approx(whole.direct(right))


def test_factors_of_fronts_solve_both_equations():
    """Of a matrix of many fronts, with one variable that is not coupled with the others."""
    matrix, right = _equations(900)
    alone = matrices.diags_array([1.0, 3.0, 1.0], offsets=[-1, 0, 1], shape=(900, 900))
    ends = [slice(0, 2700), slice(2700, None)]
    blocks = [[matrix[a, b] for b in ends] for a in ends]
    matrix = matrices.block_array(
        [[blocks[0][0], None, blocks[0][1]], [None, alone, None], [blocks[1][0], None, blocks[1][1]]]
    ).tocsr()
    right = np.insert(right, 2700, np.sin(np.arange(900)))
    solver = sparse_solver.Factors(matrix, 4)
    for found, applied in ((solver.adjoint(right), matrix.T), (solver.direct(right), matrix)):
        assert np.linalg.norm(applied @ found - right) < 1e-11 * np.linalg.norm(right)
    assert np.linalg.norm(matrix @ solver.roughly(right) - right) < 1e-3 * np.linalg.norm(right)
    assert [list(group) for group in solver._groups] == [[0, 1, 2, 4], [3]]
    assert len(solver._eliminations) > 10 and solver._dtype == np.float32
    assert solver.numbers < 0.2 * matrix.shape[0] ** 2


def test_equations_that_fp32_does_not_solve_have_factors_in_fp64():
    matrix = matrices.csr_array(hilbert(8))
    solver = sparse_solver.Factors(matrix, 1)
    right = np.ones(8)
    assert np.linalg.norm(matrix @ solver.adjoint(right) - right) < 1e-6
    assert solver._dtype == np.float64


def test_gmres_that_does_not_converge_is_told(monkeypatch):
    matrix, right = _equations()
    for name, value in (("KRYLOV", 1), ("STARTS", 1), ("UNSOLVED", 1e-9)):
        monkeypatch.setattr(sparse_solver, name, value)
    with pytest.raises(
        HiresxError, match=r"GMRES with the factors of 3 parts leaves \S+ of the adjoint equations in 1 products"
    ):
        sparse_solver.Iterative(matrix, 3).adjoint(right)


def test_conditions_that_reach_further_are_refused(bump, monkeypatch):
    monkeypatch.setattr(jacobian, "REACHES", ((1, 2),) * 3)
    with pytest.raises(HiresxError, match=r"the residual at \d+ nodes depends on nodes more than 2 steps away"):
        SparseLinearisation(bump, bump.state(), BUMP_FORCES)


def test_a_matrix_that_misses_dependences_is_not_taken(duct, monkeypatch):
    """In three dimensions, where the reach is too small. The next one is taken, if there is one."""
    family = CaseFamily(duct, (), {"grid.n": [9, 7, 7], "grid.upper": [2.0, 1.0, 1.0]})
    flow = SteadyFlow(family.case(), "cpu", world())
    found = []
    for reaches in ((4,), (1, 4)):
        monkeypatch.setattr(jacobian, "REACHES", (*jacobian.REACHES[:2], reaches))
        found.append(SparseLinearisation(flow, flow.state(), FLOOR).jacobian)
    assert abs(found[0] - found[1]).max() == 0.0
    monkeypatch.setattr(jacobian, "REACHES", (*jacobian.REACHES[:2], (1,)))
    with pytest.raises(HiresxError, match=r"the matrix of the linearised flow deviates by 0\.\d+ from differences"):
        SparseLinearisation(flow, flow.state(), FLOOR)


def test_numbers_other_than_forces_are_refused_before_the_flow_is_computed(duct, monkeypatch):
    monkeypatch.setattr(SteadyFlow, "converge", None)
    with pytest.raises(
        HiresxError, match=r"--of conservation.mass: the adjoint method is for the forces of \[\[force\]\] only"
    ):
        gradient(
            duct, ["mass"], ["parameters.back"], overrides=["conservation.every=1", "grid.n=[9,7,1]"], backend="cpu",
            adjoint=True,
        )  # fmt: skip


LONGER = {"grid.n": [25, 7, 1]}


def _on_ranks(comm, path) -> list[float]:
    """The derivatives of the force by the pressure behind and by the length, on ranks that cut the duct."""
    found = gradient(
        path, ["force_y"], ["parameters.back", "grid.upper.0"], None, LONGER, "cpu", 1e-3, comm=comm, adjoint=True
    )
    return list(found.derivatives["floor.force_y"].values())


@pytest.mark.slow
def test_on_two_ranks(duct):
    for found in run_ranks(2, _on_ranks, duct, timeout=300.0):
        assert found == pytest.approx([-LENGTH, -PRESSURE], rel=1e-8)


def _extended_on_ranks(comm, path) -> list[float]:
    """The derivative of the force by the pressure behind, in extended precision by both methods."""
    return [
        gradient(
            path, ["force_y"], ["parameters.back"], None, LONGER, "cpu", 1e-3, comm=comm, adjoint=way, extended=True
        ).derivatives["floor.force_y"]["parameters.back"]
        for way in (True, False)
    ]


@pytest.mark.slow
def test_in_extended_precision_on_two_ranks(duct):
    """Ranks exchange long doubles, and end the exchanges of all flows in the same order."""
    for found in run_ranks(2, _extended_on_ranks, duct, timeout=300.0):
        assert found == pytest.approx([-LENGTH] * 2, rel=1e-11)


def _matrices(comm, path):
    """The matrix, and the gradient of a force, of the flow at the start."""
    flow = SteadyFlow(CaseFamily(path, (), LONGER).case(), "cpu", comm)
    made = SparseLinearisation(flow, flow.state(), ["floor.force_y"])
    return made.jacobian, made.gradients["floor.force_y"]


@pytest.mark.slow
def test_the_matrix_of_two_ranks_is_that_of_one(duct):
    jacobian, force = _matrices(world(), duct)
    (whole, first), (nothing, second) = run_ranks(2, _matrices, duct, timeout=300.0)
    assert nothing is None
    assert abs(whole - jacobian).max() < 1e-8 * abs(jacobian).max()
    for of_rank in (first, second):
        assert of_rank == pytest.approx(force, abs=1e-8 * np.abs(force).max())


def test_the_command_has_it(monkeypatch):
    asked = []

    def refuse(*given):
        asked.append(given)
        raise HiresxError("no")

    monkeypatch.setattr("hiresx.gradients.gradient", refuse)
    for more in (["--adjoint"], ["--extended"], []):
        execute(["gradient", "bump", "--of", "lift", "--by", "grid.thickness", *more])
    assert [given[-2:] for given in asked] == [(True, False), (False, True), (False, False)]
