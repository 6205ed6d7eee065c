"""`distribution` and `extrema` of a [[force]]: closed forms, whatever the cut and the backend, and after a restart."""

import numpy as np
import pytest
from netCDF4 import Dataset
from ranks import run_ranks
from test_monitors_ranks import flow, plane, scattered, solid
from watched_runs import SLIP, P, tables, watched

from hiresx import Case, HiresxError, Simulation, load
from hiresx import open as open_run
from hiresx.decomposition import decompose
from hiresx.gradients import numbers
from hiresx.grid import build
from hiresx.output.saved import checkpoint
from hiresx.output.watch import monitors, wall_distribution, wall_file
from hiresx.output.watch.monitors.force import ForceMonitor
from hiresx.output.watch.watched_surface import WatchedSurface
from hiresx.post.wall import wall
from hiresx.rhs.modelled_wall import ModelledWall

REYNOLDS, SHEAR, WARMING = 50.0, 0.2, 0.1
VALUES = ("p", "friction_x", "friction_y", "friction_z", "heat", "y_plus")
FORCE = {"name": "walls", "every": 2, "extrema": True, "distribution": {"every": 2}}


def warm_shear(x, y, z):
    """A flow along x and z, and off the wall, that grows with y from 0 at the wall, as the temperature does from 1."""
    p = P * (1 + 0.01 * x)
    return 1.4 * p / (1 + WARMING * y), 0.6 * SHEAR * y, 0.3 * SHEAR * y, 0.8 * SHEAR * y, p


