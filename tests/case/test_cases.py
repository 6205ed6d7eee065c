"""Every bundled case with every preset: it loads, its grid builds and is covered, its functions give a gas state."""

import inspect
import re
import shlex

import numpy as np
import pytest
from paths import ROOT

from hiresx import cli
from hiresx.case import bundled_cases, load, presets
from hiresx.decomposition import decompose
from hiresx.decomposition.patches import poles
from hiresx.errors import HiresxError
from hiresx.grid import build, check_jacobian
from hiresx.output.fields import selection
from hiresx.output.fields.derived import VARIABLES

EVERY = [(name, preset) for name in bundled_cases() for preset in (None, *presets(name))]
# Large grids, thinned where nothing but their size would be tested.
THINNED = {
    ("taylor-green", None): ("grid.n=[16,16,16]",),
    ("taylor-green", "mach-0.4"): ("grid.n=[16,16,16]",),
    ("taylor-green", "n128"): ("grid.n=[16,16,16]",),
    ("shock-turbulence", None): ("grid.n=[40,8,8]",),
    ("shock-turbulence", "coarse"): ("grid.n=[40,8,8]",),
    ("decaying-turbulence", None): ("grid.n=[16,16,16]", "parameters.largest=7"),
    ("decaying-turbulence", "quick"): ("grid.n=[16,16,16]", "parameters.largest=7"),
    ("decaying-turbulence", "n128"): ("grid.n=[16,16,16]", "parameters.largest=7"),
    ("channel", "dns"): ("grid.n=[16,17,12]",),
    ("channel", "les"): ("grid.n=[16,17,12]",),
    ("planar-jet", "three-d"): ("grid.nk=8",),
    ("planar-jet", "paper"): ("grid.nk=1",),
    ("onera-m6", "euler"): ("parameters.resolution=0.6",),
    **{("round-jet", preset): ("grid.exit_spacing=0.08", "grid.stretching=[1.05,1.15]")
       for preset in (None, "axisymmetric", "ideal", "screech")},
}  # fmt: skip
NAMES = {
    "isentropic-vortex", "density-wave", "shear-wave", "sod", "lax", "shu-osher", "blast-waves", "einfeldt-123",
    "le-blanc", "riemann-2d", "blast-2d", "double-mach", "taylor-green", "couette", "flat-plate", "flat-plate-sa",
    "cylinder-bow-shock", "free-stream", "planar-jet", "cylinder-o", "naca0012", "bump", "bump-sa", "sedov", "noh",
    "vacuum", "cone", "sphere", "plane-wave", "mixing-layer", "round-jet", "titarev-toro", "channel", "shock-vorticity",
    "shock-turbulence", "decaying-turbulence", "shock-diffraction", "inlet-30", "onera-m6",
}  # fmt: skip


def thinned(name, preset):
    return load(name, preset, THINNED.get((name, preset), ()))


def has_exact(name):
    functions = ROOT / "cases" / name / "case.py"
    return functions.is_file() and "def exact(" in functions.read_text()


def test_all_are_there():
    assert set(bundled_cases()) == NAMES


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_grid_builds_and_boundaries_cover_it(name, preset):
    case = thinned(name, preset)
    grid = build(case.grid, case.directory)
    check_jacobian(grid, poles(case, grid))
    decomposition = decompose(case, grid)
    assert decomposition.patches or decomposition.connections


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_functions_give_a_gas_state(name, preset):
    """`Case.evaluate` refuses what is not finite, not positive, or of another shape."""
    case = thinned(name, preset)
    decomposition = decompose(case, build(case.grid, case.directory))
    for block in decomposition.blocks:
        nodes = block.x, block.y, block.z
        if case.initial.function:
            case.evaluate(case.initial.function, *nodes)
        if has_exact(name):
            end = case.time.end or 1.0
            for t in (0.0, 0.5 * end, end):
                case.evaluate("exact", *nodes, t)
        for sponge in case.sponge:
            if sponge.function and block.name in (sponge.blocks or [block.name]):
                case.evaluate(sponge.function, *nodes)
    for patch in decomposition.patches:
        function = getattr(patch.condition, "function", None)
        if function:
            block = decomposition.blocks[patch.block]
            part = tuple(slice(*r) for r in reversed(patch.range))
            case.evaluate(function, block.x[part], block.y[part], block.z[part], 0.1)


@pytest.mark.parametrize(("name", "preset"), [(n, p) for n, p in EVERY if n != "couette" and has_exact(n)])
def test_the_exact_solution_starts_as_the_initial_state(name, preset):
    case = thinned(name, preset)
    (block,) = build(case.grid, case.directory).blocks
    initial = case.evaluate("initial", block.x, block.y, block.z)
    np.testing.assert_array_equal(initial, case.evaluate("exact", block.x, block.y, block.z, 0.0))


