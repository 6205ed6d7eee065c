"""What happens before the first step: refused at once, shared among threads, compiled once and meanwhile."""

import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest
from vortices import taylor_green

from hiresx import Simulation
from hiresx.base import threads as parallel
from hiresx.bench import rhs
from hiresx.case import Case, load
from hiresx.device import Configuration, asynchronous_compilation, backend, cache, cpu, cuda, emulated
from hiresx.errors import HiresxError
from hiresx.grid.counting import file_nodes
from hiresx.simulation import simulation
from hiresx.solver import Solver
from hiresx.solver.block_states import LocalBlocks

NODES = 1000  # of a direction of a grid that is never made


@pytest.fixture
def nothing_made(monkeypatch):
    """Whoever makes a grid or compiles fails."""

    def made(*arguments):
        raise AssertionError("made")

    monkeypatch.setattr(simulation, "build", made)
    monkeypatch.setattr(asynchronous_compilation, "start_compilation", made)


def of_file(folder, n: int) -> Case:
    """A case on a file of n^3 nodes, of which nothing but the head is written."""
    path = folder / "grid.xyz"
    path.write_bytes(np.array([1, n, n, n], "<i4").tobytes())
    with path.open("r+b") as file:
        file.truncate(16 + 24 * n**3)
    initial = {"state": {"rho": 1.0, "p": 0.7}}
    table = {"grid": {"file": "grid.xyz"}, "time": {"steps": 1}, "initial": initial, "gas": {"reynolds": 1e4}}
    return Case.from_dict(table, folder)


def generated(folder, n: int) -> Case:
    return taylor_green(f"grid.n=[{n},{n},{n}]")


@pytest.mark.parametrize("case", [generated, of_file])
@pytest.mark.parametrize("plan", ["auto", "fused"])
def test_what_no_gpu_holds_is_refused_before_anything_is_made(case, plan, monkeypatch, tmp_path, nothing_made):
    reals = {"auto": 29, "fused": 37}[plan]
    monkeypatch.setattr("hiresx.grid.size.host_memory", lambda: 1e15)
    monkeypatch.setattr(cuda, "largest_memory", lambda: 8 * reals * NODES**3 - 1)
    spec = case(tmp_path, NODES).model_copy(update={"plan": plan})
    with pytest.raises(HiresxError, match=r"1,000,000,000 nodes take .* the GPU has"):
        Simulation(spec, backend="cuda")
    monkeypatch.setattr(cuda, "largest_memory", lambda: 8 * reals * NODES**3)
    with pytest.raises(AssertionError, match="made"):
        Simulation(spec, backend="cuda")


def test_a_file_that_this_machine_does_not_hold_is_refused_by_its_head(monkeypatch, tmp_path, nothing_made):
    monkeypatch.setattr("hiresx.grid.size.host_memory", lambda: 8 * 37 * NODES**3 - 1)
    spec = of_file(tmp_path, NODES)
    began = time.perf_counter()
    with pytest.raises(HiresxError, match="1,000,000,000 nodes take"):
        Simulation(spec, backend="cpu")
    assert time.perf_counter() - began < 5  # it reads nothing but the head
    assert file_nodes(spec.grid.model_copy(update={"coarsen": 1}), tmp_path) is None
    assert file_nodes(spec.grid.model_copy(update={"file": "none.xyz"}), tmp_path) is None


def test_a_cpu_is_not_measured_by_the_memory_of_gpus(monkeypatch):
    monkeypatch.setattr(cuda, "largest_memory", lambda: 1)
    assert Simulation(taylor_green("grid.n=[7,7,7]", "time.steps=1"), backend="cpu").blocks


