"""A grid that is cut anew in mid-run: the flow, and all that hangs on the run, goes on as if it had not been."""

import itertools
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from checkpoint_pieces import cut
from netCDF4 import Dataset
from ranks import ENVIRONMENT, launcher, run_ranks
from thread_ranks import run_threads

from hiresx import Case, HiresxError, Simulation, load
from hiresx.decomposition import Decomposition, Part, domain
from hiresx.decomposition.held_arrays import LazyArray, Piece
from hiresx.grid.blocks import slices
from hiresx.mpi.communicator import Communicator
from hiresx.output.show.progress import Progress
from hiresx.output.watch import history
from hiresx.output.watch.monitors import probe
from hiresx.output.watch.monitors import surface as surface_monitor
from hiresx.simulation import rebalance, redistribution
from hiresx.simulation.blow_up_error import BlowUp
from hiresx.simulation.rebalance import Rebalancing
from hiresx.simulation.redistribution import redistribute
from hiresx.solver.terms import Terms

# Relative to the largest value: a cut changes the order of sums, and which nodes take which rounding.
SAME = 1e-13
P = 1 / 1.4
STEPS = 16


def case(**changes) -> Case:
    """Viscous flow between walls, all kinds of things watched, by filtered samples too."""
    tables = {
        "grid": {"generator": "wavy", "n": [33, 25, 1], "lower": [0.0] * 3, "upper": [2.0, 1.0, 0.0],
                 "periodic": [], "amplitude": [0.04, 0.04, 0.0]},
        "time": {"steps": STEPS, "cfl": 0.5},
        "gas": {"reynolds": 60.0},
        "initial": {"state": {"rho": 1.0, "p": P}},
        "monitor": {"every": 5},
        "boundary": [
            {"faces": ["imin"], "type": "slip-wall"},
            {"faces": ["imax"], "type": "characteristic-outflow", "pressure": P},
            {"faces": ["jmin", "jmax"], "type": "no-slip-wall", "temperature": 1.02},
        ],
        "probe": [
            {"name": "filtered", "x": 1.0, "y": 0.5, "every": 3},
            {"name": "row", "line": {"start": [0.1, 0.5, 0], "end": [1.9, 0.45, 0], "n": 5}, "every_time": 0.02},
        ],
        "surface": [{"name": "top", "nodes": [{"faces": ["jmax"]}], "every": 3}],
        "force": [{"name": "walls", "every": 4, "extrema": True, "distribution": {"every": 3}}],
        "extrema": {"every": 5},
        "average": {"every": 2},
        "output": {"every_steps": 7},
        "checkpoint": {"every_steps": 6, "keep": 9},
    }  # fmt: skip
    return Case.from_dict(tables | changes)


def flow(x, y, z):
    p = P * (1 + 0.1 * np.exp(-8 * ((x - 0.83) ** 2 + (y - 0.41) ** 2)))
    wave = np.sin(2.1 * x + 1.3 * y + 0.4)
    return (1.4 * p) ** P, 0.1 * wave, 0.07 * np.cos(1.7 * x - 0.6 * y), 0.0, p


def columns(*ends: int, ranks: int = 1):
    """Cuts the block at these i, and gives the parts to the ranks in turn."""

    def parts(decomposition) -> list[Part]:
        (block,) = decomposition.blocks
        ni, nj, nk = block.size
        places = [0, *ends, ni]
        pairs = itertools.pairwise(places)
        return [Part(0, ((a, b), (0, nj), (0, nk)), n % ranks) for n, (a, b) in enumerate(pairs)]

    return parts


def leaves(group, prefix: str = ""):
    for name, variable in group.variables.items():
        yield prefix + name, np.asarray(variable[...])
    for name, inner in group.groups.items():
        yield from leaves(inner, f"{prefix}{name}/")


def contents(out: Path) -> dict[str, np.ndarray]:
    """All numbers that a run wrote, by file and name."""
    found = {}
    for name, path in history.histories(out).items():
        found |= {f"{name}: {column}": values for column, values in history.read(path).flat().items()}
    for path in sorted(out.rglob("*.nc")):
        if path.parent.name != "history":
            with Dataset(path) as file:
                found |= {f"{path.name}: {name}": values for name, values in leaves(file)}
    return found


def same(out: Path, expected: Path) -> None:
    found, wanted = contents(out), contents(expected)
    assert found.keys() == wanted.keys()
    assert {p.name for p in (out / "checkpoints").iterdir()} == {p.name for p in (expected / "checkpoints").iterdir()}
    for name, values in wanted.items():
        # of places of extremes the index, of a column at rest nothing
        scale = max(1.0, np.abs(values).max()) if values.size else 1.0
        np.testing.assert_allclose(found[name], values, rtol=0, atol=SAME * scale, err_msg=name)
    records = [json.loads((path / "run.json").read_text()) for path in (out, expected)]
    looks = [[entry["step"] for entry in record["history"]] for record in records]
    assert looks[0] == looks[1]
    for one, other in zip(*(record["history"] for record in records), strict=True):
        assert one.keys() == other.keys()
        for key, value in other.items():
            # of rates before the first step nothing is known
            assert one[key] == (None if value is None else pytest.approx(value, rel=1e-11)), (key, one["step"])