@pytest.mark.parametrize("name", bundled_cases())
def test_description_opens_the_case_and_its_commands_are_valid(name):
    case = load(name)
    text = (case.directory / "case.toml").read_text()
    assert re.match(r'title = ".*"\ndescription = """', text)
    for word in ("Scales:", "Source:", "Cost"):
        assert word in case.description
    assert all(len(line) <= 120 for line in text.splitlines())
    commands = [shlex.split(line) for line in case.description.splitlines() if line.startswith("    hiresx ")]
    runs = [words for words in commands if words[1] == "run"]
    written = {words[words.index("--out") + 1] for words in runs}
    assert ["hiresx", "run", name] in [words[:3] for words in runs]
    for words in runs:
        options = list(zip(words[3::2], words[4::2], strict=True))
        assert {key for key, _ in options} <= {"--preset", "--set", "--out", "--backend"}
        load(words[2], dict(options).get("--preset"), [value for key, value in options if key == "--set"])
    plots = [words for words in commands if words[1] == "plot"]
    assert plots
    for words in plots:
        assert words[2] in written
        assert words[3:] == [] or (words[3] == "--variable" and words[4] in VARIABLES)


@pytest.mark.parametrize(("name", "preset"), [(n, p) for n, p in EVERY if n == "couette"])
def test_couette_parameters_are_those_of_its_walls(name, preset):
    case = load(name, preset)
    walls = {condition.faces: condition for condition in case.boundary}
    assert case.parameters["T_lower"] == walls["jmin",].temperature
    assert case.parameters["T_upper"] == walls["jmax",].temperature
    assert walls["jmax",].velocity == (case.parameters["wall_speed"], 0.0, 0.0)


def test_couette_keeps_its_mass():
    case = load("couette", None, ["grid.n=[8,401,1]"])
    (block,) = build(case.grid).blocks
    rho = case.evaluate("exact", block.x, block.y, block.z, 0.0)[0][0, :, 0]
    assert np.trapezoid(rho, block.y[0, :, 0]) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "preset"),
    [(n, p) for n, p in EVERY if n in ("free-stream", "cylinder-bow-shock", "naca0012", "onera-m6", "bump")],
)
def test_uniform_flow_enters_as_it_starts(name, preset):
    case = load(name, preset)
    states = [condition.state for condition in case.boundary if hasattr(condition, "state")]
    assert states and all(state == case.initial.state for state in states)


@pytest.mark.parametrize(("name", "preset"), [(n, p) for n, p in EVERY if n == "double-mach"])
def test_double_mach_wall_begins_on_a_node(name, preset):
    case = load(name, preset)
    (block,) = build(case.grid).blocks
    (wall,) = (condition for condition in case.boundary if condition.type == "slip-wall")
    assert block.x[0, 0, wall.range["i"][0]] == pytest.approx(case.parameters["wall_from"], abs=1e-12)


def test_double_mach_shock_is_the_exact_one():
    case = load("double-mach")
    x, y = np.array([0.0, 4.0]), np.array([0.5, 0.5])
    rho, u, v, _, p = case.evaluate("initial", x, y, 0 * x)
    np.testing.assert_allclose((rho, p), ([8.0, 1.4], [116.5, 1.0]))
    np.testing.assert_allclose((u[0], v[0]), (8.25 * np.sqrt(0.75), -4.125))  # Woodward & Colella 1984


def test_shu_osher_enters_as_it_starts():
    case = load("shu-osher")
    (block,) = build(case.grid).blocks
    start = [a[0, 0, 0] for a in case.evaluate("initial", block.x, block.y, block.z)]
    state = case.boundary[0].state
    np.testing.assert_allclose(start, (state.rho, state.u, state.v, state.w, state.p), rtol=1e-14)


@pytest.mark.parametrize("preset", [None, *presets("taylor-green")])
def test_taylor_green_has_its_reynolds_number(preset):
    case = load("taylor-green", preset)
    assert case.gas.reynolds * case.parameters["mach"] == pytest.approx(1600)
    assert case.time.end * case.parameters["mach"] == pytest.approx(10)


