"""The implicit integrator: blocks against differences, sweeps of any cut and backend, steady flow to round-off."""

import json
import re
from dataclasses import replace
from functools import cache
from shutil import copytree, ignore_patterns

import numpy as np
import pytest
from implicit_blocks import blocks_of
from kernels_alone import GAMMA, PRANDTL, SUTHERLAND, conservative, primitive, random
from ranks import run_ranks
from sweep_blocks import diagonal_blocks, neighbour_blocks
from wholes import whole

from hiresx import Case, Simulation, kernels, load
from hiresx.cli import execute
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import Configuration, backend
from hiresx.device.cpu import CpuBackend
from hiresx.equations.storage import BLOCK_BITS
from hiresx.errors import HiresxError
from hiresx.estimate.resources import _vectors
from hiresx.grid import build
from hiresx.output.watch import history
from hiresx.rhs import closed, frozen
from hiresx.solver import Solver
from hiresx.solver.coloured_arrays import of_lines
from hiresx.solver.implicit_operators import connect
from hiresx.time.integrators import integrator
from hiresx.verify.turned_blocks import difference

FLUXES = kernels.choices("flux")
FACES = 40
# Every flux beside the others, of duals and of reals, and the flux through a face with its viscous part.
PROBE = """
#include "gas.h"
#include "hllc_states.h"
#include "flux_splitting.h"
#include "lax_friedrichs.h"
%(fluxes)s
#define HX_NEIGHBOUR_BITS 32
#define HX_NEIGHBOUR_WORDS 13
#define HX_UPDATE_REALS 5
#define HX_SWEEP_BITS 64
#define HX_BLOCK_REALS 103
#define HX_STORED_DIRECTIONS 3
#include "implicit/blocks.h"
template <class T> HD void probed(int which, const T *l, const T *r, const T *area, const real *m, T *f) {
    %(calls)s
    if (which == %(count)d) face_flux(l, r, m, real(0.7), real(0.3), real(0), f);
}
KERNEL(probe, int i, int j, int k, int which, int side, const real *left, const real *right, const real *m, real *f,
       real *slope) {
    dual<5> l[5], r[5], area[3], found[5];
    real a[5], b[5], c[3], plain[5];
    for (int v = 0; v < 5; ++v) a[v] = left[5 * i + v], b[v] = right[5 * i + v], l[v] = a[v], r[v] = b[v];
    for (int v = 0; v < 5; ++v) (side ? r : l)[v].slope[v] = real(1);
    for (int d = 0; d < 3; ++d) c[d] = m[3 * i + d], area[d] = c[d];
    probed(which, l, r, area, c, found);
    probed(which, a, b, c, c, plain);
    for (int v = 0; v < 5; ++v) {
        f[5 * i + v] = plain[v];
        for (int w = 0; w < 5; ++w) slope[25 * i + 5 * v + w] = found[v].slope[w];
    }
}
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    root = tmp_path_factory.mktemp("probe") / "kernels"
    copytree(kernels.ROOT, root, ignore=ignore_patterns("__pycache__"))
    for header in (root / "boundary").iterdir():
        header.unlink()
    others = [name for name in FLUXES if name != "roe"]
    fluxes = "\n".join(f'namespace of_{name} {{\n#include "flux/{name}.h"\n}}' for name in others)
    calls = "\n".join(
        f"if (which == {n}) {'' if name == 'roe' else f'of_{name}::'}numerical_flux(l, r, area, f);"
        for n, name in enumerate(FLUXES)
    )
    (root / "solver.h").write_text(PROBE % {"fluxes": fluxes, "calls": calls, "count": len(FLUXES)})
    law = {"viscosity": "sutherland", "viscosity_parameters": (("sutherland_temperature", SUTHERLAND),)}
    chosen = Configuration(gamma=GAMMA, prandtl=PRANDTL, flux="roe", positivity="none", **law)
    return CpuBackend(root).compile(chosen)


@pytest.mark.slow  # the compilation of all fluxes at once
@pytest.mark.parametrize("which", range(len(FLUXES) + 1), ids=[*FLUXES, "viscous"])
def test_duals_are_the_derivatives(probe, which):
    """Of every flux by both states, and of the thin-layer viscous flux, against central differences."""
    rng = random(which)
    left, right = (np.ascontiguousarray(conservative(primitive(rng, FACES)).T) for _ in range(2))
    m = rng.uniform(-1.0, 1.0, (FACES, 3))

    def flux(side: int, l, r) -> tuple[np.ndarray, np.ndarray]:
        f, slope = np.zeros((FACES, 5)), np.zeros((FACES, 5, 5))
        probe.launch("probe", (FACES, 1, 1), which=which, side=side, left=l, right=r, m=m, f=f, slope=slope)
        return f, slope

    step = 1e-6
    for side in (0, 1):
        _, slope = flux(side, left, right)
        for w in range(5):
            ends = []
            for sign in (1.0, -1.0):
                states = [left.copy(), right.copy()]
                states[side][:, w] += sign * step
                ends.append(flux(side, *states)[0])
            difference = (ends[0] - ends[1]) / (2 * step)
            scale = np.maximum(np.abs(slope).max(axis=(1, 2)), 0.1)[:, None]  # what does not leave is 0
            off = np.abs(slope[:, :, w] - difference) / scale
            assert off.max() < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("which", range(len(FLUXES)), ids=FLUXES)
def test_duals_are_finite_in_uniform_flow_and_in_flow_along_a_line(probe, which):
    """Where both states are the same, and where their velocities differ along the normal alone."""
    rho, p = random(which).uniform(0.5, 2.0, (2, 2, FACES))
    along = random(which).uniform(-1.0, 1.0, (2, 3, FACES)) * np.array([1.0, 0.0, 0.0])[:, None]
    left, right = (np.ascontiguousarray(conservative(np.stack([rho[s], *along[s], p[s]])).T) for s in (0, 1))
    for other in (left, right):
        f, slope, m = np.zeros((FACES, 5)), np.zeros((FACES, 5, 5)), np.tile([0.7, 0.0, 0.0], (FACES, 1))
        probe.launch("probe", (FACES, 1, 1), which=which, side=0, left=left, right=other, m=m, f=f, slope=slope)
        assert np.isfinite(slope).all() and np.abs(slope).max() < 100


BUMP = [
    'time.integrator="implicit"', "time.cfl=2.0", "grid.cells=[4, 8, 4]", "grid.n_normal=13", "time.steps=60",
    "grid.first_spacing=0.1", "monitor.every=10",
]  # fmt: skip


@cache
def bump(*overrides: str):
    return load("bump", preset="subsonic", overrides=[*BUMP, *overrides])


def solver_of(case, where: str, ranks: int, comm=None) -> Solver:
    """In one process, or of the processes of `comm`, cut for so many ranks."""
    if ranks == 1:
        return Solver(case, backend(where))
    parts = (lambda cut: partition(cut, ranks)) if comm else lambda cut: [
        replace(part, rank=0) for part in partition(cut, ranks)
    ]  # fmt: skip
    return Solver(case, backend(where), domain=domain(case, comm, parts=parts) if comm else domain(case, parts=parts))


def swept(solver: Solver) -> np.ndarray:
    """What two sweeps from 0 make of a right-hand side that follows from places, about a flow that is not uniform."""
    solver.initialize(
        lambda x, y, z: (1 + 0.1 * np.sin(x), 0.5 + 0.1 * y, 0.05 * np.cos(x), 0.0, (1 + 0.1 * x * y) / 1.4)
    )
    system, linear = solver.system, solver.integrator._linear
    x, right, found = (system.vector() for _ in range(3))
    system.state(x)
    linear.begin()
    linear.assemble(x, 0.01)
    linear.change(x, right)
    linear.precondition(right, found)
    return system.gather(found)


def off_on_ranks(comm, case) -> float:
    solver = solver_of(case, "cpu", comm.size, comm)
    found = swept(solver)
    solver.halo.close()
    return float(np.abs(found - swept(Solver(case, backend("cpu")))).max())


@pytest.mark.parametrize(("lines", "storage"), [("none", "fp32"), ("j", "fp32"), ("none", "none")])
def test_sweeps_do_not_depend_on_the_cut(lines, storage):
    """Lines do not where none is cut."""
    case = bump("implicit.sweeps=2", "grid.cells=[5, 8, 5]", f"implicit.lines={lines}", f"implicit.storage={storage}")
    wanted = swept(solver_of(case, "cpu", 1))
    solver = solver_of(case, "cpu", 2)
    assert sum(solver.states[1].first) % 2  # its own first node has the other colour
    found = swept(solver)
    assert np.abs(wanted).max() > 1e-2
    assert np.abs(found - wanted).max() < 1e-12 * np.abs(wanted).max()


def test_blocks_and_sweeps_do_not_depend_on_the_backend():
    """Sweeps with the same blocks do not. Blocks at conditions are differences over 1e-7 of a variable, so that another
    order of operations changes them by the round-off over this."""
    case = bump("implicit.sweeps=2", "grid.cells=[5, 8, 5]")
    solvers = [solver_of(case, where, 1) for where in ("cpu", "emulated")]
    wanted = blocks_of(solvers[0])
    found = blocks_of(solvers[1], wanted)
    one, other = (swept(solver) for solver in solvers)
    assert np.abs(one).max() > 1e-2
    assert np.abs(other - one).max() < 1e-12 * np.abs(one).max()
    assert np.abs(found[0] - wanted[0]).max() < np.finfo(float).eps / 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("storage", [*BLOCK_BITS, "none"])
def test_sweeps_do_not_depend_on_the_ranks(storage):
    case = bump("implicit.sweeps=2", "implicit.lines=none", f"implicit.storage={storage}")
    assert max(run_ranks(2, off_on_ranks, case)) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["fp16", "int8", "none"])
def test_every_storage_finds_the_same_steady_flow(storage):
    """In as many steps."""
    lines = ["implicit.lines=none"] if storage == "none" else []
    cases = (bump("implicit.drop=1e14", f"implicit.storage={s}", *lines) for s in ("fp32", storage))
    wanted, found = (Simulation(case, "cpu") for case in cases)
    for simulation in (wanted, found):
        simulation.run(progress=False)
        assert simulation.solver.integrator.converged
    assert abs(found.step_count - wanted.step_count) <= 1
    assert 0.0 < difference(whole(found.solver), whole(wanted.solver)) < 1e-10


@pytest.mark.slow
def test_either_residual_of_gmres_finds_the_same_steady_flow():
    """That of the preconditioned equations takes half of the vectors."""
    found = []
    for residual in ("plain", "preconditioned"):
        case = bump("implicit.drop=1e14", f"implicit.krylov_residual={residual}")
        simulation = Simulation(case, "cpu")
        simulation.run(progress=False)
        assert simulation.solver.integrator.converged
        found.append((whole(simulation.solver), _vectors(case)))
    (plain, of_plain), (other, of_other) = found
    assert 0.0 < difference(other, plain) < 1e-10
    assert of_plain - of_other == load("bump").implicit.krylov


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["fp16", "int8"])
def test_stored_blocks_are_the_same_in_any_unit_of_length(storage):
    """To the last bit, before they are factored, on a grid that is 2^20 times as large; but not at the outflow, whose
    relaxation is over a length."""
    case, kept = bump(f"implicit.storage={storage}"), []
    whole_grid = build(case.grid, case.directory)
    for scale in (1.0, 2.0**20):
        blocks = [replace(block, x=block.x * scale, y=block.y * scale) for block in whole_grid.blocks]
        solver = Solver(case, backend("cpu"), grid=replace(whole_grid, blocks=blocks))
        solver.initialize(lambda x, y, z, s=scale: (1 + 0.1 * np.sin(x / s), 0.5, 0.1 * np.cos(y / s), 0.0, 1 / 1.4))
        found = blocks_of(solver)
        x = solver.system.vector()
        solver.system.state(x)
        solver.integrator.linearised.begin()
        solver.integrator.linearised.assemble(x, 0.01)
        (state,) = solver.states
        of_nodes = diagonal_blocks(found[0], 5), neighbour_blocks(found[0], storage, 5)
        kept.append([state.interior(array)[..., :-1] for array in of_nodes])
    for one, other in zip(*kept, strict=True):
        assert np.abs(one).max() > 0.1
        np.testing.assert_array_equal(one, other)


def test_steady_flow_to_round_off_and_on_from_a_checkpoint(tmp_path, capsys):
    """Ten orders in few steps, the same numbers from a checkpoint on, and what the run says of itself."""
    through = Simulation(bump(), "cpu", out=tmp_path / "through")
    found = through.run(progress=False)
    report = found["implicit"]
    assert found["status"] == "finished" and through.step_count < 25 and report["drop"] > 1e10
    explicit = Solver(bump("time.integrator=ssp_rk3", "time.local=true", "time.cfl=0.5"), backend("cpu"))
    explicit.set_state(0, *(through.blocks[0].state(name) for name in ("rho", "u", "v", "w", "p")))
    explicit.complete_state()
    before = whole(explicit)
    explicit.step()
    # walls take the energy of what they stop in a step, which goes with the square of its length
    assert difference(whole(explicit), before) < 1e-6
    stored = json.loads((tmp_path / "through" / "run.json").read_text())["implicit"]
    assert stored["largest"]["block"] == "channel" and stored["products"] <= 40
    Simulation(bump("time.steps=5"), "cpu", out=tmp_path / "parts").run(progress=False)
    rest = Simulation(bump(), "cpu", out=tmp_path / "parts", restart=tmp_path / "parts")
    assert rest.run(progress=False)["implicit"] == report
    np.testing.assert_array_equal(rest.blocks[0].state("p"), through.blocks[0].state("p"))
    done = Simulation(bump(), "cpu", out=tmp_path / "parts", restart=tmp_path / "parts").run(progress=False)
    assert done["steps"] == rest.step_count and done["implicit"]["drop"] == report["drop"]
    ended = ["run", "--restart", str(tmp_path / "through"), "--backend", "cpu"]
    for more, said in (([], "past implicit.drop = 1e+10: nothing was done"), (["--set", "implicit.drop=1e30"], "")):
        capsys.readouterr()
        assert execute([*ended, *more]) == 0 and said in capsys.readouterr().err
    capsys.readouterr()
    assert execute(ended) == 0 and "round-off: nothing was done" in capsys.readouterr().err
    assert execute(["history", str(tmp_path / "through"), "implicit"]) == 0
    assert "not finite" not in capsys.readouterr().out


@pytest.mark.parametrize("scheme", ["implicit", "bdf2"])
def test_run_json_has_the_seconds_of_the_parts(scheme):
    unsteady = [] if scheme == "implicit" else [f"time.integrator={scheme}", "time.cfl=20.0", "time.end=9.0"]
    found = Simulation(bump(*unsteady), "cpu").run(steps=4, progress=False)
    stages = found["stages"]
    assert {"sweeps", "blocks", "vectors", "inviscid", "boundary", "exchange", "time step"} <= set(stages)
    assert all(seconds > 0.0 for seconds in stages.values())
    assert 0.5 * found["wall_s"] < sum(stages.values()) < found["wall_s"]
    assert found["ns_per_point_rhs"] is None  # how many right-hand sides there were is not counted


def test_blocks_are_good_enough_for_few_products():
    """Of the viscous flow around a cylinder at CFL numbers at which it matters."""
    uniform = {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}
    grid = {"generator": "cylinder-o", "radius": 0.5, "outer_radius": 10.0, "n_around": 32, "n_normal": 21,
            "first_spacing": 0.05}  # fmt: skip
    case = Case.from_dict(
        {
            "gas": {"reynolds": 100.0}, "grid": grid, "scheme": {"flux": "hllc"}, "initial": {"state": uniform},
            "time": {"integrator": "implicit", "steps": 8},
            "boundary": [{"faces": ["jmin"], "type": "no-slip-wall"},
                         {"faces": ["jmax"], "type": "far-field", "state": uniform}],
        }
    )  # fmt: skip
    solver, reports = Solver(case, backend("cpu")), []
    solver.initialize()
    for _ in range(case.time.steps):
        solver.step()
        reports.append(solver.integrator.report)
        assert reports[-1]["linear_drop"] < 0.01
    for before, last, after in zip(reports, reports[1:], reports[2:], strict=False):
        grown = min(2.0, 1.2 * before["residual"] / last["residual"])  # after an update that was taken whole
        assert last["share"] == 1.0 and after["cfl"] == pytest.approx(grown * last["cfl"])
    assert solver.integrator.report["cfl"] > 200 and sum(r["products"] for r in reports) <= 100


@pytest.mark.parametrize("steps", [None, 2])
def test_a_run_that_ends_early_says_where_it_hangs(capsys, steps):
    Simulation(bump(f"time.steps={2 if steps is None else 99}"), "cpu").run(steps=steps)
    said = " ".join(capsys.readouterr().err.split())
    assert "the residual fell by" in said and "of block 'channel'" in said and "implicit.drop = 1e+10" in said


@pytest.mark.parametrize(
    ("drop", "wanted"),
    [("1e3", r"the residual fell by \S+ \(implicit\.drop = 1000\) in \d+ steps: the flow is steady"),
     ("1e30", r"the residual is \S+, which is round-off, after \d+ steps: the flow is steady")],
)  # fmt: skip
def test_a_run_that_converges_says_so(capsys, drop, wanted):
    Simulation(bump(f"implicit.drop={drop}"), "cpu").run()
    said = capsys.readouterr().err.splitlines()
    assert re.fullmatch(wanted, said[-1]) and said[-2].startswith("step ") and "largest in" not in "".join(said)


def test_a_singular_block_is_named():
    solver = solver_of(bump(), "cpu", 1)
    swept(solver)
    (state,) = solver.states
    factors, (direction, *_) = state.array("line_factors"), solver.integrator._linear._sweeps.lines[0]
    places = of_lines(np.arange(factors[0].size).reshape(1, *state.shape), state.size, direction)
    factors[3].reshape(-1)[places[0, 0, 4, 2]] = np.nan
    with pytest.raises(HiresxError, match=r"node \(i, j, k\) = \(2, 4, 0\) of block 'channel' are singular"):
        solver.integrator._linear.check_blocks()


def test_other_integrators_get_nothing():
    connect(None, integrator("ssp_rk3"), None, None, None, None, None)


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (["time.dt=0.01"], "time.dt is not for time.integrator"),
        (["time.end=1.0"], "time.end is not for time.integrator"),
        (["time.retries=1"], "time.retries"),
        (["time.steps=0"], "time.steps = 0: must be greater"),
        (["time.local=false"], "time.local = false is not for"),
        (["time.cfl=2e5"], r"time.cfl = 200000 is above implicit.largest_cfl = 10000"),
        (["average.every=1"], "average is not for"),
        (['turbulence.model="smagorinsky"'], 'turbulence.model = "smagorinsky" .* large eddies are not steady'),
        (['scheme.precision="fp32"'], "scheme.precision"),
        (['scheme.inviscid="regularised"'], "scheme.inviscid"),
        (["filter.order=8"], "filter"),
        (['scalar=[{name="dye", schmidt=1.0, initial="1"}]'], "scalar"),
        (['time.integrator="ssp_rk3"', "implicit.krylov=9"], "implicit: says how"),
        (["implicit.viscous_damping=0.25"], r"implicit\.viscous_damping has no effect without gas\.reynolds"),
        (['time.integrator="bdf2"', 'implicit.krylov_residual="preconditioned"'], "krylov_residual"),
        (["implicit.damping_at_walls=true"], r"damping_at_walls has no effect without implicit\.viscous_damping"),
        (['time.integrator="ssp_rk3"', "gas.reynolds=100.0", "implicit.viscous_damping=0.1"], "implicit: says how"),
    ],
)
def test_what_does_not_go_with_it_is_refused(overrides, named):
    with pytest.raises(HiresxError, match=named):
        load("bump", overrides=['time.integrator="implicit"', *overrides])


def test_an_integrator_on_top_drops_the_time_below_it_alone():
    assert load("couette").time.end is not None
    time = load("couette", overrides=["time.integrator=implicit"]).time
    assert time.end is None and time.local and time.steps == 500
    with pytest.raises(HiresxError, match=r"time\.end is not for"):
        load("couette", overrides=["time.end=1.0", "time.integrator=implicit"])


BLOWN = {"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.0, "normal_velocity": "0.1*sin(t)"}
STRESSES = {"stresses": {"xx": 0.1, "yy": 0.1, "zz": 0.1}, "length": 0.1, "velocity": [1, 0, 0]}
TURBULENT = {"faces": ["imin"], "type": "profile-inflow", "function": "f", "turbulence": STRESSES}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"boundary": [BLOWN]}, r"boundary.0.normal_velocity = .*: with time.local there is no common time"),
        ({"boundary": [TURBULENT]}, r"boundary.0.turbulence: with time.local there is no common time"),
        (
            {"boundary": [{"faces": ["imin"], "type": "profile-inflow", "function": "f", "steady": False}]},
            r"boundary.0.steady = false: with time.local there is no common time",
        ),
        ({"source": {"rho_u": "0.1 * t"}}, r"source.rho_u = .*: with time.local there is no common time"),
    ],
)
def test_what_depends_on_the_time_does_not_go_with_local_steps(changed, named):
    given = {
        "grid": {"generator": "box", "n": [16, 9, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0]},
        "initial": {"state": {"rho": 1.0, "p": 1.0}},
        **changed,
    }
    for time in ({"integrator": "implicit"}, {"local": True, "steps": 1}):
        with pytest.raises(HiresxError, match=named):
            Case.from_dict({**given, "time": time})
    Case.from_dict({**given, "time": {"steps": 1}})


def test_a_frozen_function_gets_no_advice_that_local_steps_refuse():
    spec = {
        "grid": {"generator": "box", "n": [16, 9, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0]},
        "initial": {"state": {"rho": 1.0, "p": 1.0}},
        "boundary": [{"faces": ["imin"], "type": "profile-inflow", "function": "f"},
                     {"faces": "all", "type": "supersonic-outflow"}],
    }  # fmt: skip
    profiles = {"f": lambda x, y, z, t: (1.0, 1.5 + np.sin(t), 0.0, 0.0, 1.0)}
    said = {}
    for local in (False, True):
        case = Case.from_dict({**spec, "time": {"steps": 1, "local": local}})
        (said[local],) = frozen.notes(case, domain(case).whole, profiles)
    assert "steady = false lets it change" in said[False]
    assert "steady = false" not in said[True] and "local steps have no common time" in said[True]


def test_a_restart_takes_the_cfl_and_the_keys_it_is_given(tmp_path):
    """And keeps the CFL number that was reached where they are as they were."""
    Simulation(bump("time.steps=3"), "cpu", out=tmp_path).run(progress=False)
    found = {}
    for cfl in (2.0, 0.5):
        case = bump("time.steps=4", f"time.cfl={cfl}", "implicit.krylov=20", "implicit.largest_cfl=5.0")
        again = Simulation(case, "cpu", out=tmp_path / f"{cfl}", restart=tmp_path)
        found[cfl] = again.run(progress=False)["implicit"]["cfl"]
    assert found == {2.0: 5.0, 0.5: 0.5}


def test_monitors_have_the_flow_at_the_end(tmp_path):
    """Of which a run that goes on has no row."""
    more = ('force=[{name="wall", faces=["jmin"], every=100}]', "monitor.every=100")
    first = Simulation(bump("time.steps=3", *more), "cpu", out=tmp_path)
    first.run(progress=False)
    rows = history.read(history.histories(tmp_path)["wall"])
    assert list(rows.data["step"]) == [0, 3]
    rest = Simulation(bump(*more), "cpu", out=tmp_path, restart=tmp_path)
    rest.run(progress=False)
    rows = history.read(history.histories(tmp_path)["wall"])
    assert rest.solver.integrator.converged and list(rows.data["step"]) == [0, rest.step_count]


def test_a_start_that_is_steady_is_converged(capsys):
    found = Simulation(load("free-stream", overrides=["time.integrator=implicit"]), "cpu").run()
    assert found["steps"] == 1 and found["implicit"]["residual"] < 1e-11
    assert "the residual fell by" not in capsys.readouterr().err


def test_a_cfl_number_that_collapses_ends_the_run(monkeypatch):
    """With the place at which the residual is largest."""
    solver = solver_of(bump(), "cpu", 1)
    solver.initialize()
    tried = []
    monkeypatch.setattr(solver.integrator, "_newton", lambda system, cfl, before: tried.append(cfl))
    with pytest.raises(HiresxError, match=r"CFL number fell to .* in the equation of .* of block 'channel'") as raised:
        solver.step()
    assert "take more implicit.krylov; there" in raised.value.hint
    assert raised.value.everywhere and tried[0] == 2.0 and min(tried) >= 2e-3 and len(tried) < 9


def test_mass_that_nothing_determines_is_told():
    def said(name: str, *overrides: str) -> list[str]:
        case = load(name, overrides=["time.integrator=implicit", *overrides])
        return list(closed.notes(case, domain(case).whole))

    assert "do not determine the mass" in said("couette")[0]
    assert said("bump") == said("couette", "time.integrator=ssp_rk3", "time.end=1.0") == []