class At:
    """A monitor that asks for other cuts: {step: parts}, at steps at which the run is looked at."""

    __name__ = "at"

    def __init__(self, cuts):
        self.cuts = cuts

    def __call__(self, simulation):
        if simulation.step_count in self.cuts:
            simulation.rebuild(parts=self.cuts[simulation.step_count])
        return {"step_count": float(simulation.step_count)}


def run(out, cuts=None, comm=None, **arguments) -> Simulation:
    given = {"backend": "cpu", "initial": flow, "monitors": [At(cuts or {})], "rebalance": "never", **arguments}
    simulation = Simulation(case(), out=out, comm=comm, **given)
    simulation.run(progress=False)
    return simulation


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("rebuild") / "whole"
    run(out)
    return out


@pytest.mark.slow
def test_nothing_is_lost_or_twice_where_the_grid_is_cut_anew(tmp_path, whole, monkeypatch):
    open_at, made = ("it is open at xmin",), surface_monitor.surface
    monkeypatch.setattr(surface_monitor, "surface", lambda *given: replace(made(*given), gaps=open_at))
    told = []
    monkeypatch.setattr(Progress, "note", lambda self, line: told.append(line))
    found = run(tmp_path / "cut", {5: columns(12, 20), 10: columns(15)})
    assert sum("is not closed: it is open at xmin" in line for line in told) == 1
    assert len(found.blocks) == 2
    same(tmp_path / "cut", whole)
    epochs = json.loads((tmp_path / "cut/run.json").read_text())["epochs"]
    assert [(e["epoch"], e["step"], e["reason"], e["points"]) for e in epochs] == [
        (1, 5, "asked for", [825]),
        (2, 10, "asked for", [825]),
    ]
    assert all(e["seconds"] > 0 for e in epochs)


def test_between_two_runs_of_one_simulation(tmp_path, whole):
    simulation = Simulation(
        case(), backend="cpu", initial=flow, out=tmp_path / "cut", monitors=[At({})], rebalance="never"
    )
    simulation.run(steps=7, progress=False, write_last=False)
    simulation.rebuild(parts=columns(9, 22))
    assert len(simulation.blocks) == 3 and simulation.step_count == 7
    simulation.run(progress=False)
    found, wanted = contents(tmp_path / "cut"), contents(whole)
    for name in (n for n in wanted if n.startswith(("averages.nc", "filtered", "row", "walls", "top"))):
        np.testing.assert_allclose(found[name], wanted[name], rtol=0, atol=SAME * max(1, np.abs(wanted[name]).max()))


def test_a_cut_that_cannot_be_leaves_the_run_as_it_was(tmp_path):
    simulation = Simulation(case(), backend="cpu", initial=flow)
    simulation.run(steps=3, progress=False)
    solver = simulation.solver
    with pytest.raises(HiresxError):
        simulation.rebuild(parts=lambda _: [Part(0, ((0, 20), (0, 25), (0, 1)), 0)])
    with pytest.raises(HiresxError, match="weights"):
        simulation.rebuild(weights=[1.0, 2.0])
    assert simulation.solver is solver and not simulation.epochs
    solver.states[0].q[0] = -1.0
    with pytest.raises(BlowUp):
        simulation.rebuild(parts=columns(12))
    assert simulation.solver is solver


# ---- arrays from cut to cut


def value(size) -> np.ndarray:
    ni, nj, nk = size
    return np.arange(2.0 * ni * nj * nk).reshape(2, nk, nj, ni)


@pytest.mark.parametrize("buffer", [100, 1 << 20])
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_every_node_arrives_at_the_rank_that_has_it_next(ranks, buffer, monkeypatch):
    monkeypatch.setattr(redistribution, "BUFFER", buffer)
    sizes = ((23, 14, 9), (31, 8, 1))
    dice = random.Random(10 * ranks + buffer)
    # Some rank of five has nothing before, and another one afterwards.
    before, after = (
        [Part(b, box, dice.choice(those)) for b, size in enumerate(sizes) for box in cut(size, 7, dice)]
        for those in ([*range(ranks)][:3], [*range(ranks)][-3:])
    )

    def moved(comm: Communicator) -> int:
        pieces = []
        for part in before:
            if part.rank == comm.rank:
                array = value(sizes[part.whole])[(..., *slices(part.box))]
                later = LazyArray(array.shape, array.dtype, lambda array=array: array)
                pieces.append(Piece(f"q.{part.whole}", part.box, later))
        read = redistribute(pieces, after, comm)
        mine = [part for part in after if part.rank == comm.rank]
        for part in mine:
            expected = value(sizes[part.whole])[(..., *slices(part.box))]
            assert np.array_equal(read(f"q.{part.whole}", part.box), expected)
        return len(mine)

    assert run_threads([0] * ranks, moved) == [sum(p.rank == rank for p in after) for rank in range(ranks)]


