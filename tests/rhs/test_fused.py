"""The GPU's plan against the paper's, on the same backend: the same arithmetic, so the same answer but for the order in
which the viscous terms come in."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx import kernels
from hiresx.bench import rhs
from hiresx.case import load
from hiresx.decomposition import Part, domain
from hiresx.device import backend, cuda
from hiresx.device.configuration import Configuration
from hiresx.device.wrappers import TILE, dynamic_shared_memory, generate
from hiresx.errors import HiresxError
from hiresx.rhs import chunks, fused
from hiresx.solver import Solver
from hiresx.verify.groups.kernels import flow_with_jump

TURNED = {"i": "[24,1,1]", "ij": "[20,18,1]", "ijk": "[34,9,18]"}


def rates(case, plan: str, strength: float = 3.0) -> list[np.ndarray]:
    """r of every block and what a wall's condition finds behind it, from a flow with a jump."""
    solver = Solver(case, backend("emulated"), plan=plan)
    solver.initialize(flow_with_jump(strength))
    solver.choose_dt()
    solver.right_hand_side()
    assert len({name for name, _ in solver.tasks}) > 2
    return [s.interior(solver.backend.to_host(s.r)) for s in solver.states]


def agree(case, within: float, **more) -> None:
    for one, other in zip(rates(case, "decomposed", **more), rates(case, "fused", **more), strict=True):
        assert np.abs(one).max() > 0
        assert np.abs(one - other).max() <= within * np.abs(one).max()


@pytest.mark.parametrize("interpolation", ["modified", pytest.param("original", marks=pytest.mark.slow)])
@pytest.mark.parametrize("nodes", TURNED.values(), ids=TURNED)
def test_inviscid_terms_to_the_last_bit(nodes, interpolation):
    agree(load("free-stream", overrides=[f"grid.n={nodes}", f'scheme.interpolation="{interpolation}"']), 0.0)


@pytest.mark.slow
def test_more_scalars_than_there_are_metrics():
    """Ten gradients: what the kernels are given in place of viscous fluxes had nine variables."""
    scalars = ",".join(f'{{name="s{n}",initial=0.{n + 1}}}' for n in range(6))
    agree(load("sod", overrides=["grid.n=[41,1,1]", f"scalar=[{scalars}]"]), 1e-13)


@pytest.mark.parametrize("precision", ["fp64", pytest.param("fp32", marks=pytest.mark.slow)])
def test_viscous_terms(precision):
    agree(rhs.flow(18, True, precision), 1e-13 if precision == "fp64" else 2e-5, strength=1.5)


def test_walls_and_lines_of_many_chunks(monkeypatch):
    """A wall's condition reads what the sweep leaves behind the face, in the first and in the last chunk."""
    case = load("couette", overrides=["grid.n=[9,41,1]"])
    monkeypatch.setattr(fused, "line_chunk", lambda n, lines, itemsize: n)
    whole = rates(case, "fused")
    monkeypatch.setattr(fused, "line_chunk", lambda n, lines, itemsize: 4)
    monkeypatch.setattr(fused, "row_chunk", lambda n, rows: 4)
    cut = rates(case, "fused")
    for one, other, paper in zip(whole, cut, rates(case, "decomposed"), strict=True):
        assert np.array_equal(one, other)
        assert np.abs(one - paper).max() <= 1e-13 * np.abs(one).max()


@pytest.mark.parametrize("chunk", [33, 64, 101, 10**6])
def test_rows_that_a_warp_goes_along_in_many_turns(monkeypatch, chunk):
    """As on large grids: what one turn leaves is where the next one begins, whatever the chunk's length."""
    monkeypatch.setattr(fused, "row_chunk", lambda n, rows: min(chunk, n))
    agree(load("free-stream", overrides=[f"grid.n={TURNED['ijk']}"]), 0.0)


def test_chunks_cover_a_line():
    for n in (1, 7, 31, 32, 33, 200, 4096):
        for lines in (1, 50, 10**6):
            found = [chunks.line_chunk(n, lines, 8), chunks.line_chunk(n, lines, 4), chunks.row_chunk(n, lines)]
            for chunk in (*found, chunks.march_chunk(n, lines)):
                assert 0 < chunk <= n