def test_flat_plate_layer():
    """Cf of the start is Blasius's, and the layer is one of the compressible equations: p uniform, T as Crocco says."""
    case = load("flat-plate")
    y = np.array([0.0, 1e-6])
    rho, u, _, _, p = case.evaluate("exact", np.full(2, 0.5), y, 0 * y, 0.0)
    T = 1.4 * p / rho
    shear = T[0] * (u[1] - u[0]) / y[1] / case.gas.reynolds
    assert shear / (0.5 * 0.5**2) * np.sqrt(0.5 * 0.5 * case.gas.reynolds) == pytest.approx(0.664115, rel=1e-4)
    assert T[0] == pytest.approx(1 + np.sqrt(0.72) * 0.2 * 0.5**2)
    (block,) = build(case.grid).blocks
    in_layer = block.y[0, :, 0] < 5 * 0.5 / np.sqrt(0.5 * 0.5 * case.gas.reynolds)
    assert in_layer.sum() >= 20


@pytest.mark.parametrize("preset", [None, *presets("planar-jet")])
def test_planar_jet_fits_its_grid(preset):
    case = load("planar-jet", preset)
    grid, (downstream, upstream, above, below) = case.grid, case.sponge
    assert case.parameters["layer"] == grid.boundary_layer_thickness
    assert case.parameters["lip"] == grid.lip_thickness and case.parameters["span"] == grid.width
    assert (downstream.start, downstream.end) == (grid.length, grid.length + grid.sponge_length)
    assert (upstream.start, upstream.end) == (-grid.nozzle_length, -grid.upstream)
    assert (above.start, above.end) == (grid.half_height, grid.half_height + grid.sponge_height)
    assert (below.start, below.end) == (-above.start, -above.end)


def test_planar_jet_states():
    """Exit, fully expanded and ambient state of the under-expanded jet with pe/p = 2.09, total temperature ambient."""
    case = load("planar-jet")
    nozzle = case.evaluate("nozzle", *np.zeros((3, 1)), 0.0)
    np.testing.assert_allclose(np.ravel(nozzle), (2.508, 0.912871, 0, 0, 1.492857), rtol=1e-6)
    wall = case.evaluate("nozzle", np.zeros(2), np.array([-0.5, 0.5]), np.zeros(2), 0.0)
    np.testing.assert_allclose(wall[1], 0.0)
    np.testing.assert_allclose(1.4 * wall[4] / wall[0], 1.0)
    developed = case.evaluate("developed_jet", np.array([0.3, 0.3]), np.array([0.0, 9.0]), np.zeros(2))
    np.testing.assert_allclose([a[0] for a in developed], (1.481329, 1.274619, 0, 0, 0.714286), rtol=1e-6)
    np.testing.assert_allclose([a[1] for a in developed], (1, 0, 0, 0, 1 / 1.4), atol=1e-12)
    for x in (1.0, 5.0, 20.0):  # the integral of u^2 is that of the fully expanded core, 1.21256 h high
        y = np.linspace(-40, 40, 40001)
        u = case.evaluate("developed_jet", np.full_like(y, x), y, 0 * y)[1]
        assert np.trapezoid(u**2, y) == pytest.approx(1.274619**2 * 1.21256, rel=1e-4)


@pytest.mark.parametrize("given", ["Mj=1.5513370064544602", "NPR=3.9562219417621147"])
def test_planar_jet_by_other_numbers(given):
    """One of Mj, NPR and pe/p says how strongly the jet is under-expanded; the states are those of pe/p = 2.09."""
    case = load("planar-jet", overrides=[f"parameters.{given}"])
    assert case.parameters["pressure_ratio"] == pytest.approx(2.09, rel=1e-12)
    assert set(case.derived) == {"Mj", "NPR", "pressure_ratio", "Uj", "hj"} - {given.partition("=")[0]}
    np.testing.assert_allclose([case.parameters[n] for n in ("Uj", "hj")], [1.274619, 1.21256], rtol=1e-5)
    nozzle = case.evaluate("nozzle", *np.zeros((3, 1)), 0.0)
    np.testing.assert_allclose(np.ravel(nozzle), (2.508, 0.912871, 0, 0, 1.492857), rtol=1e-6)