# ---- ranks


def on_ranks(comm, out, cuts, backend="cpu") -> list:
    by = {step: columns(*ends, ranks=ranks) for step, (ends, ranks) in cuts.items()}
    found = run(out, by, comm, backend=backend, parts=columns(ranks=1))
    return found.epochs


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "cpu,emulated,cpu"])
def test_from_one_rank_to_three_and_to_two(tmp_path, whole, backend):
    cuts = {5: ((12, 20), 3), 10: ((15,), 2)}
    epochs = run_ranks(3, on_ranks, tmp_path / "cut", cuts, backend, timeout=200)
    assert epochs[0] == epochs[1] == epochs[2]
    assert [e["points"] for e in epochs[0]] == [[300, 200, 325], [375, 450, 0]]
    same(tmp_path / "cut", whole)
    record = json.loads((tmp_path / "cut/run.json").read_text())
    assert [rank["points"] for rank in record["ranks"]] == [375, 450, 0]


def gone_on(comm, out, source) -> None:
    Simulation(case(), backend="cpu", restart=source, out=out, comm=comm, monitors=[At({})], rebalance="never").run(
        progress=False
    )


@pytest.mark.slow
def test_a_run_goes_on_from_a_checkpoint_that_was_written_after_a_new_cut(tmp_path, whole):
    run_ranks(2, on_ranks, tmp_path / "cut", {5: ((12,), 2)}, timeout=200)
    (source,) = (tmp_path / "cut/checkpoints").glob("*_step_000012.hxc")
    # Behind the checkpoint nothing is left but what the run that goes on takes anew.
    for path in (tmp_path / "cut/checkpoints").glob("*_step_000016.hxc"):
        path.unlink()
    run_ranks(2, gone_on, tmp_path / "cut", source, timeout=200)
    same(tmp_path / "cut", whole)
    record = json.loads((tmp_path / "cut/run.json").read_text())
    assert [entry["step"] for entry in record["epochs"]] == [5] and len(record["restarts"]) == 1


# ---- by itself


@cache
def square() -> Decomposition:
    """A block of 64 x 64 nodes."""
    return domain(load("isentropic-vortex", overrides=["grid.n=[64,64,1]"])).whole


class Stepped:
    """A solver whose ranks compute a step in `seconds` and do nothing else."""

    def __init__(self, comm, seconds: float):
        self.comm, self.steps, self._seconds = comm, 0, seconds
        self.stopwatch = SimpleNamespace(seconds={})
        self.device_resident_steps = SimpleNamespace(possible=False)

    def step(self) -> None:
        self.steps += 1
        # What others are waited for is no sign of a slow rank.
        self.stopwatch.seconds = {"inviscid": self.steps * self._seconds, "exchange": 7.0 * self.steps}


def looked(comm, rule, seconds, points, cost=0.0, left=1000, steps=500) -> list:
    """(step, gain, nodes by rank) of the cuts that are wanted."""
    cut = SimpleNamespace(parts=[SimpleNamespace(rank=n, points=own) for n, own in enumerate(points)])
    ground, found = SimpleNamespace(comm=comm, whole=square(), cut=cut), []
    solver = Stepped(comm, seconds[comm.rank])
    rebalancing = Rebalancing(rule, cost)
    rebalancing.begin(solver)
    for _ in range(steps):
        solver.step()
        plan = rebalancing.look(solver, ground, left)
        if plan is not None:
            held = np.bincount([p.rank for p in plan.parts], [p.points for p in plan.parts])
            found.append((solver.steps, plan.gain, held))
            rebalancing.follow(solver, cost)
    return found


UNEVEN = ([3e-4, 1e-4], [2048, 2048])


def on_threads(rule, *arguments, **more) -> list:
    found = run_threads([0, 0], lambda comm: looked(comm, rule, *arguments, **more))
    for one in found:
        if isinstance(one, BaseException):
            raise one
    assert repr(found[0]) == repr(found[1])
    return found[0]


@pytest.fixture
def clocked(monkeypatch):
    """A millisecond goes by from one look at the clock to the next."""
    ticks = itertools.count()
    monkeypatch.setattr(rebalance, "wall", SimpleNamespace(monotonic=lambda: 1e-3 * next(ticks)))
    monkeypatch.setattr(rebalance, "LONG", 0.0)