def test_lines_of_many_blocks_are_cut_into_fewer_chunks():
    """The lines of all blocks fill the device together."""
    case = load("free-stream", overrides=["grid.n=[34,9,18]"])
    boxes = [((0, 16), (0, 9), (0, 18)), ((16, 34), (0, 9), (0, 18))]
    ground = domain(case, parts=lambda whole: [Part(0, box) for box in boxes])
    blocks = Solver(case, backend("emulated"), domain=ground).terms.inviscid
    assert [block.crowd for block in blocks] == [34 / 16, 34 / 18]
    few = [blocks[0].sweep(d, False, frozenset()).arguments["chunk"] for d in range(3)]
    blocks[0].crowd = 10**5
    many = [blocks[0].sweep(d, False, frozenset()).arguments["chunk"] for d in range(3)]
    assert chunks.crowds([100, 300, 5000], 1000) == [4.0, 4 / 3, 1.0]
    assert few[0] < many[0] and few[1] < many[1] == 9 and few[2] < many[2] == 18


@pytest.mark.parametrize(("interpolation", "reach"), [("modified", 3), ("modified7", 4)])
def test_what_a_block_that_marches_keeps(interpolation, reach):
    """Two planes of a tile with ghosts and the places of corners: five variables; areas along i and along j; and the
    nodes that were passed."""
    (ni, nj), weights = TILE, "js" if reach == 3 else "z"
    _, found = generate(Configuration(inviscid="split", interpolation=interpolation, weights=weights), "cuda")
    rows, columns = (ni + 2 * reach) * nj, ni * (nj + 2 * reach)
    plane = 5 * (ni + 2 * reach) * (nj + 2 * reach) + 3 * rows + 3 * columns
    wanted = 8 * (2 * plane + 8 * reach * ni * nj)
    assert dynamic_shared_memory(found["split_march"], "float64") == wanted


@pytest.mark.parametrize("kind", ["TILE_KERNEL", "ROW_KERNEL"])
def test_a_kernel_of_unknown_size_is_refused(kind):
    """Without the size a launch would give its block no memory."""
    text = f"{kind}(a, int i, int j, int k) {{ {{}} BLOCK_MEMORY(kept, a_own); }}"
    with pytest.raises(ValueError, match="a_own, the reals of its block, is not known"):
        kernels.declarations(f"constexpr int a_own = 3 * (2 + 1);\n{text}")


def test_what_it_launches():
    solver = Solver(rhs.flow(18, True, "fp64"), backend("emulated"))
    assert solver.plan == "fused"
    (block,) = solver.terms.inviscid
    assert [call.name for call in block.early] == ["sweep_along", "sweep_across", "sweep_across"] and not block.late


def test_what_a_step_leaves_for_the_norms():
    """The update of the last stage, which does the viscous differences, keeps them in the right-hand side."""
    found = []
    for plan in ("decomposed", "fused"):
        solver = Solver(rhs.flow(12, True, "fp64"), backend("emulated"), plan=plan)
        solver.initialize(flow_with_jump(1.5))
        solver.step()
        found.append([s.interior(solver.backend.to_host(a)) for s in solver.states for a in (s.q, s.r)])
    for one, other in zip(*found, strict=True):
        assert np.abs(one - other).max() <= 1e-12 * np.abs(one).max()


@pytest.mark.parametrize(("schmidt", "nodes", "given"), [((), 13, False), ((0.7,), 14, True), ((0.7, 0.4), 15, True)])
def test_what_a_line_keeps_on_the_chip(schmidt, nodes, given):
    """Six nodes and the one that comes, and the limiter's mark; what blocks have no room for is given by the launch."""
    _, signatures = generate(Configuration(schmidt=schmidt), "cuda")
    across = signatures["sweep_across"]
    assert across.own == 7 * nodes + 1
    assert dynamic_shared_memory(across, "float64") == (64 * 8 * (7 * nodes + 1) if given else 0)
    assert dynamic_shared_memory(across, "float32") == 0


def test_a_gpu_with_too_little_shared_memory_is_told():
    """The split form of eighth order takes more in double precision than some GPUs have."""

    class Refusing:
        def __setattr__(self, name, value):
            raise RuntimeError("CUDA_ERROR_INVALID_VALUE: invalid argument")

    _, found = generate(Configuration(inviscid="split", interpolation="modified7", weights="linear"), "cuda")
    program = SimpleNamespace(_real="float64")
    with pytest.raises(HiresxError, match=r"split_march needs 1.. KiB of shared memory") as error:
        cuda.CudaProgram._with_memory(program, Refusing(), found["split_march"])
    assert "decomposed" in error.value.hint
