"""The number of sweeps that the preconditioner takes if the case does not give one."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from test_system import OnArrays
from turbulent_channel import KAPPA, RE_TAU, channel_of, started_from

from hiresx import Case, Simulation, load
from hiresx.case.implicit_table import MOST_SWEEPS
from hiresx.solver import sweep_count
from hiresx.solver.sweep_count import GROWTH, count_sweeps
from hiresx.time.ode_system import Vector

CASE = ["grid.n=[23,13,1]", "grid.first_spacing=4e-5", "grid.leading_edge_spacing=0.03", "time.steps=6"]


class Richardson:
    """Sweeps by which the error of each number is multiplied by its `factor`, `turns` of them one after the other."""

    def __init__(self, *factors: list[float]):
        self._factors = np.array(factors)

    def __call__(self, right: Vector, into: Vector, count: int) -> None:
        into.arrays[0][:] = 0.0
        for n in range(count):
            factor = self._factors[n % len(self._factors)]
            into.arrays[0][:] = factor * into.arrays[0] + (1 - factor) * right.arrays[0]

    def rounds(self, right: Vector, into: Vector, most: int) -> Iterator[int]:
        for count in range(len(self._factors), most + 1, len(self._factors)):
            self(right, into, count)
            yield count


def counted(sweeps: Richardson, right: list[float]) -> tuple[int, np.ndarray]:
    system = OnArrays()
    into, work = system.of(np.full(len(right), 7.0)), system.of(np.full(len(right), 9.0))
    sweeps_: Any = sweeps
    return count_sweeps(sweeps_, system, system.of(right), into, work), into.arrays[0]


@pytest.mark.parametrize(
    ("factors", "right"),
    [
        ([[0.9, -0.5, 0.0]], [1.0, 1.0, 1.0]),
        ([[0.9, 1.2, 0.0]], [1.0, 1.0, 1.0]),  # so slow a growth does no harm within ten sweeps
        ([[3.0, 0.1, 0.0], [0.2, 0.5, 0.0]], [1.0, 1.0, 1.0]),  # lines of one direction make up for the other
        ([[0.5, 0.5, 0.5]], [0.0, 0.0, 0.0]),
    ],
)
def test_sweeps_that_converge_are_all_taken(factors, right):
    count, into = counted(Richardson(*factors), right)
    assert count == MOST_SWEEPS
    wanted = OnArrays().vector()
    Richardson(*factors)(OnArrays().of(right), wanted, MOST_SWEEPS)
    np.testing.assert_array_equal(into, wanted.arrays[0])


@pytest.mark.parametrize("share", [1.0, 1e-3])
@pytest.mark.parametrize("factor", [-4.6, -2.5, 30.0])
def test_sweeps_end_before_their_corrections_have_grown(factor, share):
    """Of a part that the sweeps amplify by `factor`, alone or hidden at first."""
    factors, right = np.array([0.5, 0.0, factor]), np.array([1.0, 0.0, share / (1 - factor)])
    sizes = [np.linalg.norm(factors**n * (1 - factors) * right) for n in range(MOST_SWEEPS)]
    within = [size <= GROWTH * min(sizes[: n + 1]) for n, size in enumerate(sizes)]
    count, into = counted(Richardson(list(factors)), list(right))
    assert 1 <= count == within.index(False) < MOST_SWEEPS
    np.testing.assert_allclose(into, (1 - factors**count) * right, rtol=1e-13)


@pytest.mark.filterwarnings("ignore:overflow")
def test_an_overflow_ends_the_sweeps():
    count, into = counted(Richardson([1e100, 0.5, 0.5]), [1.0, 1.0, 1.0])
    assert count == 1 and np.isfinite(into).all()


def run(sets: list[str], **given: Any) -> list[dict[str, Any]]:
    """The reports of all steps of a turbulent plate."""
    simulation = Simulation(load("flat-plate-sa", overrides=[*CASE, *sets]), "cpu", **given)
    found = []
    while simulation.step_count < (simulation.case.time.steps or 0):
        simulation.run(steps=1, progress=False)
        found.append(dict(simulation.solver.integrator.report))
    return found


def test_the_number_belongs_to_each_newton_step(monkeypatch, tmp_path):
    """A limit that ends the sweeps early shows that steps, also after a restart, take the number that was found."""
    assert {report["sweeps"] for report in run([])} == {MOST_SWEEPS}
    assert {report["sweeps"] for report in run(["implicit.sweeps=3"])} == {3}
    monkeypatch.setattr(sweep_count, "GROWTH", 0.2)
    through = run([])
    assert len({report["sweeps"] for report in through}) > 1
    run(["time.steps=3"], out=tmp_path / "run")
    assert run([], out=tmp_path / "run", restart=tmp_path / "run") == through[3:]


@pytest.mark.parametrize(("where", "parts"), [("cpu", 2), pytest.param("emulated", 1, marks=pytest.mark.slow)])
def test_the_number_does_not_depend_on_the_cut_or_the_backend(where, parts, monkeypatch):
    monkeypatch.setattr(sweep_count, "GROWTH", 0.2)
    found = []
    for one in (("cpu", 1), (where, parts)):
        given = channel_of("spalart_allmaras", 33, drop=1e5).model_dump(exclude_unset=True)
        given["implicit"]["lines"] = "none"
        del given["implicit"]["sweeps"]
        solver = started_from(
            Case.from_dict(given), lambda x: {"nu_tilde": KAPPA * RE_TAU * x * (1 - 0.5 * x)}, *one
        )  # fmt: skip
        reports = []
        for _ in range(2):
            solver.step()
            reports.append(solver.integrator.report)
        found.append(reports)
    assert min(report["sweeps"] for report in found[0]) < MOST_SWEEPS
    for own, other in zip(*found, strict=True):
        assert own["sweeps"] == other["sweeps"]
        assert math.isclose(own["residual"], other["residual"], rel_tol=1e-6)
