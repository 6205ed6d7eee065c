"""Menter's model SST: decay in a uniform flow, plans and backends, cuts, restart, memory, bad input."""

from dataclasses import replace

import numpy as np
import pytest

from hiresx import Case, HiresxError, Simulation, load
from hiresx.cli import execute
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.solver import Solver

VARIABLES = ("rho", "u", "p", "turbulent_k", "turbulent_g")
RE = 1e6


def layer(n=33, u=0.2, **tables) -> Case:
    """Gas between a wall at y = 0, which moves with `wall`, and a plane of symmetry at y = 1."""
    wall = {"velocity": tables.pop("wall")} if "wall" in tables else {}
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": [8, n, 1], "lower": [0, 0, 0], "upper": [0.5, 1, 0], "periodic": ["x"]},
            "gas": {"reynolds": 5e4},
            "turbulence": {"model": "sst"},
            "initial": {"state": {"rho": 1.0, "u": u, "p": 1 / 1.4}},
            "time": {"steps": 8, "cfl": 0.5},
            "boundary": [
                {"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.0, **wall},
                {"faces": ["jmax"], "type": "symmetry"},
                {"faces": ["imin", "imax"], "type": "periodic"},
            ],
            **tables,
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("u", [0.0, 0.3])
def test_turbulence_decays_in_a_uniform_flow_as_the_equations_say(u):
    """omega_t = -beta omega^2 and k_t = -beta* k omega with beta = 0.0828, far from a wall that moves with the gas; the
    flow stays uniform to round-off, so that nothing is produced."""
    given = {"model": "sst", "far_field_k": 0.9, "far_field_omega": 2.0}
    case = layer(17, u, wall=[u, 0.0, 0.0], gas={"reynolds": RE}, turbulence=given, time={"end": 3.0, "cfl": 0.5})
    run = Simulation(case, "cpu")
    run.run(progress=False)
    block, time = run.blocks[0], run.time
    omega = 2.0 / (1 + 0.0828 * 2.0 * time)
    k = 0.9 * (omega / 2.0) ** (0.09 / 0.0828)
    far = block.y[0] > 0.75
    assert time == pytest.approx(3.0)
    np.testing.assert_allclose(block.state("turbulent_g")[0][far] ** -2, omega, rtol=1e-6)
    np.testing.assert_allclose(block.state("turbulent_k")[0][far], k, rtol=1e-6)
    for name, value in (("rho", 1.0), ("u", u), ("v", 0.0), ("p", 1 / 1.4)):
        np.testing.assert_allclose(block.state(name), value, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["ssp_rk3", "williamson_rk3"])
def test_a_uniform_flow_that_meets_a_plate_starts_at_the_usual_cfl(integrator):
    """At the wall the strain drives g to a fiftieth of itself within the first steps."""
    given = {"grid.n": [33, 33, 1], "grid.first_spacing": 8e-6, "grid.leading_edge_spacing": 1.6e-2,
             "initial": {"state": {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}}, "time.integrator": integrator,
             "turbulence.initial": {"turbulent_k": 0.009, "turbulent_g": 1.0}, "time.steps": 30}  # fmt: skip
    run = Simulation(load("flat-plate-sa", "sst", overrides=given, unset=["implicit", "time.cfl"]), "cpu")
    run.run(progress=False)
    assert run.case.time.cfl == 0.5
    k, g = (run.blocks[0].state(name)[0] for name in VARIABLES[3:])
    assert k.min() >= 0 and k.max() < 0.02 and g.max() < 1.01
    assert g[1:].min() > 0 and g[1, 16] < 0.1


@pytest.mark.slow
def test_a_step_by_every_plan_is_the_same():
    """Pencils, the decomposed and the fused plan, which is that of GPUs; the compact one is refused."""
    found = []
    for where, plan in (("cpu", "pencils"), ("cpu", "decomposed"), ("emulated", "fused")):
        run = Simulation(layer(plan=plan), where)
        run.run(progress=False)
        found.append(np.stack([run.blocks[0].state(name) for name in VARIABLES]))
        assert found[-1][3].max() > 0.0089 and not found[-1][3:, 0, 0].any()
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-12)
    with pytest.raises(HiresxError, match="sst"):
        Simulation(layer(plan="compact"), "cpu")


