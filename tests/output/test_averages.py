"""Averages in time and the budget of the kinetic energy."""

from pathlib import Path

import numpy as np
import pytest
from vortices import taylor_green
from watched_runs import P, pulse, ran, tables, watched

from hiresx import Case, Simulation
from hiresx.output.fields import derived

# --- averages


@pytest.mark.parametrize(
    ("backend", "precision"),
    [("cpu", "fp64"), ("emulated", "fp64"), pytest.param("cpu", "fp32", marks=pytest.mark.slow)],
)
def test_averages_are_those_of_the_samples(backend, precision):
    case = Case.from_dict(
        tables(
            (16, 12, 1), amplitude=0.03, scheme={"precision": precision}, average={"every": 2, "start": 0.1},
            time={"steps": 30, "cfl": 0.5},
        )
    )  # fmt: skip
    simulation = Simulation(case, backend=backend, initial=pulse)
    average = next(a for a in simulation.attachments if a.name == "averages")
    average.begin(simulation.solver, False)
    weights, samples, since = [], [], 0.0
    for _ in range(30):
        simulation.step()
        average.after_step(simulation.solver)
        if simulation.step_count % 2 == 0:
            if simulation.time > 0.1:
                weights.append(simulation.time - max(since, 0.1))
                samples.append([simulation.blocks[0].state(name) for name in ("rho", "u", "v", "w", "p", "T")])
            since = simulation.time
    found, samples, w = average.fields(0), np.array(samples), np.array(weights)[:, None, None, None]
    assert len(weights) > 8 and w.sum() == pytest.approx(simulation.time - 0.1)
    names, tolerance = ("rho", "u", "v", "w", "p", "T"), 1e-13 if precision == "fp64" else 3e-7
    for kind, mass in (("reynolds", np.ones_like(samples[:, 0])), ("favre", samples[:, 0])):
        weight = w * mass / (w * mass).sum(axis=0)
        mean = {name: (weight * samples[:, n]).sum(axis=0) for n, name in enumerate(names)}
        rest = {name: samples[:, n] - mean[name] for n, name in enumerate(names)}
        for name, values in found[kind].items():
            a, _, b = name.partition("_")
            expected = (weight * rest[a] * rest[b]).sum(axis=0) if b else mean[a]
            if kind == "favre" and name in ("rho", "p"):
                expected = (w * samples[:, names.index(name)]).sum(axis=0) / w.sum()
            np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance, err_msg=f"{kind} {name}")


def test_small_fluctuations_are_not_lost_in_the_mean():
    case = Case.from_dict(tables((12, 9, 1), average={"every": 1, "favre": False}))
    simulation = Simulation(case, backend="cpu")
    average = next(a for a in simulation.attachments if a.name == "averages")
    average.begin(simulation.solver, False)
    for n in range(1, 101):
        simulation.solver.set_state(0, 1.0, 0.0, 0.0, 0.0, P + 1e-9 * (-1) ** n)
        simulation.solver.steps, simulation.solver.time = n, 0.1 * n
        average.after_step(simulation.solver)
    # a square wave of amplitude 1e-9: its mean square is 1e-18, far below the rounding of p^2
    np.testing.assert_allclose(average.fields(0)["reynolds"]["p_p"], 1e-18, rtol=1e-5)


def test_the_file_of_the_averages(tmp_path):
    from netCDF4 import Dataset

    case = Case.from_dict(tables(average={"every": 2}, output={"every_steps": 20}))
    simulation, _ = ran(case, initial=pulse, out=tmp_path)
    average = next(a for a in simulation.attachments if a.name == "averages")
    with Dataset(tmp_path / "averages.nc") as file:
        assert file["averaged_over"][...] == pytest.approx(simulation.time) and int(file["step"][...]) == 40
        group = file["box"]
        np.testing.assert_array_equal(group["u"][...], average.fields(0)["reynolds"]["u"])
        np.testing.assert_array_equal(group["favre/u_v"][...], average.fields(0)["favre"]["u_v"])
        scales = {"rho": "rho_ref", "p": "rho_ref c_ref^2", "T": "T_ref"} | dict.fromkeys("uvw", "c_ref")
        assert (file["time"].units, file["averaged_over"].units, group["x"].units) == ("L / c_ref", "L / c_ref", "L")
        for part in (group, group["reynolds"], group["favre"]):
            for name, variable in part.variables.items():
                first, _, second = name.partition("_")
                if name not in ("x", "y", "z"):
                    expected = f"({scales[first]}) ({scales[second]})" if second else scales[first]
                    assert variable.units == expected, name
        # The fields beside the groups are the first kind's.
        assert (group["u"].long_name, group["favre/u"].long_name) == (
            "mean velocity along x (reynolds)", "mean velocity along x (favre)",
        )  # fmt: skip
        assert "mean" not in group["x"].long_name
        assert len(group["reynolds"].variables) == 15 and len(group["favre"].variables) == 15
    assert derived.VARIABLES.keys() > set(group_names(tmp_path / "averages.nc"))


def group_names(path: Path) -> list[str]:
    from hiresx.output.fields import field_file as fields

    return fields.describe(path)["variables"]


# --- kinetic energy