def test_ranks_of_uneven_speed_get_parts_of_that_size(clocked):
    (step, gain, held), *_ = on_threads("auto", *UNEVEN)
    assert step == 2 * rebalance.WARM_UP  # seen twice
    # 2048 nodes in 3 and in 1: both are done with 1024 and 3072 in half the time
    assert gain == pytest.approx(0.5, abs=0.05)
    assert held[1] / held[0] == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize(
    ("rule", "arguments", "more"),
    [
        ("never", UNEVEN, {}),
        ("auto", ([1.08e-4, 1e-4], [2048, 2048]), {}),  # not worth a tenth of a step
        ("auto", UNEVEN, {"cost": 1e3}),  # more than is left of the run
        ("auto", UNEVEN, {"left": 0}),
        (600, UNEVEN, {}),
    ],
)
def test_no_cut_where_none_is_worth_it(clocked, rule, arguments, more):
    assert on_threads(rule, *arguments, **more) == []


def test_a_number_looks_after_so_many_steps(clocked):
    assert [step for step, *_ in on_threads(70, *UNEVEN, cost=1e3, steps=150)] == [70, 140]


def test_the_more_often_the_grid_was_cut_the_rarer_it_is_looked_at(clocked, monkeypatch):
    monkeypatch.setattr(rebalance, "SHARE", np.inf)  # looking takes no time
    steps = [step for step, *_ in on_threads("auto", *UNEVEN, steps=1500, left=10**6)]
    assert len(steps) > 2 and (np.diff(steps, 2) > 0).all()


def test_what_is_no_rule_is_refused():
    for rule in ("often", 0, "0", True, -3):
        with pytest.raises(HiresxError, match="rebalance"):
            rebalance.parse_rule(rule)
    assert rebalance.parse_rule("12") == 12


@pytest.mark.slow
@pytest.mark.skipif(not launcher(), reason="no mpi4py with an mpirun of its MPI")
def test_a_slow_rank_gets_less_by_itself(tmp_path):
    """The CUDA form of kernels, run on a CPU, is much slower than what is made for it."""
    words = ("isentropic-vortex", "--set", "grid.n=[64,64,1]", "--steps", "8", "--rebalance", "3")
    started = subprocess.run(
        [sys.executable, "-m", "hiresx", "launch", "--mix", "emulated:1,cpu:1", *words, "--out", tmp_path / "run"],
        capture_output=True, text=True, timeout=200, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert started.returncode == 0, started.stderr
    record = json.loads((tmp_path / "run/run.json").read_text())
    first = record["epochs"][0]
    assert first["step"] == 3 and first["reason"] == "speeds" and first["gain"] > 0.1
    assert first["speeds"][0] < first["speeds"][1] and first["points"][0] < first["points"][1]
    assert record["steps"] == 8 and "cut anew" in started.stdout + started.stderr


def slowed(comm, rule: str) -> tuple[float, list]:
    """Ranks that sleep as if they computed, the last one four times as long for a point: what else the machine does
    makes little difference. Seconds of the run, and its epochs."""
    task_list, per_point = Terms._task_list, 4e-5 if comm.rank == comm.size - 1 else 1e-5

    def with_sleep(terms, case) -> list:
        seconds = per_point * sum(state.block.points for state in terms._blocks.states)
        return [*task_list(terms, case), ("inviscid", lambda stage: time.sleep(seconds))]

    Terms._task_list = with_sleep
    overrides = ["grid.n=[64,64,1]", "time.end=100.0", "time.steps=110"]
    run = Simulation(load("isentropic-vortex", overrides=overrides), backend="cpu", comm=comm, rebalance=rule)
    return run.run(progress=False)["wall_s"], run.epochs


@pytest.mark.slow
def test_two_ranks_of_unequal_speed_end_a_fifth_sooner():
    (never, _), _ = run_ranks(2, slowed, "never", timeout=200)
    (sooner, epochs), _ = run_ranks(2, slowed, "auto", timeout=200)
    assert epochs[0]["reason"] == "speeds" and epochs[0]["points"][0] > 2 * epochs[0]["points"][1]
    assert sooner < 0.8 * never


def test_probes_are_located_once_in_a_grid_that_stays(monkeypatch):
    """Neither at every `run` nor for another cut."""
    located, locate = [], probe._locate_all
    monkeypatch.setattr(probe, "_locate_all", lambda case, whole: located.append(whole) or locate(case, whole))
    simulation = Simulation(case(), "cpu", initial=flow)
    for parts in (columns(16), columns(11, 20)):
        simulation.run(2, progress=False)
        simulation.rebuild(parts=parts)
        simulation.run(2, progress=False)
    assert simulation.step_count == 8 and len(simulation.solver.states) == 3 and len(located) == 1
