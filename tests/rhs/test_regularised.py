"""Flows by the regularised inviscid terms, and the entropic pressure of which they are made."""

from itertools import product

import numpy as np
import pytest
from arrangements import shaken
from same_everywhere import same_everywhere
from wholes import started, whole

from hiresx import BlowUp, Case, HiresxError, Simulation, load
from hiresx.estimate import estimate
from hiresx.estimate.resources import layout

REGULARISED = 'scheme.inviscid="regularised"'
STATE = {"rho": 1.0, "u": 0.5, "v": 0.2, "w": 0.1, "p": 1 / 1.4}


def box(n, alpha=1.0, sweeps=1, grid=None, periodic="xyz", **tables) -> Case:
    upper = [float(m > 1) for m in n]
    grid = {"generator": "box", "n": n, "lower": [0, 0, 0], "upper": upper, "periodic": [*periodic]} | (grid or {})
    scheme = {"inviscid": "regularised", "regularised": {"alpha": alpha, "sweeps": sweeps}}
    given = {"grid": grid, "time": {"steps": 20, "cfl": 0.5}, "scheme": scheme, "initial": {"state": STATE}}
    faces = [{"faces": "all", "type": "periodic" if periodic else "far-field"} | ({} if periodic else {"state": STATE})]
    return Case.from_dict(given | {"boundary": faces} | tables)


def field(run: Simulation, name: str) -> np.ndarray:
    (state,) = run.solver.states
    return state.interior(run.backend.to_host(state.array(name)))[0]


def conserved_sums(run: Simulation) -> np.ndarray:
    """Of all conserved variables times the volumes of nodes."""
    (state,) = run.solver.states
    volume = 1 / run.solver.field(0, "jacobian")
    return (state.interior(run.backend.to_host(state.q)) * volume).reshape(5, -1).sum(1)


def test_right_hand_side_of_the_elliptic_equation():
    """A linear velocity in cells of width h_a: with D_ab = A_ab h_b, alpha rho (tr(D^2) + (tr D)^2) at inner nodes;
    none of a shear."""
    n, rho = (9, 8, 7), 1.3
    width = 1 / (np.array(n) - 1)

    def source(gradient):
        def flow(x, y, z):
            return rho, *(a[0] * x + a[1] * y + a[2] * z for a in gradient), 0.7

        run = started(box(n, 2.0, periodic=""), flow)
        return field(run, "entropic_source")[2:-2, 2:-2, 2:-2]

    gradient = np.array([[0.3, -0.2, 0.5], [0.7, -0.6, 0.2], [0.1, 0.4, 0.2]])
    d = gradient * width
    np.testing.assert_allclose(source(gradient), 2 * rho * (np.trace(d @ d) + np.trace(d) ** 2), rtol=1e-12)
    assert np.abs(source(np.triu(gradient, 1))).max() < 1e-15


def test_sweeps_end_at_the_solution():
    """Of the equation on a line, by a full matrix; one sweep is not enough."""
    n, alpha = 24, 3.0

    def flow(x, y, z):
        return 1 + 0.4 * np.sin(2 * np.pi * x), 0.3 * np.cos(2 * np.pi * x), 0, 0, 0.7

    run = started(box((n, 1, 1), alpha, 100, periodic="x"), flow)
    x = run.blocks[0].x.ravel()
    rho, u, *_ = flow(x, 0, 0)
    difference = (np.roll(u, -1) - np.roll(u, 1)) / 2
    half = 2 / (rho + np.roll(rho, -1))
    matrix = np.diag(1 / rho + alpha * (half + np.roll(half, 1)))
    for i in range(n):
        matrix[i, (i + 1) % n] = matrix[(i + 1) % n, i] = -alpha * half[i]
    wanted = np.linalg.solve(matrix, 2 * alpha * difference**2)
    for _ in range(3):
        run.solver.right_hand_side()
    np.testing.assert_allclose(field(run, "entropic_pressure").ravel(), wanted, rtol=1e-10)
    once = field(started(box((n, 1, 1), alpha, 1, periodic="x"), flow), "entropic_pressure").ravel()
    assert np.abs(once / wanted - 1).max() > 0.1


@pytest.mark.parametrize("stretched", [False, True])
def test_uniform_flow_stays(stretched):
    """On a grid that is nowhere uniform, and in cells of which some are a thousand times as wide as others."""
    across = {"cluster": "lower", "ratio": 2000.0}
    case = box((12, 11, 9), periodic="", grid={"stretch": {"x": across, "y": across}} if stretched else None)
    run = Simulation(case, "cpu", **({} if stretched else {"grid": shaken((12, 11, 9))}))
    widths = np.diff(run.blocks[0].x[0, 0])
    assert not stretched or widths.max() / widths.min() > 999
    run.run(progress=False)
    assert max(np.abs(run.blocks[0].state(name) - value).max() for name, value in STATE.items()) < 1e-12
    assert np.abs(field(run, "entropic_pressure")).max() < 1e-20