def test_a_hot_planar_jet():
    """Total temperature 2 in the nozzle and the core, 1 at rest around; the pressures are those of the cold jet."""
    case = load("planar-jet", overrides=["parameters.temperature_ratio=2.0"])
    rho, u, _, _, p = case.evaluate("nozzle", *np.zeros((3, 1)), 0.0)
    assert 1.4 * p / rho + 0.2 * u**2 == pytest.approx(2.0) and u == pytest.approx(0.912871 * np.sqrt(2), rel=1e-6)
    rho, u, _, _, p = case.evaluate("developed_jet", np.array([0.3, 0.3]), np.array([0.0, 9.0]), np.zeros(2))
    np.testing.assert_allclose(1.4 * p / rho + 0.2 * u**2, [2.0, 1.0], atol=1e-12)
    assert u[0] == pytest.approx(case.parameters["Uj"]) and case.parameters["Mj"] == pytest.approx(1.551337)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["parameters.Mj=0.9"], "Mj = 0.9 is below choking: .* pressure_ratio > 1"),
        (["parameters.Mj='abc'"], "Mj = abc must be a positive number"),
        (["parameters.NPR=inf"], "NPR = inf must be a positive number"),
        (["parameters.Mj=nan"], "Mj = nan must be a positive number"),
        (["parameters.pressure_ratio=0.9"], "pressure_ratio = 0.9 is below choking"),
        (["parameters.NPR=1.5"], "NPR = 1.5 is below choking"),
        (["parameters.exit_mach=0.9"], "a subsonic flow at the exit takes the ambient pressure"),
        (["parameters.exit_mach=1.4", "parameters.Mj=0.8"], "makes no supersonic jet"),
        (["parameters.Mj=1.4", "parameters.NPR=4.0"], "Mj and NPR have the same meaning"),
        (["parameters.layer=0.5"], "layers of both walls meet"),
        (["parameters.lip=0.0"], "lip = 0 must be positive"),
        (["grid.boundary_layer_thickness=0.5"], "layers of both walls meet"),
        (["grid.points_per_height=6"], "fewer than 8 cells"),
    ],
)
def test_planar_jets_that_cannot_be(overrides, reason):
    with pytest.raises(HiresxError, match=reason):
        load("planar-jet", "quick", overrides)


@pytest.mark.parametrize("preset", [None, *presets("planar-jet")])
def test_planar_jet_moves_with_its_grid(preset):
    """Sponges and probes stand where the grid's keys put them, none of the probes in a sponge."""
    moved = ["grid.length=15.0", "grid.half_height=6.0", "grid.sponge_length=7.0", "parameters.lip=0.2"]
    case = load("planar-jet", preset, moved)
    downstream, _, above, below = case.sponge
    assert (downstream.start, downstream.end) == (15.0, 22.0) and (above.start, below.start) == (6.0, -6.0)
    places = {probe.name: np.array(probe.places) for probe in case.probe}
    np.testing.assert_allclose(places["lips"][:, 1], [0.9, -0.9])
    assert places["axis"][-1, 0] == 15.0 and len(places["axis"]) == 121
    np.testing.assert_allclose(np.hypot(*places["near-above"][:, :2].T), 4.8)
    np.testing.assert_allclose(places["near-below"][:, 1], -places["near-above"][:, 1])
    for name, found in places.items():
        assert (found[:, 0] <= 15).all() and (np.abs(found[:, 1]) <= 6).all(), name
    assert 0 < case.average.start < case.time.end


@pytest.mark.parametrize("preset", [None, "quick"])
def test_planar_jet_in_the_plane_is_sampled_around(preset):
    """Between the nozzle and the sponge, in cells of which a wave of 1 c/h has eight; in space, too."""
    case = load("planar-jet", preset)
    (surface,) = case.surface
    assert -case.grid.nozzle_length < surface.box.lower[0] < 0 < surface.box.upper[0] < case.grid.length
    assert surface.box.upper[1] == -surface.box.lower[1] < case.grid.half_height
    assert surface.box.spacing <= 1 / 8 and surface.every_time <= 1 / 5 and len(surface.box.caps) == 8
    assert surface.box.upper[2] == load("planar-jet", preset, ["grid.nk=16"]).surface[0].box.upper[2] > 0


def test_the_airfoil_on_several_blocks_writes_what_is_near():
    """Its output.subset suits whatever division of a small grid."""
    small = ["grid.n_airfoil=41", "grid.n_wake=16", "grid.n_normal=25", "grid.first_spacing=0.02"]
    sizes = []
    for blocks in (1, 4):
        case = load("naca0012", "quick", [*small, f"grid.blocks={blocks}"])
        built = build(case.grid, case.directory)
        (near,) = (selection.subset(spec, built.blocks) for spec in case.output.subset)
        sizes.append(sum(int(np.prod(piece.shape)) for piece in near))
        assert len(near) == blocks
    assert sizes[0] == sizes[1] == (25 - 13) * sum(block.size[0] for block in built.blocks)


