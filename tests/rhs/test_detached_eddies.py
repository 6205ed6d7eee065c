"""Detached-eddy models in flows: spacings of the grid, shielded layers, plans and cuts, restart, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from ranks import run_ranks

import hiresx
from hiresx import Case, HiresxError, Simulation
from hiresx.cli.grid_checks import check_grid
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.solver import Solver

RE, U, SIDE = 2e4, 0.2, 0.5
SHOWN = ["length_ratio", "resolved_share"]


def layer(model="ddes", n=(12, 25, 8), **tables) -> Case:
    """Sheared gas between a wall at y = 0 and a plane of symmetry at y = 1, with nodes close to the wall."""
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": list(n), "lower": [0, 0, 0], "upper": [SIDE, 1, SIDE],
                     "periodic": ["x", "z"], "stretch": {"y": {"cluster": "lower", "ratio": 40.0}}},
            "gas": {"reynolds": RE},
            "turbulence": {"model": "spalart_allmaras", "detached_eddies": model},
            "time": {"steps": 2, "cfl": 0.5},
            "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
            "output": {"variables": ["rho", *(SHOWN if model != "none" else [])]},
            "boundary": [
                {"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.0},
                {"faces": ["jmax"], "type": "symmetry"},
                {"faces": ["imin", "imax", "kmin", "kmax"], "type": "periodic"},
            ],
            **tables,
        }
    )  # fmt: skip


def disturbed(x, y, z):
    """rho, u, v, w, p and nu_tilde of a layer with waves."""
    wave = np.sin(2 * np.pi * x / SIDE) * np.cos(2 * np.pi * z / SIDE) * np.sin(np.pi * y)
    gas = 1 + 0.01 * wave, U * (np.tanh(6 * y) + y) + 0.02 * wave, 0.01 * wave, 0.02 * wave * y, 1 / 1.4 + 0 * y
    return gas, {"nu_tilde": 10 * np.sin(np.pi * y / 2) * (1 + 0.3 * wave)}


def cut_and_started(case, where="cpu", parts=1) -> Solver:
    cut = domain(case, parts=lambda cut: [replace(part, rank=0) for part in partition(cut, parts)])
    return started(Solver(case, backend(where), domain=cut))


def started(solver) -> Solver:
    for n, state in enumerate(solver.states):
        gas, scalars = disturbed(state.block.x, state.block.y, state.block.z)
        solver.set_state(n, *gas, scalars=scalars)
    solver.complete_state()
    solver.right_hand_side()
    return solver


def gathered(solver, name) -> np.ndarray:
    """A field of all parts, (components, nk, nj, ni)."""
    (whole,) = solver.decomposition.blocks
    found = None
    for state in solver.states:
        own = state.interior(solver.backend.to_host(state.array(name)))
        found = np.full((len(own), *whole.x.shape), np.nan) if found is None else found
        found[(slice(None), *state.part.slices)] = own
    return found


@pytest.mark.slow
@pytest.mark.parametrize("model", ["ddes", "iddes"])
def test_spacings_lengths_and_rates_by_every_plan_and_cut(model):
    """Spacings are those of the grid lines, means to both neighbours, and the change of the distance to the wall."""
    plain = cut_and_started(layer(model))
    y = plain.decomposition.blocks[0].y
    rows = np.abs(np.diff(np.concatenate([-y[:, 1:2], y, 2 - y[:, -2:-1]], axis=1), axis=1))
    largest = np.maximum(np.maximum(SIDE / 12, SIDE / 8), (rows[:, 1:] + rows[:, :-1]) / 2)
    across = np.maximum(rows[:, 1:], rows[:, :-1])
    across[:, -1] = rows[:, -2]  # the mirror image behind the plane of symmetry is farther from the wall
    spacings = gathered(plain, "grid_spacings")
    np.testing.assert_allclose(spacings[0], largest, rtol=1e-12)
    if model == "iddes":
        np.testing.assert_allclose(spacings[1], across, rtol=1e-9)
    share = gathered(plain, "resolved_share")
    assert share.max() > 0.9 and share[0, :, :8].min() < 0.1 and gathered(plain, "length_ratio").min() < 0.2
    for where, parts, plan in (("cpu", 3, "pencils"), ("cpu", 1, "decomposed"), ("emulated", 1, "fused")):
        other = cut_and_started(layer(model, plan=plan), where, parts)
        for name in ("grid_spacings", *SHOWN, "eddy_viscosity", "r"):
            wanted = gathered(plain, name)
            atol = 1e-11 * np.abs(wanted).max(axis=(1, 2, 3)).max()
            np.testing.assert_allclose(gathered(other, name), wanted, rtol=1e-11, atol=atol, err_msg=name)


def on_ranks(comm) -> float:
    """The largest difference of rates and shares between these ranks and one."""
    case, off = layer("iddes"), 0.0
    solver = Solver(case, backend("cpu"), domain=domain(case, comm, parts=lambda cut: partition(cut, comm.size)))
    started(solver)
    alone = started(Solver(case, backend("cpu")))
    for state in solver.states:
        for name in ("grid_spacings", *SHOWN, "r"):
            wanted = gathered(alone, name)
            own = state.interior(state.array(name)) - wanted[(slice(None), *state.part.slices)]
            off = max(off, float(np.max(np.abs(own) / np.abs(wanted).max(axis=(1, 2, 3), keepdims=True))))
    solver.halo.close()
    return off


@pytest.mark.slow
def test_the_same_on_two_ranks():
    assert max(run_ranks(2, on_ranks)) < 1e-11


@pytest.mark.slow
def test_it_goes_on_from_a_checkpoint(tmp_path):
    """To the last bit, with averages and what is written of the model."""
    given = {"average": {"every": 1}, "turbulence": {**layer("iddes").turbulence.model_dump(), "initial": 9.0}}
    case, half = (layer("iddes", time={"steps": steps, "cfl": 0.5}, **given) for steps in (4, 2))
    initial = {"initial": lambda x, y, z: disturbed(x, y, z)[0]}
    through = Simulation(case, "cpu", out=tmp_path / "through", **initial)
    through.run(progress=False)
    Simulation(half, "cpu", out=tmp_path / "parts", **initial).run(progress=False)
    rest = Simulation(case, "cpu", out=tmp_path / "parts", restart=tmp_path / "parts")
    rest.run(progress=False)
    for name in (*SHOWN, "q"):
        np.testing.assert_array_equal(gathered(rest.solver, name), gathered(through.solver, name))
    own, other = (next(a for a in run.attachments if a.name == "averages").fields(0) for run in (through, rest))
    np.testing.assert_array_equal(own["favre"]["u_v"], other["favre"]["u_v"])
    written = hiresx.open(tmp_path / "parts").fields(-1)["box"]
    np.testing.assert_array_equal(written["resolved_share"].values, gathered(rest.solver, "resolved_share")[0])


@pytest.mark.parametrize(("tables", "words"), [
    ({"gas": {}}, "gas.reynolds"),
    ({"boundary": [{"faces": "all", "type": "symmetry"}]}, "distance to walls"),
    ({"turbulence": {"model": "wale", "detached_eddies": "ddes"}}, "turbulence.detached_eddies has no effect"),
    ({"turbulence": {"model": "spalart_allmaras", "detached_eddies": "des"}}, 'did you mean "ddes"'),
    ({"turbulence": {"model": "spalart_allmaras", "constant": 0.6}}, "turbulence.constant"),
    ({"time": {"integrator": "implicit", "steps": 9}}, 'turbulence.detached_eddies = "ddes" is not for'),
    ({"time": {"local": True, "steps": 9}}, "turbulence.detached_eddies: with time.local"),
    ({"n": (12, 25, 1)}, "the grid has one node along a direction"),
])  # fmt: skip
def test_what_the_models_cannot_do_is_refused(tables, words):
    with pytest.raises(HiresxError, match=words):
        check_grid(layer(**tables))


def test_the_constant_is_that_of_the_publication_or_another():
    assert layer().turbulence.taken_constant == 0.65
    given = {"model": "spalart_allmaras", "detached_eddies": "iddes", "constant": 0.5}
    assert layer(turbulence=given).turbulence.taken_constant == 0.5
