"""Surfaces that a run keeps: where they lie, what is in their files, whatever the cut, and after a restart."""

import resource
import signal

import numpy as np
import pytest
from netCDF4 import Dataset
from ranks import run_ranks
from test_monitors_ranks import scattered
from watched_runs import P, tables

from hiresx import Case, HiresxError, Simulation, load
from hiresx import open as open_run
from hiresx.decomposition import decompose
from hiresx.grid import build
from hiresx.output.saved import checkpoint
from hiresx.output.watch import interpolation, monitors, surface_file, surface_places
from hiresx.output.watch.device_samples import DeviceSamples
from hiresx.output.watch.monitors import surface as surface_monitor
from hiresx.output.watch.surface_places import surface

BOX = {"lower": [0.4, 0.2, 0.2], "upper": [1.6, 0.8, 0.8], "spacing": 0.15}
CYLINDER = {"start": 0.3, "end": 1.7, "radius": 0.2, "end_radius": 0.3, "centre": [0.5, 0.5], "spacing": 0.1}
SHELL = [
    {"faces": [face], "index": index, "range": {a: list(span[a]) for a in "ijk" if a != face[0]}}
    for span in ({"i": (4, 11), "j": (3, 10), "k": (2, 9)},)
    for face, index in (("imin", 4), ("imax", 10), ("jmin", 3), ("jmax", 9), ("kmin", 2), ("kmax", 8))
]
LISTED = [
    {"name": "box", "every": 2, "box": {**BOX, "caps": [1.2, 1.4]}},
    {"name": "round", "every_time": 0.03, "cylinder": CYLINDER, "precision": "fp32"},
    {"name": "nodes", "every": 3, "nodes": SHELL},
]


def case(*surfaces, n=(24, 15, 14), **changes) -> Case:
    return Case.from_dict(tables(n, (2.0, 1.0, 1.0), 0.03, surface=list(surfaces), **changes))


def flow(x, y, z):
    p = P * (1 + 0.1 * np.sin(2 * x + y) * np.cos(z))
    return (1.4 * p) ** P, 0.1 * np.sin(x), 0.05 * y * (1 - y), 0.02 * z * (1 - z), p


def placed(*surfaces, **changes):
    made = case(*surfaces, **changes)
    decomposition = decompose(made, build(made.grid, None))
    return [surface(f"surface.{n}", spec, decomposition) for n, spec in enumerate(made.surface)]


def ran(out, surfaces=LISTED, steps=6, **arguments) -> Simulation:
    changes = arguments.pop("changes", {})
    simulation = Simulation(case(*surfaces, **changes), backend=arguments.pop("backend", "cpu"), out=out, initial=flow,
                            **arguments)  # fmt: skip
    simulation.run(steps=steps, progress=False)
    return simulation


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone")
    ran(out)
    return out


def samples(out) -> dict[str, np.ndarray]:
    return {name: surface_file.read(path).records for name, path in surface_file.surfaces(out).items()}


def same(found, expected, tolerance=0.0) -> None:
    assert found.keys() == expected.keys()
    for name, records in expected.items():
        # what is kept in single precision may round to a neighbour
        least = 1.3e-7 if records["p"].dtype.itemsize == 4 and tolerance else tolerance
        for column in records.dtype.names:
            np.testing.assert_allclose(found[name][column], records[column], rtol=0, atol=least, err_msg=column)


def test_areas_close_around_their_volumes():
    volumes = (1.2 * 0.6 * 0.6, np.pi * 1.4 * (0.2**2 + 0.2 * 0.3 + 0.3**2) / 3)
    for found, volume in zip(placed(*LISTED[:2]), volumes, strict=True):
        for cap in range(1, len(found.caps) + 1):
            own = (found.first <= cap) & (cap <= found.last)
            assert np.abs(found.areas[own].sum(axis=0)).max() < 1e-12
            assert np.linalg.norm(found.areas[own], axis=1).min() > 0
        # Gauss: the integral of x.n; sums of middles are exact but for a cone's radius along its length
        assert (found.at * found.areas)[own].sum() / 3 == pytest.approx(volume, rel=2e-3)
        assert found.gaps == () and np.linalg.norm(found.areas[own], axis=1).max() < 0.16**2
    (box,) = placed(LISTED[0])
    assert box.caps == (1.2, 1.4, 1.6)
    for number, cap in enumerate(box.caps, 1):
        own = (box.first <= number) & (number <= box.last)
        assert box.at[own, 0].max() == pytest.approx(cap) and (box.at[own, 0] == cap).any()