def test_planar_jet_in_space_is_sampled_around():
    """A surface from outside the nozzle to the sponge, as often as a far field of 2000 samples wants."""
    case = load("planar-jet", "three-d", ["grid.length=15.0", "grid.half_height=6.0", "parameters.span=3.0"])
    (surface,) = case.surface
    assert surface.box.upper[0] == 14.0 and surface.box.upper[1] == -surface.box.lower[1] == 3.75
    assert -case.grid.nozzle_length < surface.box.lower[0] < 0
    assert (surface.box.lower[2], surface.box.upper[2]) == (0.0, 3.0)
    assert case.time.end / surface.every_time == pytest.approx(2000)


def test_planar_jet_starts_out_of_symmetry_everywhere():
    case = load("planar-jet", "three-d")
    z = np.linspace(0, case.grid.width, 9)
    v = case.evaluate("initial", np.full(9, 2.0), np.zeros(9), z)[2]
    assert np.ptp(v) > 0.01 and abs(v[0] - v[-1]) < 1e-12


def test_planar_jet_paper_is_the_papers():
    case = load("planar-jet", "paper", ["grid.nk=1"])
    points = sum(block.points for block in build(case.grid).blocks)
    assert load("planar-jet", "paper").grid.nk * points == pytest.approx(67.7e6, rel=1e-3)
    assert (case.time.dt, case.time.end) == (2.5e-3, 360.0)


def test_functions_say_what_they_take():
    """A case is copied to be edited: arguments by name only, no defaults that would hide a missing parameter."""
    for name in bundled_cases():
        case = load(name)
        if not (case.directory / "case.py").is_file():
            continue
        for match in re.findall(r"^def ([a-z]\w*)\(", (case.directory / "case.py").read_text(), re.M):
            # one has parameters of which one is given, others take the simulation
            if match == "derived" or match in case.monitors:
                continue
            arguments = inspect.signature(case.function(match)).parameters.values()
            assert [a.name for a in arguments][:3] == ["x", "y", "z"]
            assert all(a.default is a.empty for a in arguments)


@pytest.mark.parametrize("n", [80, 41, 64, 16, 7])
def test_sedovs_energy_is_there_on_any_number_of_nodes(n):
    """However the nodes lie to the square, none in it included, in two blocks as in one."""
    case = load("sedov", None, (f"grid.n=[{n},{n + 1},1]",))
    (block,) = build(case.grid, case.directory).blocks
    p = case.evaluate(case.initial.function, block.x, block.y, block.z)[4]
    cell = np.diff(block.x[0, 0]).mean() * np.diff(block.y[0, :, 0]).mean()
    given, gamma = case.parameters, case.gas.gamma
    cold = (gamma - 1) * given["energy"] / (4 * given["half_width"] ** 2) / given["ratio"]
    energy = ((p - cold) * cell).sum() / (gamma - 1)
    assert energy == pytest.approx(given["energy"] * (1 - 1 / given["ratio"]), rel=1e-9)
    halves = [np.s_[:, :, : n // 2], np.s_[:, :, n // 2 :]]
    cut = [case.evaluate(case.initial.function, *(c[half] for c in (block.x, block.y, block.z)))[4] for half in halves]
    np.testing.assert_allclose(np.concatenate(cut, axis=2), p, rtol=1e-9)


@pytest.mark.parametrize("n", [20, 39, 13])
def test_sedovs_energy_is_there_in_space(n):
    case = load("sedov", "levels-space", (f"grid.n=[{n},{n + 1},{n + 2}]",))
    (block,) = build(case.grid, case.directory).blocks
    p = case.evaluate(case.initial.function, block.x, block.y, block.z)[4]
    cell = np.prod([np.diff(np.unique(np.round(c, 9))).mean() for c in (block.x, block.y, block.z)])
    given, gamma = case.parameters, case.gas.gamma
    cold = (gamma - 1) * given["energy"] / (2 * given["half_width"]) ** 3 / given["ratio"]
    energy = ((p - cold) * cell).sum() / (gamma - 1)
    assert energy == pytest.approx(given["energy"] * (1 - 1 / given["ratio"]), rel=1e-7)


def test_sedovs_energy_is_not_shared_out_on_a_stretched_grid():
    case = load("sedov", None, ('grid.stretch={x={cluster="centre",ratio=3.0}}',))
    (block,) = build(case.grid, case.directory).blocks
    with pytest.raises(HiresxError, match="one spacing"):
        case.evaluate(case.initial.function, block.x, block.y, block.z)


@pytest.mark.parametrize("angle", [0.0, 90.0, -30.0])
def test_a_vorticity_wave_has_an_angle_with_the_shock(angle, capfd):
    assert cli.execute(["check", "shock-vorticity", "--set", f"parameters.angle={angle}"]) == 2
    said = capfd.readouterr().err
    assert f"parameters.angle = {angle:g}" in said and "between 0 and 90" in said
