"""Inflow of planes from a precursor's file: what another run recorded comes in, at the order of the interpolation."""

import re
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import netCDF4
import numpy as np
import pytest
from same_everywhere import same_everywhere
from wholes import whole

from hiresx import Case, HiresxError, Simulation
from hiresx.case.boundaries import PrecursorInflow as Spec
from hiresx.cli.grid_checks import check_grid
from hiresx.device import backend
from hiresx.rhs.precursor import Planes, PrecursorInflow
from hiresx.solver import Solver

UNITS = {"rho": "rho_ref", "u": "c_ref", "v": "c_ref", "w": "c_ref", "p": "rho_ref c_ref^2"}
P = 1 / 1.4
SPEED = 1.6


def frozen(x, y, z, t):
    """Waves of entropy and vorticity that the flow carries: periodic in y and z with 1, in t with 1 / SPEED."""
    along = 2 * np.pi * (x - SPEED * t)
    rho = 1 + 0.1 * np.sin(along + 2 * np.pi * y)
    return rho, np.full_like(rho, SPEED), 0 * rho, 0.1 * np.cos(along + 1.0) + 0 * rho, np.full_like(rho, P)


def write(path, y, z, times, gamma="1.4", units=UNITS, flow=frozen):
    """A file of planes of `flow` at x = 0."""
    yy, zz = (c.ravel() for c in np.meshgrid(y, z, indexing="ij"))
    values = flow(0 * yy, yy, zz, np.asarray(times)[:, None])
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("sample", None)
        file.createDimension("point", yy.size)
        for name, unit, dimensions, data in (
            *((axis, "L", ("point",), c) for axis, c in zip("xyz", (0 * yy, yy, zz), strict=True)),
            ("time", "L / c_ref", ("sample",), times),
            *((name, unit, ("sample", "point"), v) for (name, unit), v in zip(units.items(), values, strict=True)),
        ):
            variable = file.createVariable(name, "f8", dimensions)
            variable.units = unit
            variable[...] = data
        if gamma:
            file.gamma = gamma
    return path


def case(file, n=(12, 16, 1), time=None, plan="auto", **keys):
    upper = [0.6, 1, 1] if n[2] > 1 else [0.6, 1, 0]
    sides = ["jmin", "jmax", "kmin", "kmax"] if n[2] > 1 else ["jmin", "jmax"]
    repeated = ["y", "z"] if n[2] > 1 else ["y"]
    inflow = {"faces": ["imin"], "type": "precursor-inflow", "file": str(file), "period": dict.fromkeys(repeated, 1.0)}
    return Case.from_dict(
        {
            "grid": {"generator": "box", "n": list(n), "lower": [0, 0, 0], "upper": upper, "periodic": repeated},
            "time": time or {"steps": 24, "dt": 0.02},
            "plan": plan,
            "initial": {"state": {"rho": 1.0, "u": SPEED, "p": P}},
            "boundary": [
                inflow | keys,
                {"faces": ["imax"], "type": "supersonic-outflow"},
                {"faces": sides, "type": "periodic"},
            ],
        }
    )


def row(number, length=1.0):
    return np.arange(number) * length / number


def test_planes_come_at_fourth_order_in_place(tmp_path):
    """Periodic rows of a plane in y and z, and a face whose nodes lie elsewhere."""
    at = np.stack([np.zeros(400), *np.random.default_rng(1).uniform(-1, 2, (2, 400))])
    for kind, wanted in (("cubic", 4), ("linear", 2)):
        errors = []
        for n in (16, 32, 64):
            path = write(tmp_path / f"{n}.nc", row(n), row(n), [0, 1])
            spec = Spec(faces=["imin"], file=str(path), period={"y": 1.0, "z": 1.0}, interpolation=kind)
            found = Planes(case(path, time={"end": 1.0}), spec, at, "it").read(0, 2)
            errors.append(abs(found[1] - np.stack(frozen(*at, 1.0))).max())
        orders = np.log2(np.divide(errors[:-1], errors[1:]))
        assert (abs(orders - wanted) < 0.15).all(), (kind, errors)


def inflow(solver):
    (found,) = [c for c in solver.conditions if isinstance(c, PrecursorInflow)]
    return found


@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_planes_come_at_fourth_order_in_time(tmp_path, where):
    """Repeated, far behind the last one; the file has the frequency of the waves."""
    errors = []
    for number in (8, 16) if where == "emulated" else (8, 16, 32):
        path = write(tmp_path / f"{number}.nc", row(8), [0.0], row(number, 1 / SPEED))
        solver = Solver(case(path, (8, 8, 1), repeat=True), backend(where))
        found = []
        for t in np.linspace(0, 3, 41):
            solver._conditions.nodes(float(t))
            found.append(solver.backend.to_host(inflow(solver)._target)[0, 0] - frozen(0.0, row(8), 0.0, t)[0])
        errors.append(abs(np.array(found)).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 3.6).all() and (orders < 4.6).all(), errors