def test_planes_of_nodes_close_and_name_the_opening_where_one_lacks():
    whole, lacking = placed({"name": "a", "nodes": SHELL}, {"name": "b", "nodes": SHELL[1:]})
    assert whole.gaps == () and np.abs(whole.areas.sum(axis=0)).max() < 1e-14
    assert (whole.at * whole.areas).sum() > 0  # outwards
    (said,) = lacking.gaps
    assert "border of 24 edges" in said
    (plane,) = placed({"name": "c", "box": {**BOX, "open": ["ymax", "xmin"]}})
    assert plane.gaps == ("it is open at xmin", "it is open at ymax")


def test_in_the_plane_a_surface_is_a_line():
    closed = {"name": "a", "nodes": [{"faces": "all"}]}
    inner = [{"faces": [f], "index": n, "range": {e: [3, 9]}} for f, n, e in
             (("imin", 3, "j"), ("imax", 8, "j"), ("jmin", 3, "i"), ("jmax", 8, "i"))]  # fmt: skip
    around, box, shell = placed(closed, {"name": "b", "box": BOX}, {"name": "c", "nodes": inner}, n=(24, 15, 1))
    for found in (around, box, shell):
        assert np.abs(found.areas.sum(axis=0)).max() < 1e-13 and found.gaps == ()
    assert (around.at * around.areas).sum() / 2 == pytest.approx(2.0, rel=1e-3)
    assert (box.at * box.areas).sum() / 2 == pytest.approx(1.2 * 0.6) and box.count == 24
    assert (shell.at * shell.areas).sum() > 0


def test_values_are_those_of_the_flow_at_the_places(alone):
    found = samples(alone)
    assert {name: len(records) for name, records in found.items()}["box"] == 4
    for name, tolerance in (("box", 2e-5), ("round", 2e-5), ("nodes", 1e-15)):
        stored = surface_file.read(alone / "surfaces" / f"{name}.nc")
        exact = dict(zip(("rho", "u", "v", "w", "p"), flow(*stored.fixed_columns("x", "y", "z").T), strict=True))
        for column, values in exact.items():
            if column not in "vw" or name == "nodes":  # slip walls change those at the walls
                np.testing.assert_allclose(found[name][column][0], values, rtol=0, atol=tolerance, err_msg=column)
    assert found["round"]["p"].dtype == ">f4"
    np.testing.assert_allclose(np.diff(found["round"]["time"]), 0.03, rtol=1e-9)


def test_places_are_found_between_blocks_and_in_the_last_gap_of_a_period():
    jet = load("planar-jet", preset="quick")
    periodic = Case.from_dict(tables((16, 12, 10), (2.0, 1.0, 1.0), 0.02, "xyz"))
    rng = np.random.default_rng(3)
    beside = np.stack([rng.uniform(-0.06, 0.06, 60), rng.uniform(-0.45, 0.45, 60), np.zeros(60)], axis=1)
    everywhere = rng.random((60, 3)) * [2.0, 1.0, 1.0]
    everywhere[:3] = [[1.99, 0.99, 0.99], [1.95, 0.0, 0.5], [0.0, 0.999, 0.0]]
    for made, points, dimensions in ((jet, beside, 2), (periodic, everywhere, 3)):
        decomposition = decompose(made, build(made.grid, made.directory))
        block, xi = interpolation.locate_places(decomposition, points, "surface")
        for b in np.unique(block):
            known, mine = interpolation._map(decomposition, b), block == b
            np.testing.assert_allclose(known.at(xi[mine])[0], points[mine, :dimensions], atol=1e-10)
            assert known.beyond(xi[mine]).max() <= 0.51
    with pytest.raises(HiresxError, match=r"surface.0 .* lies outside the grid"):  # in the lip of the nozzle
        lip = decompose(jet, build(jet.grid, jet.directory))
        interpolation.locate_places(lip, np.array([[-0.1, 0.55, 0.0]]), 'surface.0 "a"')