@pytest.mark.parametrize("files_lock", [True, False])
def test_what_two_threads_want_is_made_once(files_lock, monkeypatch, tmp_path):
    """On a file system, too, that locks no files."""
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path / "cache"))
    if not files_lock:
        monkeypatch.setattr(cache, "_sole_maker", lambda path: nullcontext())
    made = []

    def make(folder):
        made.append(folder)
        time.sleep(0.2)
        path = folder / "kernel"
        path.write_text("text")
        return path

    found = []
    threads = [threading.Thread(target=lambda: found.append(cache.find_or_make("kernel", make))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and len(set(found)) == 1 and found[0].read_text() == "text"


def test_kernels_are_compiled_while_the_grid_is_made(monkeypatch):
    compiled, begun = threading.Event(), []

    def libraries(self, configuration):
        begun.append(configuration)
        compiled.set()
        raise HiresxError("no compiler")  # is left to the one who asks again

    monkeypatch.setattr(cpu.CpuBackend, "libraries", libraries)
    asynchronous_compilation.start_compilation(Configuration(), "cpu")
    assert compiled.wait(5) and begun == [Configuration()]


@pytest.mark.parametrize(
    ("asked", "fault", "begun"),
    [
        ("cuda", None, ["cuda"]),
        ("auto", None, ["cuda"]),
        ("cuda", "no GPU", []),
        ("auto", "no GPU", ["cpu"]),
        ("emulated", None, ["emulated"]),
    ],
)
def test_what_is_compiled_beforehand(monkeypatch, asked, fault, begun):
    found = []
    monkeypatch.setattr(cuda, "obstacle", lambda: fault)
    monkeypatch.setattr(cuda, "precompile", lambda configuration: found.append("cuda"))
    for kind in (cpu.CpuBackend, emulated.EmulatedBackend):
        monkeypatch.setattr(kind, "libraries", lambda self, configuration: found.append(self.name))
    asynchronous_compilation._compile_for_backend(Configuration(), asked)
    assert found == begun


@pytest.fixture(params=[1, 3])
def threads(request, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", str(request.param))
    return request.param


def test_slabs_give_what_the_whole_gives(monkeypatch, threads):
    found = []
    for slab in (10**9, 400):
        monkeypatch.setattr(parallel, "SLAB", slab)
        monkeypatch.setattr(parallel, "PIECE", slab)
        solver = Solver(rhs.flow(17, True, "fp64"), backend("cpu"))
        solver.initialize()
        (state,) = solver.states
        (extended,) = solver._blocks.extended.values()
        found.append([state.q, state.jacobian, state.metrics, *extended])
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))


def small_jet() -> Case:
    return load("planar-jet", "quick", ["grid.points_per_height=12", "grid.length=6"])  # of four blocks


@pytest.mark.parametrize("case", [small_jet, lambda: rhs.flow(12, True, "fp64")], ids=["blocks", "block"])
def test_the_state_is_made_once_and_before_kernels_are_waited_for(case, monkeypatch, threads):
    evaluate, compiled, case, done = LocalBlocks.evaluate, LocalBlocks.compile_kernels, case(), []
    monkeypatch.setattr(LocalBlocks, "evaluate", lambda *given: (done.append("state"), evaluate(*given))[1])
    monkeypatch.setattr(LocalBlocks, "compile_kernels", lambda *given: (done.append("kernels"), compiled(*given))[1])
    early = Simulation(case, backend="cpu").solver
    assert done == ["state", "kernels"]
    late = Solver(case, backend("cpu"))
    late.initialize()
    assert done[2:] == ["kernels", "state"]
    for _ in range(2):  # at the start, and after a step
        assert (early.time, early.steps, early.dt) == (late.time, late.steps, late.dt)
        for one, other in zip(early.states, late.states, strict=True):
            assert np.array_equal(one.q, other.q)  # ghosts too
        assert early.advance(1) == late.advance(1)


def test_the_first_fault_of_several_threads_is_the_one_that_is_told(monkeypatch, threads):
    monkeypatch.setattr(parallel, "SLAB", 100)
    solver = Solver(rhs.flow(12, True, "fp64"), backend("cpu"))

    def initial(x, y, z):
        return np.where(z < 0, 1.0, -z), 0.0, 0.0, 0.0, 1.0

    with pytest.raises(HiresxError, match="rho = -") as told:
        solver.initialize(initial)
    first = np.asarray(solver.states[0].block.z).ravel()
    assert f"{first[first >= 0][0]:.6g}" in told.value.message


def test_work_ahead_keeps_its_order_and_stops_at_a_fault(threads):
    assert list(parallel.map_ahead(lambda n: n * n, range(50))) == [n * n for n in range(50)]
    with pytest.raises(ZeroDivisionError):
        list(parallel.map_ahead(lambda n: 1 // (20 - n), range(50)))
    with pytest.raises(ZeroDivisionError):
        parallel.start_in_background(lambda: 1 // 0)()
    assert parallel.start_in_background(lambda a: a + 1, 2)() == 3


def test_planes_are_all_there_once():
    for count, nodes in ((1, 10**9), (1000, 10**6), (7, 3), (100, 30_000)):
        covered = [n for part in parallel.planes(count, nodes) for n in range(part.start, part.stop)]
        assert covered == list(range(count))
        cut = parallel.lines_of(count, nodes)
        assert [n for part in cut for n in range(part.start, part.stop)] == list(range(count))
        assert all(part.stop - part.start >= min(count, parallel.LEAST) for part in cut)
