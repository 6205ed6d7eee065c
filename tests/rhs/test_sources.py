"""Sources that a case gives as formulas."""

import numpy as np
import pytest
from same_everywhere import same_everywhere
from wholes import whole

from hiresx import BlowUp, Case, HiresxError, Simulation, load

# Two kernel sets for all flows. With a place, the time, the state, a parameter and a scalar:
FORMULAS = {
    "rho": "0.2 * share * cos(3 * t) * rho",
    "rho_u": "0.1 * sin(2 * x + y) * where(z < 0.5, 1, 2) * u",
    "rho_w": "-maximum(w, 0.05) ** 2 * sqrt(T)",
    "e": "exp(-t) * p * log(1 + share)",
    "scalars": {"dye": "rho * dye * t - v"},
}
# Of the time alone, until it gives nan where x >= 0.5 and t > rho/10.
OF_TIME = {"e": "t * t + 0 * sqrt(rho - 10 * t * where(x < 0.5, 0, 1))"}


def box(formulas=FORMULAS, **tables) -> Case:
    grid = {"generator": "box", "n": [14, 8, 7], "lower": [0, 0, 0], "upper": [1, 1, 1], "periodic": [*"xyz"]}
    state = {"rho": 0.8, "u": 0.3, "v": 0.1, "w": -0.2, "p": 0.7}
    given = {"grid": grid, "initial": {"state": state}, "time": {"steps": 6, "dt": 0.01}}
    given |= {} if formulas is None else {"source": formulas}
    given |= {"parameters": {"share": 0.5, "other": 3.0}, "scalar": [{"name": "dye", "initial": 0.3}]}
    return Case.from_dict(given | {"boundary": [{"faces": "all", "type": "periodic"}]} | tables)


def wavy(x, y, z):
    a, b = 2 * np.pi * x, 2 * np.pi * (y + z)
    return 1 + 0.1 * np.sin(a), 0.2 * np.cos(b), 0.1 * np.sin(a + b), 0.3 * np.sin(b), (1 + 0.1 * np.cos(a)) / 1.4


def rates(case: Case, backend: str) -> np.ndarray:
    run = Simulation(case, backend, initial=wavy)
    run.solver.time = 0.7
    run.solver.complete_state()
    run.solver.right_hand_side()
    (state,) = run.solver.states
    return state.interior(run.backend.to_host(state.r)) * run.solver.field(0, "jacobian")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_rates_are_those_of_the_formulas(backend):
    """Of every variable, against NumPy; a variable without a formula has none."""
    changed = rates(box(), backend) - rates(box(None), backend)
    run = Simulation(box(), "cpu", initial=wavy)
    block = run.blocks[0]
    rho, u, v, w, p, dye = (block.state(name) for name in ("rho", "u", "v", "w", "p", "dye"))
    t = 0.7
    wanted = [
        0.1 * np.cos(3 * t) * rho,
        0.1 * np.sin(2 * block.x + block.y) * np.where(block.z < 0.5, 1, 2) * u,
        0 * rho,
        -(np.maximum(w, 0.05) ** 2) * np.sqrt(1.4 * p / rho),
        np.exp(-t) * p * np.log(1.5),
        rho * dye * t - v,
    ]
    np.testing.assert_allclose(changed, wanted, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_stages_have_their_time():
    """A source of the time alone is integrated by SSP-RK3 to third order: a quadratic one exactly, and with the time of
    the whole step at every stage it would not be. By a CFL number too, where the step is chosen on the way, and where
    the host takes the steps one by one, and task by task."""
    still = {"state": {"rho": 10.0, "p": 0.7}}
    for time in ({"steps": 6, "dt": 0.1}, {"end": 0.6, "cfl": 0.5}):
        for integrator in ("ssp_rk3", "carpenter_kennedy_rk4"):
            case = box(OF_TIME, initial=still, time=time | {"integrator": integrator})
            for by_host in (False, True):
                run = Simulation(case, "emulated" if by_host else "cpu")
                while by_host and run.time < 0.6 - 1e-9:
                    run.solver.step(0.6 - run.time)
                if not by_host:
                    run.run(progress=False)
                assert run.time == pytest.approx(0.6)
                np.testing.assert_allclose(run.blocks[0].state("p"), 0.7 + 0.4 * 0.6**3 / 3, rtol=0, atol=1e-12)


def on_ranks(comm) -> list[np.ndarray]:
    run = Simulation(box(), "cpu", initial=wavy, comm=comm)
    run.run(progress=False)
    return whole(run.solver)


@pytest.mark.slow
def test_ranks_backends_and_restart(tmp_path):
    def make(where="cpu", out=None):
        return Simulation(box(), where, initial=wavy, out=out)

    same_everywhere(make, tmp_path / "run", 4, on_ranks=on_ranks)


@pytest.mark.slow
@pytest.mark.parametrize("time", [{"steps": 40, "dt": 0.01}, {"steps": 40, "cfl": 0.3}])
def test_a_source_that_gives_nan_is_named_with_place_and_time(time):
    """The first node and time at which the root has no value."""
    case = box(OF_TIME, time=time, monitor={"every": 1})
    with pytest.raises(BlowUp) as error:
        Simulation(case, "cpu").run(progress=False)
    said = str(error.value)
    assert 'source.e = "t * t + 0 * sqrt(' in said and "is nan in block 'box' at node (i, j, k) = (7, 0, 0)" in said
    t = float(said.split("time ")[1].split()[0])
    assert 0.08 < t < 0.12


@pytest.mark.parametrize(
    ("formulas", "said"),
    [
        ({}, "does nothing"),
        ({"e": "q * 2"}, "source.e"),
        ({"rho_u": "import os"}, "is not an expression"),
        ({"e": "rho ** u"}, "exp(exponent * log(base))"),
        ({"scalars": {"ink": "1"}}, 'no [[scalar]] "ink"'),
        ({"energy": "1"}, "energy"),
        ({"e": "1 / 0"}, 'source.e: "1 / 0" is nan everywhere'),
        ({"rho": "2 ** 2000 * share"}, "source.rho"),
    ],
)
def test_what_cannot_be_is_refused(formulas, said):
    with pytest.raises(HiresxError) as error:
        box(formulas)
    assert said in str(error.value)


def test_a_source_names_parameters_beside_functions_of_the_case():
    """Where case.py has functions that take other parameters, and where no formula takes it either."""
    sets = ["parameters.heating=0.1", 'source.e="heating * rho"']
    assert load("taylor-green", overrides=sets).parameters["heating"] == 0.1
    with pytest.raises(HiresxError, match=r"parameters\.heating"):
        load("taylor-green", overrides=sets[:1])