def test_places_of_any_block_are_looked_for_together_and_nodes_not_at_all(monkeypatch):
    """From more starting points, which takes long, are those alone that Newton's method has not found in a block."""

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(interpolation, "_locate_from_more_starts", fail)
    jet = load("planar-jet", preset="quick")
    decomposition = decompose(jet, build(jet.grid, jet.directory))
    middles = [np.array([axis[0, 1::5, 1::5] for axis in (b.x, b.y, b.z)]).reshape(3, -1) for b in decomposition.blocks]
    block, xi = interpolation.locate_places(decomposition, np.concatenate(middles, axis=1).T, "surface")
    wanted = np.repeat(np.arange(len(middles)), [own.shape[1] for own in middles])
    assert len(middles) > 2 and block.tolist() == wanted.tolist()
    assert np.abs(xi - np.round(xi)).max() < 1e-9
    for n, own in enumerate(middles):
        assert set(interpolation.locate_places(decomposition, own.T, "surface")[0].tolist()) == {n}
    monkeypatch.setattr(surface_monitor, "locate_places", fail)
    made = case(LISTED[2])
    places, block, xi = surface_monitor._find_surface("s", made.surface[0], decompose(made, build(made.grid, None)))
    assert block is places.block and xi is places.index and len(xi) == len(places.at)


def test_a_place_is_as_at_a_probe(tmp_path):
    (box,) = placed(LISTED[0])
    some = [0, 40, 99, box.count - 1]
    probe = {"name": "probe", "points": box.at[some].tolist(), "every": 2, "filter": "none"}
    simulation = ran(tmp_path, LISTED[:1], changes={"probe": [probe]})
    table = next(a.history.table() for a in simulation.attachments if getattr(a, "name", "") == "history.probe")
    found = samples(tmp_path)["box"]
    for column in ("rho", "u", "v", "w", "p"):
        np.testing.assert_allclose(found[column][:, some], table.data[column], rtol=0, atol=2e-6)


def test_the_file_is_netcdf_and_opens_lazily_as_xarray(alone):
    with Dataset(alone / "surfaces" / "round.nc") as file:
        assert file["p"].dimensions == ("sample", "point") and file["p"].dtype == np.float32
        kept = np.array(file["p"][...])
        assert file["area"].units == "L^2" and file.gaps == "" and file.caps == "1.7"
    run = open_run(alone)
    assert run.surfaces == ["box", "nodes", "round"] and "surfaces" in repr(run)
    found = run.surface("round")
    assert not found["p"].variable._in_memory
    np.testing.assert_array_equal(found["p"].isel(time=slice(1, None), place=[3, 5]).values, kept[1:, [3, 5]])
    np.testing.assert_array_equal(found["p"].isel(place=7).values, kept[:, 7])
    assert found["p"].attrs["units"] == "rho_ref c_ref^2" and found["p"].dtype == np.float32
    assert float((found["normal_x"] ** 2 + found["normal_y"] ** 2 + found["normal_z"] ** 2).max()) == pytest.approx(1)
    with pytest.raises(HiresxError, match='no surface "rounds"'):
        run.surface("rounds")


@pytest.mark.parametrize(("count", "seed"), [(4, 1), (9, 3)])
def test_cuts_are_not_seen(count, seed, alone, tmp_path):
    ran(tmp_path, parts=scattered(count, 1, seed))
    same(samples(tmp_path), samples(alone), 1e-13)


def on_ranks(comm, out, count, seed) -> None:
    ran(out, comm=comm, parts=scattered(count, comm.size, seed))


@pytest.mark.slow
def test_several_ranks_write_what_one_does(alone, tmp_path):
    run_ranks(2, on_ranks, tmp_path / "run", 5, 2)
    same(samples(tmp_path / "run"), samples(alone), 1e-13)