def box(**changes) -> Case:
    return Case.from_dict({
        "grid": {"generator": "box", "n": [9, 8, 7], "lower": [0, 0, 0], "upper": [2, 1, 0.6]},
        "gas": {"reynolds": REYNOLDS, "prandtl": 0.7, "viscosity": {"law": "constant"}},
        "time": {"steps": 1, "dt": 1e-9},
        "initial": {"state": {"rho": 1.0, "p": P}}, "force": [{**FORCE, "faces": ["jmin"]}],
        "boundary": [{"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.0}, SLIP | {"faces": ["jmax"]},
                     {"faces": "all", "type": "characteristic-outflow", "pressure": P}],
    } | changes)  # fmt: skip


def test_a_linear_profile_has_its_friction_heat_and_wall_units(tmp_path):
    run = Simulation(box(), "cpu", out=tmp_path, initial=warm_shear)
    run.run(progress=False)
    found = open_run(tmp_path).wall("walls").isel(time=0)
    stress, rho = SHEAR / REYNOLDS, 1.4 * found["p"]
    np.testing.assert_allclose(found["p"], P * (1 + 0.01 * found["x"]), rtol=1e-13)
    for axis, part in (("x", 0.6), ("y", 0.0), ("z", 0.8)):
        np.testing.assert_allclose(found[f"friction_{axis}"], part * stress, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(found["heat"], WARMING / (REYNOLDS * 0.7 * 0.4), rtol=1e-11)
    np.testing.assert_allclose(found["y_plus"], np.sqrt(stress * rho) / 7 * REYNOLDS, rtol=1e-11)
    np.testing.assert_allclose(
        [found[f"normal_{axis}"] for axis in "xyz"], np.outer([0, -1, 0], np.ones(63)), atol=1e-14
    )
    assert float(found["area"].sum()) == pytest.approx(1.2) and found["area"].attrs["units"] == "L^2"
    assert found["block"].values.tolist() == ["box"] * 63 and found["i"].values[:10].tolist() == [*range(9), 0]
    history = open_run(tmp_path).history("walls").isel(time=0)
    # friction and heat are equal everywhere, and y+ is largest where the density is
    assert float(history["friction_max"]) == pytest.approx(stress, rel=1e-11)
    assert float(history["heat_min"]) == pytest.approx(float(history["heat_max"]), rel=1e-11)
    assert [int(history[f"friction_max_{part}"]) for part in ("block", "i", "j", "k")] == [0, 0, 0, 0]
    assert float(history["y_plus_max"]) == float(found["y_plus"].max())
    assert [float(history[f"y_plus_max_{part}"]) for part in ("x", "y", "z", "i", "k")] == [2.0, 0.0, 0.0, 8.0, 0.0]


@pytest.mark.parametrize("every", [2, 3], ids=["at the same steps", "at others"])
def test_a_step_is_measured_once(tmp_path, monkeypatch, every):
    """By the force and its distribution together; the values are those of the step."""
    steps = []
    last = WatchedSurface.last
    monkeypatch.setattr(WatchedSurface, "last", lambda self: (steps.append(run.step_count), last(self))[1])
    force = {**FORCE, "faces": ["jmin"], "distribution": {"every": every}}
    run = Simulation(box(force=[force], time={"steps": 6, "dt": 1e-3}), "cpu", out=tmp_path, initial=warm_shear)
    run.run(progress=False)
    assert steps == sorted({*range(0, 7, 2), *range(0, 7, every)})
    found, history = (getattr(open_run(tmp_path), kind)("walls") for kind in ("wall", "history"))
    both = [step for step in found["step"].values if step in history["step"].values]
    assert len(both) == (4 if every == 2 else 2)
    for step in both:
        largest = found["y_plus"].values[found["step"].values == step].max()
        assert largest == history["y_plus_max"].values[history["step"].values == step]
    assert len(set(history["y_plus_max"].values)) == 4


def test_cooled_walls_have_their_largest_loss_of_heat_as_the_least_value():
    """The temperature falls away from the wall, most at its middle."""

    def cooling(x, y, z):
        return 1 / (1 - WARMING * y * x * (2 - x)), 0 * x, 0 * x, 0 * x, P + 0 * x

    run, found = watched(box(), initial=cooling)
    values = found["walls"].measure(run.solver)
    assert values["heat_min"] == pytest.approx(-WARMING / (REYNOLDS * 0.7 * 0.4), rel=1e-6)
    assert (values["heat_min_x"], values["heat_min_i"]) == (1.0, 4.0) and abs(values["heat_max"]) < 1e-12


def test_slip_walls_beside_others_have_no_extremes():
    made = box(force=[{**FORCE, "faces": ["jmin", "jmax"]}])
    run, found = watched(made, initial=warm_shear)
    assert found["walls"].measure(run.solver)["heat_min"] == pytest.approx(WARMING / (REYNOLDS * 0.7 * 0.4), rel=1e-11)


# --- whatever computes them


def simulation(name: str, out=None, count: int = 1, ranks: int = 1, seed: int = 0, **arguments) -> Simulation:
    case, grid = {"plane": plane, "solid": solid}[name]()
    forces = ({**FORCE, "every": 4}, {**FORCE, "name": "low", "faces": ["jmin"], "distribution": {"precision": "fp32"}})
    none = dict.fromkeys(("extrema", "conservation", "kinetic_energy", "average"))
    case = Case.model_validate(case.model_dump() | none | {"force": forces, "probe": ()})
    parts = scattered(count, ranks, seed) if count > 1 else None
    backend = arguments.pop("backend", "cpu")
    return Simulation(case, backend, initial=flow, grid=grid, parts=parts, out=out, **arguments)


def ran(name, out, steps=4, **arguments):
    made = simulation(name, out, **arguments)
    made.run(steps=steps, progress=False)
    return out


@pytest.fixture(scope="module")
def of_solid(tmp_path_factory):
    return ran("solid", tmp_path_factory.mktemp("solid"))


@pytest.fixture(scope="module", params=["plane", "solid"])
def alone(request, tmp_path_factory):
    solid = request.param == "solid"
    return request.param, request.getfixturevalue("of_solid") if solid else ran(
        "plane", tmp_path_factory.mktemp("plane")
    )


def samples(out) -> dict[str, np.ndarray]:
    return {name: wall_file.read(path).records for name, path in wall_file.walls(out).items()}


def same(found, expected, tolerance) -> None:
    assert wall_file.walls(found).keys() == {"walls", "low"}
    for name, records in samples(expected).items():
        other = samples(found)[name]
        assert other["step"].tolist() == records["step"].tolist() and len(records) > (name == "walls")
        for column in VALUES:
            least = (1.3e-7 if records["p"].dtype.itemsize == 4 else tolerance) * np.abs(records[column]).max()
            np.testing.assert_allclose(other[column], records[column], rtol=0, atol=least, err_msg=f"{name} {column}")
        one, two = (wall_file.read(wall_file.walls(out)[name]) for out in (found, expected))
        assert one.where.tolist() == two.where.tolist()
        for column, values in two.fixed.items():
            np.testing.assert_allclose(one.fixed[column], values, rtol=0, atol=1e-12, err_msg=column)
        one, two = (open_run(out).history(name) for out in (found, expected))
        for column in two:
            exact = column.endswith(("_x", "_y", "_z", "_i", "_j", "_k", "_block")) and "_m" in column
            least = 0 if exact else tolerance * max(1e-3, float(np.abs(two[column]).max()))
            np.testing.assert_allclose(one[column], two[column], rtol=0, atol=least, err_msg=f"{name} {column}")


def test_cuts_are_not_seen(alone, tmp_path):
    same(ran(alone[0], tmp_path, count=9, seed=3), alone[1], 1e-11)


def on_ranks(comm, out, name, count, seed) -> None:
    ran(name, out, comm=comm, count=count, ranks=comm.size, seed=seed)


@pytest.mark.slow
def test_several_ranks_write_what_one_does(alone, tmp_path):
    run_ranks(3, on_ranks, tmp_path, alone[0], 5, 2)
    same(tmp_path, alone[1], 1e-11)


def test_the_emulated_gpu_gives_the_same(alone, tmp_path):
    same(ran(alone[0], tmp_path, backend="emulated"), alone[1], 1e-10)


def test_the_newest_checkpoint_has_what_the_sample_of_its_step_has(of_solid):
    """The same bits, on curved walls."""
    out = of_solid
    shown = wall(out, "walls", velocity=[0.3, 0.1, 0.0])
    sampled = wall(out, "walls", velocity=[0.3, 0.1, 0.0], time=float(shown.summary["time"]))
    assert sampled.summary["step"] == shown.summary["step"] == 4 and {"cp", "cf"} <= {*shown.data}
    assert sampled.data.identical(shown.data)
    table = open_run(out).history("walls").isel(time=-1)
    stored = samples(out)["walls"][list(samples(out)["walls"]["step"]).index(int(table["step"]))]
    for name, end in (("y_plus", "max"), ("heat", "max"), ("heat", "min")):
        assert float(table[f"{name}_{end}"]) == getattr(np, end)(stored[name])
    friction = np.linalg.norm([stored[f"friction_{axis}"] for axis in "xyz"], axis=0)
    assert float(table["friction_max"]) == friction.max()
    nodes = wall_file.read(wall_file.walls(out)["walls"])
    at = [[int(table[f"friction_max_{part}"])] for part in ("block", "i", "j", "k")]
    assert friction[(nodes.where == at).all(axis=0)] == pytest.approx(friction.max(), rel=2e-9)


def test_a_flat_plate_of_local_steps(tmp_path):
    """Samples have no times there. The last one is the flow of the checkpoint."""
    case = load("flat-plate", overrides=["time.steps=4", "grid.n=[67,46,1]", 'force=[{name="plate", faces=["jmin"], '
                "extrema=true, distribution={every=2}}]"])  # fmt: skip
    Simulation(case, "cpu", out=tmp_path).run(progress=False)
    found, shown = open_run(tmp_path).wall("plate"), wall(tmp_path).data
    assert found["p"].dims == ("sample", "place") and found["step"].values.tolist() == [0, 2, 4]
    for name in ("p", "heat", "y_plus"):
        assert (found[name][-1].values == shown[name].values).all()
    assert (found["friction_x"][-1].values == shown["friction"].values).all()  # the plate is along x
    np.testing.assert_allclose(shown["friction"][1:-1], found["friction_x"].values[-1, 1:-1], rtol=1e-13)
    mean = wall(tmp_path, mean=True, velocity=[0.5, 0.0, 0.0])
    weights = np.array([1.0, 2.0, 1.0]) / 4
    np.testing.assert_allclose(mean.data["friction"], weights @ found["friction_x"].values, rtol=1e-12)
    for given in ({"time": 0.0}, {"mean": True, "start": 0.0}):
        with pytest.raises(HiresxError, match="with local time steps samples have no time"):
            wall(tmp_path, **given)


# --- files


def interrupted(out, **arguments) -> Simulation:
    """A run of six steps that is left with its checkpoint of step 4."""
    made = simulation("plane", out, **arguments)
    case = made.case.model_copy(
        update={"checkpoint": made.case.checkpoint.model_copy(update={"every_steps": 4, "keep": 5})}
    )
    Simulation(case, "cpu", initial=flow, grid=plane()[1], out=out).run(steps=6, progress=False)
    max(checkpoint.list_checkpoints(out), key=lambda path: path.name).unlink()
    return case


def files(out) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in [*(out / "walls").iterdir(), *(out / "history").iterdir()]}


def test_a_restarted_run_continues_the_files_to_the_last_bit(tmp_path):
    interrupted(tmp_path)
    expected = files(tmp_path)
    for path in (tmp_path / "walls").iterdir():
        with path.open("ab") as file:
            file.write(b"begun, and not counted")
    again = Simulation(backend="cpu", restart=tmp_path, initial=flow, grid=plane()[1])
    assert again.step_count == 4
    again.run(steps=2, progress=False)
    assert files(tmp_path) == expected


def test_a_run_goes_on_elsewhere_in_the_same_files(tmp_path, monkeypatch):
    """With other parts, on a backend by which normals and areas differ in their last bits."""
    interrupted(tmp_path)
    made = wall_file.WallFile

    def elsewhere(name, where, places, normals, areas, *others):
        return made(name, where, places, normals * (1 - 1e-15), areas * (1 + 1e-15), *others)

    monkeypatch.setattr(wall_distribution, "WallFile", elsewhere)
    again = Simulation(backend="emulated", restart=tmp_path, initial=flow, grid=plane()[1], parts=scattered(6, 1, 5))
    again.run(steps=2, progress=False)
    assert sorted(wall_file.walls(tmp_path)) == ["low", "walls"]
    assert samples(tmp_path)["walls"]["step"].tolist() == [0, 2, 4, 6]


def test_another_wall_at_a_restart_sets_the_file_aside(tmp_path):
    case = interrupted(tmp_path)
    other = [force.model_copy(update={"faces": ("jmax",)}) if force.name == "low" else force for force in case.force]
    case = case.model_copy(update={"force": tuple(other)})
    again = Simulation(case, "cpu", restart=tmp_path, out=tmp_path, initial=flow, grid=plane()[1])
    again.run(steps=2, progress=False)
    assert sorted(wall_file.walls(tmp_path)) == ["low", "low.before-0", "walls"]


def test_the_file_is_netcdf_opens_lazily_and_is_described(of_solid):
    out = of_solid
    with Dataset(out / "walls" / "low.nc") as file:
        assert file["p"].dimensions == ("sample", "point") and file["p"].dtype == np.float32
        kept = np.array(file["y_plus"][...])
    run = open_run(out)
    assert run.walls == ["low", "walls"] and "walls" in repr(run)
    found = run.wall("low")
    assert not found["y_plus"].variable._in_memory
    np.testing.assert_array_equal(found["y_plus"].isel(place=[3, 5]).values, kept[:, [3, 5]])
    with pytest.raises(HiresxError, match='no distribution along the walls of "lows"'):
        run.wall("lows")
    from hiresx.output.show.describe import describe

    said = describe(out / "walls" / "walls.nc")
    assert said["kind"] == "wall distribution walls" and said["samples"] == 3 and said["steps"] == [0, 4]
    assert "walls/low.nc" in [row["files"] for row in describe(out)["holds"]]


def test_a_new_run_removes_the_distributions_of_the_one_before(tmp_path):
    Simulation(box(), "cpu", out=tmp_path, initial=warm_shear).run(progress=False)
    Simulation(box(force=[]), "cpu", out=tmp_path, initial=warm_shear).run(progress=False)
    assert not wall_file.walls(tmp_path)
    with pytest.raises(HiresxError, match="no distribution along the walls"):
        wall(tmp_path, mean=True)


# --- other walls


@pytest.mark.parametrize("reynolds", [REYNOLDS, None])
def test_slip_walls_have_the_pressure_and_exactly_nothing_else(reynolds):
    made = Case.from_dict(tables((16, 12, 1), amplitude=0.04, gas={"reynolds": reynolds}, force=[{"name": "walls"}]))
    _, found = watched(made, initial=flow)
    values = found["walls"].nodes.measure()
    assert np.ptp(values["p"]) > 0.01
    for name in VALUES[1:]:
        assert not values[name].any()


def test_modelled_walls_have_the_friction_and_the_wall_units_of_the_model():
    """At a wall colder than the gas that slips along it, and at an adiabatic one."""
    walls = [
        {"faces": ["jmin"], "type": "modelled-wall", "temperature": 0.8},
        {"faces": ["jmax"], "type": "modelled-wall"},
    ]
    gas = {"reynolds": 500.0, "viscosity": {"law": "power", "exponent": 0.7}}
    made = Case.from_dict(tables((12, 17, 1), periodic="x", gas=gas, scheme={"inviscid": "split"},
                                 force=[{"name": "low", "faces": ["jmin"]}, {"name": "high", "faces": ["jmax"]}])
                          | {"boundary": [{"faces": ["imin", "imax"], "type": "periodic"}, *walls]})  # fmt: skip
    run, found = watched(made, initial=lambda x, y, z: (1.1 + 0 * x, 0.3 + 0 * x, 0 * x, 0 * x, P + 0 * x))
    for name, face in (("low", "jmin"), ("high", "jmax")):
        values = found[name].nodes.measure()
        (modelled,) = (c for c in run.solver.conditions if isinstance(c, ModelledWall) and c.patch.face == face)
        stress = modelled.modelled.reshape(4, -1)
        np.testing.assert_allclose([values[f"friction_{axis}"] for axis in "xyz"], stress[:3], rtol=1e-13, atol=1e-18)
        np.testing.assert_allclose(values["heat"], -stress[3], rtol=1e-13, atol=1e-18)
        t = 0.8 if name == "low" else 1 / 1.1 + 0.2 * 0.89 * 0.3**2
        viscosity = t**0.7 / 500
        expected = np.sqrt(stress[0] * 1.4 * P / t) / viscosity / 16
        np.testing.assert_allclose(values["y_plus"], expected, rtol=1e-12)


def test_a_wall_that_reaches_the_axis(tmp_path):
    """Its node there has no area, and so no friction, but a pressure."""
    walls = [{"faces": ["imin"], "type": "no-slip-wall"}, SLIP | {"faces": ["imax", "jmax"]}]
    given = tables((16, 12, 1), gas={"reynolds": REYNOLDS}, axisymmetric=True, force=[{**FORCE, "faces": ["imin"]}])
    made = Case.from_dict(given | {"boundary": [{"faces": ["jmin"], "type": "axis"}, *walls]})
    Simulation(made, "cpu", out=tmp_path, initial=flow).run(steps=2, progress=False)
    found = open_run(tmp_path).wall("walls")
    at_axis = found["j"].values == 0
    assert at_axis.sum() == 1 and np.isfinite(found["p"].values).all()
    assert np.isnan(found["y_plus"].values[:, at_axis]).all() and np.isfinite(found["y_plus"].values[:, ~at_axis]).all()
    history = open_run(tmp_path).history("walls")
    assert (history["y_plus_max"].values == np.nanmax(found["y_plus"].values, axis=1)).all()
    wall(tmp_path, mean=True)


# --- refusals


@pytest.mark.parametrize(
    ("force", "said"),
    [
        ({"faces": ["kmin"]}, r"extrema: these are slip walls, which have neither friction"),
        ({"faces": ["imin"]}, "there is no wall"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(force, said):
    case, _ = solid()
    made = Case.model_validate(case.model_dump() | {"force": [{**FORCE, **force}]})
    with pytest.raises(HiresxError, match=said):
        monitors.check(made, decompose(made, build(made.grid, None)))


def test_clocks_that_cannot_be_kept_are_refused():
    local = {"time": {"steps": 2, "cfl": 0.5, "local": True}}
    with pytest.raises(HiresxError, match=r"force.0.distribution.every_time: with time.local there is no common time"):
        box(force=[{"name": "walls", "distribution": {"every_time": 0.1}}], **local)
    with pytest.raises(HiresxError, match=r"force.0.distribution.every_time = 1e-20: in double precision"):
        box(force=[{"name": "walls", "distribution": {"every_time": 1e-20}}])


def test_extremes_are_not_differentiated():
    run = Simulation(box(), "cpu", initial=warm_shear)
    assert {m.history.name for m in run.attachments if isinstance(m, ForceMonitor)} == {"walls"}
    assert numbers.measure(run, ["walls.heat"]).keys() == {"walls.heat"}
    with pytest.raises(HiresxError, match="no monitor of the case has such a number"):
        numbers.measure(run, ["walls.y_plus_max"])


def test_without_a_directory_no_distribution_is_kept():
    run = Simulation(box(), "cpu", initial=warm_shear)
    assert not any(a.name.startswith("walls.") for a in run.attachments)