def test_the_budget_of_the_taylor_green_vortex_closes():
    errors = []
    for n in (16, 24):
        overrides = [f"grid.n=[{n}, {n}, {n}]", "gas.reynolds=250.0", "time.end=2.0", "kinetic_energy.every=4"]
        case = taylor_green(*overrides, preset="mach-0.4")
        found = ran(case)[1]["kinetic_energy"]
        # mu |vorticity|^2: 3/4 M^2 / Re_c at the start, and the energy M^2/8
        assert found["kinetic_energy"][0] == pytest.approx(0.02, rel=1e-3)
        assert found["dissipation"][0] == pytest.approx(0.75 * 0.16 / 250, rel=1e-3)
        parts = found["dissipation_solenoidal"] + found["dissipation_dilatational"]
        np.testing.assert_allclose(parts, found["dissipation"], rtol=2e-4)
        supply = found["pressure_dilatation"] - found["dissipation"]
        rate = found["rate"][1:]
        left = 0.5 * (supply[1:] + supply[:-1]) - rate
        np.testing.assert_allclose(found["dissipation_numerical"][1:], left, rtol=0, atol=1e-15)
        assert np.isnan(found["dissipation_numerical"][0])
        errors.append(np.abs(left).max() / np.abs(rate).max())
    assert errors[1] < 0.4 * errors[0] and errors[1] < 0.1, errors


def compressed_vortex(x, y, z, mach, p=P):
    """The Taylor-Green vortex at constant density, compressed along x at a tenth of its speed, against a pressure that
    goes with it."""
    u, v = np.sin(x) * np.cos(y) * np.cos(z) + 0.1 * np.sin(x), -np.cos(x) * np.sin(y) * np.cos(z)
    return 1.0, mach * u, mach * v, 0.0, p + 0.1 * np.cos(x)


@pytest.mark.parametrize("wavy", [False, True], ids=["uniform", "wavy"])
@pytest.mark.parametrize("backend", ["cpu", "emulated"])
def test_integrals_are_those_of_the_exact_flow(backend, wavy):
    """Order 6 by the gradients of 16^3 and 32^3 nodes, and on a curved grid by its cell volumes."""
    mach = 0.4
    viscous = 1 / 250  # mu/Re_c at T = 1; over the period the mean of mu is that of a constant law
    dilatational = 0.01 / 2
    exact = {
        "kinetic_energy": mach**2 * (1 / 8 + 0.01 / 4),
        "enstrophy": mach**2 * 3 / 8,
        "dissipation": viscous * mach**2 * (3 / 4 + 4 / 3 * dilatational),
        "dissipation_solenoidal": viscous * mach**2 * 3 / 4,
        "dissipation_dilatational": viscous * mach**2 * 4 / 3 * dilatational,
        "pressure_dilatation": 0.1 * 0.1 * mach / 2,
        "dilatation": mach * np.sqrt(dilatational),
    }
    errors = []
    for n in (16, 32):
        overrides = [f"grid.n=[{n}, {n}, {n}]", "gas.reynolds=250.0", "kinetic_energy.every=4"]
        overrides += ['grid.generator="wavy"', "grid.amplitude=[0.1, 0.1, 0.1]"] if wavy else []
        simulation, found = watched(taylor_green(*overrides, preset="mach-0.4"), backend=backend)
        b = simulation.blocks[0]
        b.set_state(*compressed_vortex(b.x, b.y, b.z, mach))
        simulation.solver.complete_state()
        values = found["kinetic_energy"].measure(simulation.solver)
        errors.append({name: abs(values[name] / wanted - 1) for name, wanted in exact.items()})
    for name, fine in errors[1].items():
        assert fine < 1e-13 or np.log2(errors[0][name] / fine) > 5.5, (name, errors)
        assert fine < 2e-6, (name, errors)


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize("reynolds", [None, 20.0], ids=["inviscid", "viscous"])
def test_gradients_of_the_energy_reach_up_to_walls(backend, reynolds):
    wall = {"type": "no-slip-wall", "temperature": 1.0} if reynolds else {"type": "supersonic-outflow"}
    boundary = [{"faces": ["imin", "imax"], "type": "periodic"}, {"faces": ["jmin", "jmax"], **wall}]
    changes = {"boundary": boundary, "kinetic_energy": {}, "gas": {"reynolds": reynolds} if reynolds else {}}
    case = Case.from_dict(tables((12, 17, 1), (1.0, 1.0, 0.0), periodic=("x",), **changes))
    simulation, found = watched(case, backend=backend)
    b = simulation.blocks[0]
    simulation.solver.set_state(0, 1.0, b.y * (1 - b.y), 0.0, 0.0, P)  # vorticity 2 y - 1
    simulation.solver.complete_state()
    before = [simulation.solver.backend.to_host(s.interior(s.q)).copy() for s in simulation.solver.states]
    values = found["kinetic_energy"].measure(simulation.solver)
    assert values["kinetic_energy"] == pytest.approx(0.5 / 30, rel=1e-9)
    if reynolds:
        assert values["enstrophy"] == pytest.approx(0.5 / 3, rel=1e-9)
        assert values["dissipation"] == pytest.approx(1 / 3 / 20, rel=1e-9)
        assert values["dissipation_solenoidal"] == pytest.approx(values["dissipation"], rel=1e-9)
    else:
        assert values["dissipation"] == 0
    after = [simulation.solver.backend.to_host(s.interior(s.q)) for s in simulation.solver.states]
    np.testing.assert_array_equal(after, before)