def test_the_emulated_gpu_gives_the_same(alone, tmp_path):
    ran(tmp_path, backend="emulated", steps=4)
    same(samples(tmp_path), {name: records[: len(samples(tmp_path)[name])] for name, records in samples(alone).items()},
         1e-12)  # fmt: skip


def test_arithmetic_in_single_precision(alone, tmp_path):
    # Hardly viscous, as other tests have those kernels too; with the clock that makes the same steps.
    ran(tmp_path, LISTED[:2], changes={"scheme": {"precision": "fp32"}, "gas": {"reynolds": 1e6}}, steps=2)
    found, expected = samples(tmp_path)["box"], samples(alone)["box"]
    np.testing.assert_allclose(found["p"], expected["p"][: len(found)], rtol=0, atol=2e-6)


def interrupted(out, surfaces=LISTED) -> Simulation:
    """A run of six steps that is left with its checkpoint of step 4."""
    simulation = ran(out, surfaces, changes={"checkpoint": {"every_steps": 4, "keep": 5}})
    newest = max(checkpoint.list_checkpoints(out), key=lambda path: path.name)
    newest.unlink()
    return simulation


def test_a_restarted_run_continues_the_files_to_the_last_bit(tmp_path):
    interrupted(tmp_path)
    expected = {path.name: path.read_bytes() for path in (tmp_path / "surfaces").iterdir()}
    for path in (tmp_path / "surfaces").iterdir():
        with path.open("ab") as file:
            file.write(b"begun, and not counted")
    again = Simulation(backend="cpu", restart=tmp_path, initial=flow)
    assert again.step_count == 4
    again.run(steps=2, progress=False)
    assert {path.name: path.read_bytes() for path in (tmp_path / "surfaces").iterdir()} == expected


def test_a_file_that_was_cut_short_is_refused(tmp_path):
    interrupted(tmp_path, LISTED[:1])
    path = tmp_path / "surfaces" / "box.nc"
    whole = path.read_bytes()
    for length, held in ((len(whole) - 1, 3), (3000, 0)):
        path.write_bytes(whole[:length])
        with pytest.raises(HiresxError, match=f"box.nc was cut short: it holds {held} of the 4 samples"):
            open_run(tmp_path).surface("box")
    for content in (b"", whole[:500], b"no netCDF at all"):
        path.write_bytes(content)
        with pytest.raises(HiresxError, match=r"box\.nc is not a surface"):
            open_run(tmp_path).surface("box")
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(HiresxError, match=r"holds \d samples?, the checkpoint was written after 3"):
        Simulation(backend="cpu", restart=tmp_path, initial=flow).run(steps=2, progress=False)


def test_another_surface_at_a_restart_sets_the_file_aside(tmp_path):
    interrupted(tmp_path, LISTED[:1])
    wider = {**LISTED[0], "box": {**BOX, "spacing": 0.2}}
    Simulation(case(wider), backend="cpu", restart=tmp_path, out=tmp_path, initial=flow).run(steps=2, progress=False)
    assert sorted(path.name for path in (tmp_path / "surfaces").iterdir()) == ["box.before-6.nc", "box.nc"]
    assert samples(tmp_path)["box"]["step"].tolist() == [6]  # step 4 was sampled before the checkpoint


@pytest.mark.parametrize("clock", [{"every": 1}, {"every_time": 0.02}])
def test_other_times_of_sampling_at_a_restart_set_the_file_aside(tmp_path, clock):
    """Steps in one file are equal."""
    interrupted(tmp_path, LISTED[:1])
    other = {**{key: value for key, value in LISTED[0].items() if key != "every"}, **clock}
    again = Simulation(case(other), backend="cpu", restart=tmp_path, out=tmp_path, initial=flow)
    again.run(steps=2, progress=False)
    assert sorted(path.name for path in (tmp_path / "surfaces").iterdir()) == ["box.before-6.nc", "box.nc"]
    assert samples(tmp_path)["box"]["step"][0] > 4