def test_another_run_goes_on_from_recorded_planes(tmp_path):
    """A flow with waves in it, and one that begins at a plane of it: the same behind that plane, ever more so."""
    errors = []
    for n in (16, 32):
        time = {"dt": 0.24 / n, "steps": 4 * n}
        sides = {"faces": ["jmin", "jmax"], "type": "periodic"}
        box = {"generator": "box", "n": [n + 1, n // 2, 1], "lower": [0, 0, 0], "upper": [1, 0.5, 0], "periodic": ["y"]}
        whole_flow = {
            "grid": box,
            "time": time,
            "initial": {"state": {"rho": 1.0, "u": SPEED, "p": P}},
            "boundary": [
                {"faces": ["imin"], "type": "profile-inflow", "function": "waves", "steady": False},
                {"faces": ["imax"], "type": "supersonic-outflow"},
                sides,
            ],
            "surface": [{"name": "plane", "nodes": [{"faces": ["imin"], "index": n // 2}], "every": 1}],
        }
        half = {**box, "n": [n // 2 + 1, n // 2, 1], "lower": [0.5, 0, 0]}
        given = {"type": "precursor-inflow", "file": str(tmp_path / f"{n}" / "surfaces" / "plane.nc")}
        profiles = {"waves": lambda x, y, z, t: frozen(x, 2 * y, z, t)}

        def initial(x, y, z):
            return frozen(x, 2 * y, z, 0.0)

        first = Simulation(Case.from_dict(whole_flow), "cpu", initial=initial, profiles=profiles, out=tmp_path / f"{n}")
        first.run(progress=False)
        there = {**whole_flow, "grid": half, "boundary": [given | {"faces": ["imin"]}, *whole_flow["boundary"][1:]]}
        second = Simulation(Case.from_dict({**there, "surface": []}), "cpu", initial=initial)
        second.run(progress=False)
        behind, found = (run.blocks[0].state("rho")[0] for run in (first, second))
        np.testing.assert_allclose(found[:, 0], behind[:, n // 2], rtol=0, atol=1e-12)
        errors.append(abs(found - behind[:, n // 2 :]).max())
    assert errors[1] < 2e-4 and np.log2(errors[0] / errors[1]) > 2.7, errors


def turbulent(x, y, z, t):
    """Not periodic in time, with all variables of their own."""
    a, b = 2 * np.pi * y, 2 * np.pi * z
    return (
        1 + 0.05 * np.sin(a + 9 * t), SPEED + 0.1 * np.sin(b - 7 * t), 0.1 * np.cos(a - b + 5 * t),
        0.1 * np.sin(a + b + 6 * t), P * (1 + 0.05 * np.cos(b - 8 * t)),
    )  # fmt: skip


def write_turbulent(path):
    return write(path, row(13), row(11), row(24, 0.3), flow=turbulent)


@pytest.fixture(scope="module")
def planes(tmp_path_factory):
    return write_turbulent(tmp_path_factory.mktemp("planes") / "planes.nc")


def on_ranks(comm):
    with TemporaryDirectory() as folder:
        path = comm.bcast(write_turbulent(f"{folder}/planes.nc"))
        run = Simulation(case(path, (10, 16, 8), repeat=True, planes=8), "cpu", comm=comm)
        run.run(progress=False)
        return whole(run.solver)


@pytest.mark.slow
def test_plans_ranks_backends_restart_and_few_planes_held(planes, tmp_path):
    """Planes that pass over the device while the flow goes on, and begin anew."""

    def make(where="cpu", out=None, held=8, **plan):
        return Simulation(case(planes, (10, 16, 8), repeat=True, planes=held, **plan), where, out=out)

    alone = same_everywhere(make, tmp_path / "run", 17, ("decomposed", "compact"), on_ranks=on_ranks)
    assert np.ptp(alone[0][1]) > 0.05
    all_held = make(held=None)
    all_held.run(progress=False)
    assert inflow(all_held.solver).is_prepared and not inflow(make().solver).is_prepared
    assert all(np.array_equal(a, b) for a, b in zip(alone, whole(all_held.solver), strict=True))


def test_few_planes_are_as_all(planes):
    """To the last bit, forwards, backwards and round."""
    solvers = [Solver(case(planes, (8, 8, 8), repeat=True, planes=held), backend("cpu")) for held in (None, 8, 11)]
    for t in (0.0, 0.02, 0.01, 0.05, 0.28, 0.31, 0.9, 0.15, 5.0, 5.01, 5.02, 5.03, 0.0):
        found = []
        for solver in solvers:
            solver._conditions.nodes(t)
            found.append(solver.backend.to_host(inflow(solver)._target))
        assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2]), t


def damaged(tmp_path, change, **keys):
    path = write(tmp_path / "planes.nc", row(8), [0.0], np.arange(12) * 0.1, **keys)
    with netCDF4.Dataset(path, "a") as file:
        change(file)
    return path


def nothing(file):
    pass


def a_nan(file):
    file["u"][9, 3] = np.nan


def no_pressure(file):
    file["p"][9, 3] = 0.0


def unsorted(file):
    file["time"][5] = 0.3


def renamed(file):
    file.renameVariable("rho", "density")


@pytest.mark.parametrize(
    ("change", "written", "keys", "said"),
    [
        (nothing, {}, {"time": {"end": 1.2}}, "go from time 0 to 1.1, this run needs them from 0 to 1.2"),
        (nothing, {}, {"start": -0.5}, "this run needs them from -0.5"),
        (nothing, {}, {"time": {"steps": 4, "cfl": 0.5}}, "give time.end, or repeat = true"),
        (nothing, {}, {"period": {}, "shift": [0.0, -0.1, 0.0]}, "y goes from -0.1 to 0.775, at x, y, z = 0, 0.875, 0"),
        (nothing, {}, {"period": {"y": 2.0}}, "period.y = 2 does not fit its rows"),
        (nothing, {}, {"period": {"y": 1.0, "x": 1.0}}, "period.x: the plane has no extent along x"),
        (nothing, {"gamma": "1.3"}, {}, "gamma = 1.3, this case has gas.gamma = 1.4"),
        (nothing, {"gamma": None}, {}, "does not say the gamma of its gas"),
        (nothing, {"units": UNITS | {"p": "Pa"}}, {}, 'p has the units "Pa", not "rho_ref c_ref^2"'),
        (a_nan, {}, {}, "u of plane 9 (time 0.9) is nan at x, y, z = 0, 0.375, 0"),
        (no_pressure, {}, {"repeat": True, "planes": 8}, "p of plane 9 (time 0.9) is 0 at"),
        (unsorted, {}, {}, "times do not increase: 0.4 of plane 4 is followed by 0.3"),
        (renamed, {}, {}, 'there is no variable "rho"'),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, change, written, keys, said):
    path = damaged(tmp_path, change, **written)
    with pytest.raises(HiresxError) as error:
        Simulation(case(path, (8, 8, 1), **keys), "cpu")
    found = case(path, (8, 8, 1), **keys)
    if change in (a_nan, no_pressure):
        check_grid(found)  # which does not read the planes
    else:
        with pytest.raises(HiresxError, match=re.escape(said)):
            check_grid(found)
    assert "precursor-inflow on imin of block" in str(error.value) and said in str(error.value)


def test_files_and_places_that_are_no_planes_are_refused(tmp_path):
    text = tmp_path / "planes.txt"
    text.write_text("x y z")
    oblique = write(tmp_path / "oblique.nc", row(8), [0.0], [0.0, 1.0])
    with netCDF4.Dataset(oblique, "a") as file:
        file["x"][:] = row(8)
    for path, said in (
        (tmp_path / "no.nc", "there is no file"),
        (text, "is no file of planes"),
        (oblique, "crossings"),
    ):
        with pytest.raises(HiresxError) as error:
            Simulation(case(path, (8, 8, 1)), "cpu")
        assert said in str(error.value)


def test_the_planes_held_reach_two_beyond_the_place_on_either_side():
    """The polynomial takes two planes on either side; repeated planes are held from any of them on."""
    held = SimpleNamespace(_planes=SimpleNamespace(period=1.0), _count=20, _room=8)
    assert [ahead for ahead in range(20) if PrecursorInflow._covers(held, 5, 5 + ahead)] == [2, 3, 4]
    held._planes.period = 0.0
    assert [ahead for ahead in range(8) if PrecursorInflow._covers(held, 5, 5 + ahead)] == [2, 3, 4]
    assert [ahead for ahead in range(8) if PrecursorInflow._covers(held, 0, ahead)] == [0, 1, 2, 3, 4]
    assert [ahead for ahead in range(8) if PrecursorInflow._covers(held, 12, 12 + ahead)] == [2, 3, 4, 5, 6, 7]


def test_a_file_without_a_name_is_refused():
    with pytest.raises(ValueError, match="at least 1 character"):
        Spec(faces=["imin"], file="")