def rough(x, y, z):
    waves = np.sin(2 * np.pi * (x + 2 * y)) * np.cos(2 * np.pi * z)
    behind = np.where(np.abs(np.mod(x + y, 1) - 0.5) < 0.2, 2.0, 1.0)
    return behind, 0.5 * np.sin(2 * np.pi * y), 0.3 * waves, 0.2 * waves, behind**2 / 1.4


def test_sums_stay():
    """Of all conserved variables, through shocks, in a periodic box with bent cells."""
    case = box((16, 12, 10), grid={"generator": "wavy", "amplitude": [0.03, 0.03, 0.03]})
    run = Simulation(case, "cpu", initial=rough)
    before = conserved_sums(run)
    run.run(progress=False)
    assert np.abs(field(run, "entropic_pressure")).max() > 0.05
    assert np.abs(conserved_sums(run) - before).max() < 1e-14 * np.abs(before).max()


def shock_widths(ratio: float) -> list[float]:
    """The widths in cells, by the steepest slope of the pressure, of a shock of Mach 3 on its way through cells that
    grow by `ratio`."""
    n, mach, p = 160, 3.0, 1 / 1.4
    rise = 1 + 2 * 1.4 / 2.4 * (mach**2 - 1)
    after = {"rho": 2.4 * mach**2 / (0.4 * mach**2 + 2), "u": 2 / 2.4 * (mach - 1 / mach), "p": rise * p}
    ends = [
        {"faces": ["imin"], "type": "supersonic-inflow", "state": after},
        {"faces": ["imax"], "type": "supersonic-outflow"},
    ]
    grid = {"stretch": {"x": {"cluster": "lower", "ratio": ratio}}}
    case = box((n, 1, 1), periodic="", grid=grid, boundary=ends, time={"steps": 600, "cfl": 0.4})

    def start(x, y, z):
        behind = x < 0.05
        rho, u, pressure = (np.where(behind, after[k], other) for k, other in (("rho", 1.0), ("u", 0.0), ("p", p)))
        return rho, u, 0, 0, pressure

    run = Simulation(case, "cpu", initial=start)
    widths = []
    for _ in range(60):
        run.run(steps=10, progress=False)
        slopes = np.abs(np.diff(run.blocks[0].state("p").ravel()))
        if 0.5 * n < slopes.argmax() < 0.9 * n:
            widths.append((rise - 1) * p / slopes.max())
    return widths


def test_shocks_are_as_many_cells_wide_on_any_grid():
    """Within a tenth, in the second half of a line along which cells grow fivefold."""
    uniform, stretched = (np.mean(shock_widths(ratio)) for ratio in (1.0, 5.0))
    assert 2 < uniform < 5 and abs(stretched / uniform - 1) < 0.1