def test_a_new_run_removes_the_surfaces_of_the_one_before(tmp_path):
    ran(tmp_path, LISTED[:1], steps=2)
    ran(tmp_path, LISTED[2:], steps=2)
    assert list(samples(tmp_path)) == ["nodes"]


def test_a_full_disk_is_told_and_the_samples_before_stay(tmp_path):
    simulation = Simulation(case(LISTED[0]), backend="cpu", out=tmp_path, initial=flow)
    built = monitors.build(simulation.case, simulation)
    (watching,) = (m for m in built if m.name == "surface.box")
    (samples_of_steps,) = (m for m in built if isinstance(m, DeviceSamples))
    for each in (watching, samples_of_steps):
        each.begin(simulation.solver, False)
    samples_of_steps.deliver()
    size, old = (tmp_path / "surfaces" / "box.nc").stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, old[1]))
    try:
        simulation.solver.steps = 2
        with pytest.raises(HiresxError, match=r"box\.nc: the file exceeds the largest size"):
            watching.after_step(simulation.solver)
            samples_of_steps.after_step(simulation.solver)
            samples_of_steps.deliver()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)
    assert surface_file.read(tmp_path / "surfaces" / "box.nc").samples == 1


def test_without_a_directory_nothing_is_kept():
    simulation = Simulation(case(LISTED[0]), backend="cpu", initial=flow)
    assert not any(m.name.startswith("surface.") for m in monitors.build(simulation.case, simulation))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"box": {**BOX, "upper": [2.4, 0.8, 0.8]}}, "lies outside the grid.*nearest node"),
        ({"nodes": [{"faces": ["imin"], "index": 24}]}, "index = 24 is none of the 24 nodes"),
        ({"nodes": [{"faces": ["imin"], "block": "bx"}]}, "no block 'bx'"),
        ({"nodes": [{"faces": ["imin"], "range": {"j": [3, 4]}}]}, "one node along j has no area"),
        ({"box": {**BOX, "spacing": 1e-4}}, "cells, 10000000 are the most"),
        ({"box": {**BOX, "open": ["xmax"], "caps": [1.0]}}, "xmax, which is open"),
        ({"box": BOX, "nodes": SHELL}, "takes exactly one of nodes, box and cylinder"),
        ({"box": {**BOX, "cells": [2, 2, 2]}}, "takes exactly one of spacing and cells"),
        ({"box": {**BOX, "caps": [1.7]}}, "caps must lie between the ends"),
        ({"cylinder": {**CYLINDER, "start": 1.7}}, "start must lie below end"),
        ({"box": {**BOX, "lower": [1.7, 0.2, 0.2]}}, "lower must lie below upper"),
        ({"nodes": [{"faces": "all", "index": 3}]}, "index needs exactly one face"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(table, said):
    with pytest.raises(HiresxError, match=said):
        made = case({"name": "odd", **table})
        monitors.check(made, decompose(made, build(made.grid, None)))


def test_names_and_clocks():
    with pytest.raises(HiresxError, match="there is a surface of that name"):
        case(LISTED[0], LISTED[0])
    with pytest.raises(HiresxError, match=r"surface.0.every_time: with time.local there is no common time"):
        case({**LISTED[1]}, time={"steps": 2, "cfl": 0.5, "local": True})
    with pytest.raises(HiresxError, match="no surfaces in one dimension"):
        placed(LISTED[0], n=(24, 1, 1))
    with pytest.raises(HiresxError, match="needs three dimensions"):
        placed(LISTED[1], n=(24, 15, 1))


@pytest.mark.parametrize(
    ("cells", "number"), [({"spacing": 0.1}, (19, 3)), ({"spacing": 0.5}, (8, 1)), ({"cells": [4, 3, 2]}, (3, 2))]
)
def test_a_cylinder_is_round_however_coarse(cells, number):
    """Eight cells around it by a spacing, and three if that few are asked for."""
    given = case({"name": "a", "cylinder": {**CYLINDER, "spacing": None, **cells}}).surface[0].cylinder
    assert surface_places._round(given) == number