@pytest.mark.slow
def test_rates_do_not_depend_on_the_cut():
    """Of a sheared layer, in one part and in three."""
    found = []
    for parts in (1, 3):
        case = layer()
        cut = domain(case, parts=lambda cut, parts=parts: [replace(part, rank=0) for part in partition(cut, parts)])
        solver = Solver(case, backend("cpu"), domain=cut)
        for number, state in enumerate(solver.states):
            block = solver.decomposition.blocks[state.part.whole]
            x, y = (values[tuple(slice(*ends) for ends in reversed(state.part.box))] for values in (block.x, block.y))
            gas = (1 + 0.1 * np.sin(4 * np.pi * x), 0.2 * np.tanh(9 * y), 0.01 * y * np.cos(4 * np.pi * x), 0 * y)
            scalars = {"turbulent_k": 90 * y * np.exp(-4 * y), "turbulent_g": y * (1 + 0.3 * np.sin(4 * np.pi * x))}
            solver.set_state(number, *gas, 1 / 1.4 + 0 * y, scalars=scalars)
        solver.complete_state()
        solver.right_hand_side()
        whole = np.zeros((7, 1, 33, 8))
        for state in solver.states:
            box = tuple(slice(*ends) for ends in reversed(state.part.box))
            whole[(slice(None), *box)] = state.interior(state.r)
        found.append(whole)
    scale = np.abs(found[0]).max(axis=(1, 2, 3), keepdims=True)
    assert (scale[[0, 1, 4, 5, 6]] > 0).all()
    np.testing.assert_allclose(
        found[1] / np.maximum(scale, 1e-3), found[0] / np.maximum(scale, 1e-3), rtol=0, atol=1e-12
    )


@pytest.mark.slow
def test_a_restart_goes_on_with_the_same_bits(tmp_path):
    through = Simulation(layer(), "cpu", out=tmp_path / "through")
    through.run(progress=False)
    Simulation(layer(time={"steps": 3, "cfl": 0.5}), "cpu", out=tmp_path / "parts").run(progress=False)
    rest = Simulation(layer(), "cpu", out=tmp_path / "parts", restart=tmp_path / "parts")
    rest.run(progress=False)
    for name in VARIABLES:
        np.testing.assert_array_equal(rest.blocks[0].state(name), through.blocks[0].state(name))


ENTERS = [
    {"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.0, "velocity": [2.0, 0.0, 0.0]},
    {"faces": ["jmax"], "type": "far-field", "state": {"rho": 1.0, "u": 2.0, "p": 1 / 1.4}},
    {"faces": ["imin"], "type": "supersonic-inflow", "state": {"rho": 1.0, "u": 2.0, "p": 1 / 1.4}},
    {"faces": ["imax"], "type": "supersonic-outflow"},
]


@pytest.mark.slow
def test_what_enters_has_the_values_of_the_far_field():
    given = {"model": "sst", "far_field_k": 4.0, "far_field_omega": 0.25}
    grid = {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]}
    run = Simulation(layer(u=2.0, grid=grid, boundary=ENTERS, turbulence=given, time={"steps": 2, "cfl": 0.3}), "cpu")
    run.run(progress=False)
    k, g = (run.blocks[0].state(name)[0] for name in VARIABLES[3:])
    assert not k[0, 1:].any() and not g[0, 1:].any()  # the wall
    np.testing.assert_allclose(k[1:, 0], 4.0, rtol=1e-14)
    np.testing.assert_allclose(g[1:, 0], 2.0, rtol=1e-14)


@pytest.mark.parametrize(("turbulence", "tables", "words"), [
    ({}, {"gas": {}}, "gas.reynolds"),
    ({}, {"boundary": [{"faces": "all", "type": "symmetry"}]}, "distance to walls"),
    ({"constant": 1.0}, {}, "turbulence.constant"),
    ({"far_field": 4.0}, {}, "turbulence.far_field has no effect"),
    ({"ft2": True}, {}, "turbulence.ft2 has no effect"),
    ({"detached_eddies": "ddes"}, {}, "turbulence.detached_eddies has no effect"),
    ({"far_field_k": -1.0}, {}, "far_field_k"),
    ({"far_field_omega": 0.0}, {}, "far_field_omega"),
    ({"initial": 3.0}, {}, "turbulence.initial.*turbulent_k and turbulent_g"),
    ({"initial": {"turbulent_k": -1.0}}, {}, "turbulence.initial.turbulent_k = -1"),
    ({"initial": {"turbulent_g": 0.0}}, {}, "turbulence.initial.turbulent_g = 0"),
    ({"initial": {"omega": 1.0}}, {}, 'no variable "omega"'),
    ({}, {"scheme": {"inviscid": "split"}}, "scheme.inviscid"),
    ({}, {"scheme": {"precision": "differences"}}, "scheme.precision"),
    ({"model": "spalart_allmaras", "far_field_k": 1.0}, {}, "turbulence.far_field_k has no effect"),
    ({"model": "spalart_allmaras", "initial": {"nu_tilde": 1.0}}, {}, "turbulence.initial"),
])  # fmt: skip
def test_what_the_model_cannot_do_is_refused(turbulence, tables, words):
    with pytest.raises(HiresxError, match=words):
        layer(**{"turbulence": {"model": "sst"} | turbulence} | tables)


def test_values_at_the_start_are_taken():
    given = {"turbulent_k": 0.0, "turbulent_g": 2.0}
    assert layer(turbulence={"model": "sst", "initial": given}).turbulence.initial == given


def test_check_says_where_nothing_makes_eddies(capsys):
    assert execute(["check", "flat-plate-sa", "--preset", "sst", "--set", "turbulence.far_field_k=0"]) == 0
    assert "turbulence.far_field_k = 0: what enters carries no eddy viscosity" in capsys.readouterr().out
