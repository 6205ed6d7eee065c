"""What the variables of a block cost that a monitor in Python reads: copies from the device, and their bytes."""

import numpy as np
import pytest

from hiresx import Case, HiresxError, Simulation
from hiresx.output.fields import derived

GAMMA = 1.4
PRECISIONS = ["fp64", "mixed", "differences", "fp32"]


def case(precision: str, n: tuple[int, int, int]) -> Case:
    faces = [f"{axis}{end}" for axis, nodes in zip("ijk", n, strict=True) if nodes > 1 for end in ("min", "max")]
    upper = [float(nodes > 1) for nodes in n]
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": n, "lower": [0, 0, 0], "upper": upper},
            "gas": {"gamma": GAMMA},
            "scheme": {"precision": precision},
            "time": {"dt": 0.002, "steps": 2},
            "monitor": {"every": 1},
            "initial": {"state": {"rho": 1.0, "u": 0.1, "p": 1 / GAMMA}},
            "scalar": [] if precision == "differences" else [{"name": "dye", "schmidt": 1.0, "initial": 0.2}],
            "boundary": [{"faces": faces, "type": "periodic"}],
        }
    )


def stirred(x, y, z):
    wave = np.sin(2 * np.pi * (x + 2 * y)) * np.cos(2 * np.pi * z)
    return 1 + 0.1 * wave, 0.2 * wave, 0.1 + 0.1 * wave, 0.3 * wave, (1 + 0.2 * wave) / GAMMA


def started(precision: str = "fp64", n=(12, 10, 8), **keys) -> Simulation:
    return Simulation(case(precision, n), "cpu", initial=stirred, **keys)


@pytest.fixture
def copies(monkeypatch):
    """Counts the copies of a simulation to the host from now on: a list that gets the bytes of each."""

    def count(simulation: Simulation) -> list[int]:
        known, found = simulation.backend.to_host, []

        def to_host(array):
            found.append(array.nbytes)
            return known(array)

        monkeypatch.setattr(simulation.backend, "to_host", to_host)
        return found

    return count


# Conserved variables from which each variable follows: rho, rho u, rho v, rho w, e, rho dye.
@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (("rho",), 1),
        (("u",), 2),
        (("dye",), 2),
        (("p",), 5),
        (("vorticity",), 4),
        (("rho", "u", "v", "w"), 4),
        (("rho", "u", "v", "w", "p", "T", "mach", "q_criterion", "dye"), 6),
    ],
)
def test_each_conserved_variable_is_copied_once(copies, names, rows):
    simulation = started()
    made, q = copies(simulation), simulation.solver.states[0].q
    simulation.blocks[0].states(*names)
    assert made == [q[0].nbytes] * rows


def test_one_name_after_the_other_copies_what_each_needs(copies):
    simulation = started()
    made = copies(simulation)
    for name in ("rho", "u", "v", "w"):
        simulation.blocks[0].state(name)
    assert len(made) == 1 + 2 + 2 + 2


@pytest.mark.parametrize("precision", PRECISIONS)
def test_values_are_those_of_the_whole_state_to_the_last_bit(precision):
    simulation = started(precision)
    simulation.step()
    solver, block, state = simulation.solver, simulation.blocks[0], simulation.solver.states[0]
    q = state.interior(solver.backend.to_host(state.q)).astype(float) + state.reference[:, None, None, None]
    if state.carry is not None:
        q += state.interior(solver.backend.to_host(state.carry))
    rho, u, v, w = q[0], q[1] / q[0], q[2] / q[0], q[3] / q[0]
    wanted = {"rho": rho, "u": u, "v": v, "w": w} | {name: q[5] / rho for name in state.equations.scalars}
    wanted["p"] = (GAMMA - 1) * (q[4] - 0.5 * rho * (u * u + v * v + w * w))
    flow = derived.FlowState(block.x, block.y, block.z, wanted, GAMMA)
    wanted |= derived.evaluate(["T", "mach", "vorticity", "schlieren"], flow)
    for name, found in solver.primitives(0).items():
        np.testing.assert_array_equal(found, wanted[name])
    for name, found in zip(wanted, block.states(*wanted), strict=True):
        np.testing.assert_array_equal(found, wanted[name])
        np.testing.assert_array_equal(block.state(name), wanted[name])


def test_a_state_set_within_a_monitor_is_read_at_once():
    found = []

    def look(simulation):
        block = simulation.blocks[0]
        before = block.state("rho")
        unchanged = before.copy()
        block.set_state(2.0, 0.0, 0.0, 0.0, 1.0)
        assert np.array_equal(before, unchanged)
        found.append((before, *block.states("rho", "p")))

    simulation = started(monitors=[look])
    simulation.run(steps=1, progress=False)
    for _, rho, p in found:
        assert (rho == 2).all()
        np.testing.assert_allclose(p, 1.0, rtol=1e-15)
    (first, *_), (second, *_) = found
    assert np.ptp(first) > 0.1 and np.abs(second - 2).max() < 1e-12


def test_arrays_belong_to_the_caller():
    """Also on a line of nodes, whose rows are contiguous on the device."""
    block = started(n=(16, 1, 1)).blocks[0]
    wanted = block.states("rho", "u", "p")
    for found in block.states("rho", "u", "p"):
        found[:] = 7.0
    for found, value in zip(block.states("rho", "u", "p"), wanted, strict=True):
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("names", [(), ("rho", "u")])
def test_state_takes_one_name(names):
    with pytest.raises(HiresxError, match=r"BlockView\.state: .* argument"):
        started().blocks[0].state(*names)