def test_second_order_where_sound_steepens():
    """Of the linear fluxes the order is five; the entropic pressure, alpha cells squared, makes it two."""
    found = {}
    for n, scheme in ((64, {}), (128, {}), (256, {"scheme": {"inviscid": "afweno"}})):
        run = Simulation(
            box((n, 1, 1), periodic="x", time={"end": 0.15, "cfl": 0.3}, **scheme), "cpu", initial=simple_wave
        )
        run.run(progress=False)
        found[n] = run.blocks[0].state("rho").ravel()
    errors = [np.abs(found[n] - found[256][:: 256 // n]).mean() for n in (64, 128)]
    assert 1.9 < np.log2(errors[0] / errors[1]) < 2.1


def simple_wave(x, y, z):
    u = 0.1 * np.sin(2 * np.pi * x)
    rho = (1 + 0.2 * u) ** 5
    return rho, u, 0, 0, rho**1.4 / 1.4


def test_shock_tubes():
    """How much the density goes up and down: in Sod's tube more than with AFWENO5, within a limit; in the problem of
    Shu and Osher more of the waves are left."""
    rise = {}
    for case, scheme in product(("sod", "shu-osher"), ("afweno", "regularised")):
        run = Simulation(load(case, overrides=[f'scheme.inviscid="{scheme}"']), "cpu")
        run.run(progress=False)
        rise[case, scheme] = np.abs(np.diff(run.blocks[0].state("rho").ravel())).sum()
    assert rise["sod", "afweno"] < rise["sod", "regularised"] < 1.35
    assert 1.3 * rise["shu-osher", "afweno"] < rise["shu-osher", "regularised"] < 16


def test_beside_a_plane_of_symmetry_is_half_of_a_symmetric_flow():
    """To round-off, the slope of the entropic pressure is 0 there; a blast runs into the plane."""

    def ended(n, lower):
        sides = [{"faces": ["imax"], "type": "far-field", "state": STATE | {"u": 0.0, "v": 0.0, "w": 0.0}}]
        sides.append({"faces": ["imin"], "type": "symmetry"} if lower == 0 else sides[0] | {"faces": ["imin"]})
        grid = {"lower": [lower, 0, 0]}
        run = Simulation(
            box((n, 1, 1), grid=grid, periodic="", boundary=sides), "cpu",
            initial=lambda x, y, z: (1, 0, 0, 0, 1 + 4 * np.exp(-100 * (np.abs(x) - 0.3) ** 2)),
        )  # fmt: skip
        run.run(progress=False)
        assert field(run, "entropic_pressure").max() > 1e-4
        return run.blocks[0].state("p").ravel()

    np.testing.assert_allclose(ended(41, 0.0), ended(81, -1.0)[40:], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_strong_shocks_live():
    """Where a flow starts with jumps that linear interpolation does not survive, the limiter helps."""

    def ended(case, *keys):
        Simulation(load(case, overrides=[REGULARISED, "time.steps=40", *keys]), "cpu").run(progress=False)

    ended("sedov")
    ended("riemann-2d", "grid.n=[40,40,1]")
    with pytest.raises(BlowUp):
        ended("riemann-2d", "grid.n=[40,40,1]", 'scheme.positivity="none"')


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (['inviscid="regularised"', 'weights="z"'], "scheme.weights has no effect with .* whose fluxes are linear"),
        (['inviscid="regularised"', 'flux="hllc"'], "scheme.flux has no effect with"),
        (['inviscid="regularised"', 'positivity="fallback"'], "replaces interpolated states"),
        (
            ['inviscid="regularised"', "hybrid.floor=0.1"],
            'hybrid.floor has no effect without scheme.inviscid = "hybrid"',
        ),
        (
            ['inviscid="regularised"', "regularised.alpha=-1.0"],
            "scheme.regularised.alpha = -1.0: must be greater than 0",
        ),
        (["regularised.sweeps=3"], 'regularised.sweeps has no effect without scheme.inviscid = "regularised"'),
    ],
)
def test_keys_that_do_not_go_with_it_are_refused(keys, said):
    with pytest.raises(HiresxError, match=said):
        load("sod", overrides=[f"scheme.{key}" for key in keys])


def test_check_says_that_it_is_experimental():
    plan = estimate(load("sod", overrides=[REGULARISED]))
    assert plan["additions"] == ["regularised inviscid terms (experimental)"]


def test_its_fields_take_four_numbers_of_a_node():
    """The entropic pressure, that of the sweeps between, that at the start of the step, and the right-hand side."""
    more, without = (layout(load("sod", overrides=chosen), "fused").numbers_per_point for chosen in ([REGULARISED], []))
    assert more == without + 4


def test_what_does_not_know_the_entropic_pressure_is_refused():
    for more, said in (
        ('scalar=[{name="dye"}]', "does not carry passive scalars"),
        ("axisymmetric=true", "that of plane flow"),
    ):
        with pytest.raises(HiresxError, match=said):
            load("sod", overrides=[REGULARISED, more])


def channel(**tables) -> Case:
    """Viscous, between a wall and a plane of symmetry, in cells that grow."""
    sides = [
        {"faces": ["imin", "imax"], "type": "periodic"},
        {"faces": ["jmin"], "type": "no-slip-wall", "temperature": 1.1},
        {"faces": ["jmax"], "type": "symmetry"},
    ]
    grid = {"stretch": {"y": {"cluster": "lower", "ratio": 4.0}}}
    given = {"time": {"steps": 6, "cfl": 0.4}, "gas": {"reynolds": 200.0}, "boundary": sides}
    return box((18, 15, 1), sweeps=2, periodic="x", grid=grid, **(given | tables))


def bump(x, y, z):
    p = (1 + 3 * np.exp(-40 * ((np.mod(x - 0.05, 1) - 0.5) ** 2 + (y - 0.4) ** 2))) / 1.4
    return 1.4 * p, 0.2 * np.sin(2 * np.pi * x), 0.1 * np.sin(np.pi * y) ** 2, 0.0, p


def make(where="cpu", out=None, plan="auto", comm=None):
    ground = {} if comm is None else {"comm": comm}
    return Simulation(channel(plan=plan), where, initial=bump, out=out, **ground)


@pytest.mark.slow
def test_ranks_backends_plans_and_restart(tmp_path):
    """With the entropic pressure, from which the next sweeps start, in the checkpoint."""
    same_everywhere(make, tmp_path / "run", 3, plans=("decomposed", "compact"))


def tube(cfl: float) -> Simulation:
    case = load("sod", overrides=[REGULARISED, "grid.n=[60,1,1]", f"time.cfl={cfl}"])
    return Simulation(case, "cpu")


def test_a_step_that_is_taken_again_begins_from_the_same():
    """The first step with cfl 2 fails, and is taken again with half of it."""
    again, once = (tube(cfl) for cfl in (2.0, 1.0))
    again.step()
    once.step()
    assert again.solver.retaken == 1 and again.solver.dt == once.solver.dt
    assert np.array_equal(whole(again.solver)[0], whole(once.solver)[0])
    once.step()
    second = whole(once.solver)[0]
    once.solver.rewind()
    once.step()
    assert np.array_equal(whole(once.solver)[0], second)


def test_a_state_that_is_set_knows_nothing_of_the_one_before():
    run = tube(0.5)
    start = {name: run.blocks[0].state(name) for name in ("rho", "u", "v", "w", "p")}
    run.step()
    first = whole(run.solver)[0]
    run.step()
    run.blocks[0].set_state(**start)
    run.step()
    assert np.array_equal(whole(run.solver)[0], first)
