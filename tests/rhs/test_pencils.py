"""The CPU's plan against the paper's, on the CPU: bundles that take viscous differences along, slabs."""

import numpy as np
import pytest
import scalar_cases
from arrangements import saved, shaken
from multiblock import Arrangement
from vortices import taylor_green

from hiresx.bench import rhs
from hiresx.case import Case, load
from hiresx.device import backend
from hiresx.rhs.inviscid import Pencils
from hiresx.solver import Solver
from hiresx.verify.groups.kernels import flow_with_jump


def smooth(x, y, z):
    wave = np.sin(2 * x + 1) * np.cos(3 * y + z)
    return 1 + 0.1 * wave, 0.2 + 0.1 * wave, 0.1 * np.cos(4 * x), 0.1 * wave * (np.ptp(z) > 0), 0.7 + 0.05 * wave


def solver(case, plan, threads=1, initial=smooth, grid=None) -> Solver:
    device = backend("cpu")
    device.threads = threads
    found = Solver(case, device, plan=plan, grid=grid)
    found.initialize(initial)
    found.choose_dt()
    return found


def after(case, plan, threads=1, **more) -> list[np.ndarray]:
    """The right-hand side of every block, and the state two steps on."""
    one = solver(case, plan, threads, **more)
    one.right_hand_side()
    rates = [s.interior(one.backend.to_host(s.r)) for s in one.states]
    for _ in range(2):
        one.step()
    return rates + [s.interior(one.backend.to_host(s.q)) for s in one.states]


def agree(case, within=1e-13, **more) -> None:
    found = after(case, "pencils", **more)
    for one, other in zip(found, after(case, "decomposed", **more), strict=True):
        assert np.abs(other).max() > 0 and np.isfinite(one).all()
        assert np.abs(one - other).max() <= within * np.abs(other).max()
    for one, other in zip(found, after(case, "pencils", threads=2, **more), strict=True):
        assert np.array_equal(one, other)


def carries(case, **more) -> bool:
    one = solver(case, "pencils", **more)
    sweeps = [call for block in one.terms.inviscid for call in block.early if call.name == "inviscid_sweep"]
    return all(call.arguments["viscous_flux"] is not None for call in sweeps) and not any(
        block.difference.inner for block in one.terms.viscous
    )


# more than one slab, a last bundle that is not full, lines of every length
@pytest.mark.parametrize("n", ["[19,21,18]", "[70,9,11]", "[8,37,1]"])
def test_wavy_grid(n):
    case = taylor_green('grid.generator="wavy"', f"grid.n={n}", "grid.amplitude=[0.1,0.1,0.1]")
    assert carries(case)
    agree(case, initial=flow_with_jump(1.5) if n != "[8,37,1]" else smooth)


def test_short_lines_along_i_share_bundles():
    for n, single in ("[8,37,1]", False), ("[70,9,11]", True):
        one = solver(taylor_green('grid.generator="wavy"', f"grid.n={n}", "grid.amplitude=[0.1,0.1,0.1]"), "pencils")
        (sweep,) = (call for block in one.terms.inviscid for call in block.early if call.arguments["sd"] == 1)
        lines = sweep.arguments["n1"] * sweep.arguments["n2"]
        parts = one.program.kernel("inviscid_sweep").cut(sweep.packed).parts
        assert parts == lines if single else parts < lines


def test_single_precision():
    agree(rhs.flow(18, True, "fp32"), 2e-5)


@pytest.mark.parametrize("n", ["[9,41,1]", "[9,41,9]"])
def test_walls_and_sutherland(n):
    # Sutherland's temperature is the default one: other tests have these kernels too.
    sets = ['gas.viscosity={law="sutherland"}', f"grid.n={n}", "grid.upper=[0.25,1.0,0.3]"]
    if n == "[9,41,9]":
        sets += ['boundary.0.faces=["imin","imax","kmin","kmax"]', 'grid.periodic=["x","z"]']
    case = load("couette", overrides=sets)
    assert carries(case)
    agree(case)


def test_joined_blocks(tmp_path):
    whole = shaken((20, 21, 22), seed=2).blocks[0]
    parts = Arrangement(whole, 8, 2, True)
    grid = saved(tmp_path, parts.blocks, {"blocks": [b.name for b in parts.blocks], "connection": parts.tables})
    far = {"faces": "all", "type": "far-field", "state": {"rho": 1.0, "p": 0.7, "u": 0.5}}
    tables = {"gas": {"reynolds": 200.0}, "time": {"steps": 2, "cfl": 0.4}, "initial": {"state": far["state"]}}
    case = Case.from_dict({"grid": {"file": "none"}, "boundary": [far], **tables})
    assert carries(case, grid=grid)
    agree(case, grid=grid)


def test_scalars():
    case = scalar_cases.case(n=(22, 19, 1), reynolds=50.0)
    assert carries(case)
    agree(case)


def test_axisymmetric():
    """The terms of an axis stand between the inviscid and the viscous ones, which are then on their own."""
    box = {"generator": "box", "n": [20, 19, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]}
    far = {"faces": "all", "type": "far-field", "state": {"rho": 1.0, "p": 0.7}}
    case = Case.from_dict(
        {
            "axisymmetric": True, "grid": box, "gas": {"reynolds": 200.0}, "time": {"steps": 2, "cfl": 0.4},
            "initial": {"state": far["state"]}, "boundary": [{"faces": ["jmin"], "type": "axis"}, far],
        }
    )  # fmt: skip
    assert not carries(case)
    agree(case, initial=lambda x, y, z: (1 + 0.1 * np.sin(3 * x), 0.1 * np.cos(4 * x), 0.1 * y * y, 0 * x, 0.7 + 0 * x))


def test_inviscid_terms_do_not_carry():
    assert Pencils.viscous_directions("fp64") == {0, 1, 2}
    (inviscid,) = solver(rhs.flow(8, False, "fp64"), "pencils").terms.inviscid
    assert all(call.arguments["viscous_flux"] is None for call in inviscid.early)
