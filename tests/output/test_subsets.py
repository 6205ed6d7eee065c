"""Subsets of fields: ranges, planes and lines hold what cutting the whole fields gives."""

import h5py
import numpy as np
import pytest
from written_runs import Run, periodic

from hiresx import HiresxError, load
from hiresx.decomposition import Part
from hiresx.equations.gas import Gas
from hiresx.grid.blocks import whole_box
from hiresx.output.fields import block_neighbours, cut, derived, local_regions, selection
from hiresx.output.fields import field_file as fields

NAMES = ["p", "mach", "schlieren", "q_criterion"]


def full(run):
    block = run.solver.decomposition.blocks[0]
    flow = derived.FlowState(block.x, block.y, block.z, run.solver.primitives(0), 1.4)
    return {"x": block.x, "y": block.y, "z": block.z, **derived.evaluate(NAMES, flow)}


def part(tmp_path, spec, n=(17, 13, 12)):
    """(the block of subset `spec` that a run writes, all of its fields)."""
    run = Run(periodic(f"output.subset=[{{name='part', {spec}, variables={NAMES}}}]", n=n), tmp_path).steps(2).finish()
    data = fields.read(fields.last(tmp_path, "part"))
    assert list(data.blocks[0].state) == NAMES
    return data, full(run)


@pytest.mark.parametrize(
    ("spec", "index"),
    [
        ("range={}", np.s_[:, :, :]),
        ("range={i=[0, 1]}", np.s_[:, :, 0:1]),
        ("range={i=[-1, 'end'], k=[2, 9, 3]}", np.s_[2:9:3, :, -1:]),
        ("range={i=[2, 5], j=[3, 4], k=[5, 'end']}", np.s_[5:, 3:4, 2:5]),
        ("range={i=[8, 9], j=[4, -3, 2], k=[1, -1]}", np.s_[1:-1, 4:-3:2, 8:9]),
    ],
)
def test_ranges_of_nodes_hold_what_the_whole_fields_hold(tmp_path, spec, index):
    data, whole = part(tmp_path, spec)
    for name in ("x", "y", "z"):
        np.testing.assert_array_equal(getattr(data.blocks[0], name), whole[name][index])
    for name in NAMES:
        np.testing.assert_allclose(data.blocks[0].state[name], whole[name][index], rtol=0, atol=1e-13, err_msg=name)
    assert data.part.startswith("nodes")


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_planes_hold_what_cutting_the_whole_fields_gives(tmp_path, axis):
    data, whole = part(tmp_path, f"plane={{{axis}=1.3}}")
    (sheet,) = cut.plane([whole], axis, 1.3)
    block = data.blocks[0]
    assert data.part == f"plane {axis} = 1.3" and block.x.shape[0] == 1
    for name, values in sheet.items():
        found = block.state[name] if name in block.state else getattr(block, name)
        np.testing.assert_allclose(found[0], values, rtol=0, atol=1e-13, err_msg=name)


def test_lines_hold_what_cutting_the_whole_fields_gives(tmp_path):
    data, whole = part(tmp_path, "line={x=0.7, z=2.0}")
    samples, _ = cut.line(cut.plane([whole], "x", 0.7), "z", 2.0)
    block = data.blocks[0]
    assert block.name == "line" and block.x.shape == (1, 1, samples["y"].size)
    for name, values in samples.items():
        found = block.state[name] if name in block.state else getattr(block, name)
        np.testing.assert_allclose(found[0, 0], values, rtol=0, atol=1e-13, err_msg=name)


def share(run, names=NAMES):
    """(what one process has of the only piece of the first subset, its only block)"""
    (block,) = run.solver.decomposition.blocks
    (piece,) = selection.subset(run.case.output.subset[0], [block])
    parts = [Part(0, whole_box(block.size))]
    margin = any(not derived.VARIABLES[name].local for name in names)
    if isinstance(piece, selection.NodeBlock):
        return local_regions.LocalBoxes(piece, [block], parts, margin)
    return local_regions.LocalSamples(piece, [block], parts, parts, 0, 1, margin)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("spec", ["range={}", "range={k=[4, 11]}", "plane={x=1.3}"])
def test_slabs_and_threads_change_nothing(monkeypatch, workers, spec):
    run = Run(periodic(f"output.subset=[{{name='part', {spec}}}]", n=(12, 13, 40)), None).steps(1)
    mine = share(run)
    state = run.solver.states[0]
    (source,) = mine.sources
    q = state.interior(run.solver.backend.to_host(state.q))[(slice(None), *source.box)]
    ((whole,), _) = mine.regions(NAMES, [local_regions.LocalState(q)], Gas(1.4), np.dtype("f8"), 1)
    monkeypatch.setattr(local_regions, "_LAYERS", 3)
    monkeypatch.setattr(local_regions, "_NODES", 1)
    monkeypatch.setattr(local_regions, "_KEPT", 0)
    source._metrics.clear()
    ((parted,), _) = mine.regions(NAMES, [local_regions.LocalState(q)], Gas(1.4), np.dtype("f8"), workers)
    assert not source._metrics
    for name in NAMES:
        np.testing.assert_allclose(parted.values[name], whole.values[name], rtol=0, atol=1e-13, err_msg=name)


def test_a_thin_part_brings_a_thin_box_from_the_device():
    run = Run(periodic('output.subset=[{name="a", plane={z=0.3}}]', n=(40, 41, 42)), None)
    (source,) = share(run, ["p"]).sources
    assert source.x.shape == (2, 41, 40)
    (source,) = share(run, ["vorticity"]).sources
    assert source.x.shape == (8, 41, 40), "gradients need three nodes more to each side"


def test_a_line_through_the_blocks_of_a_jet(tmp_path):
    overrides = ["output.subset=[{name='axis', line={y=0.0}}, {name='across', line={x=3.0}, blocks=['jet']}]"]
    case = load("planar-jet", preset="quick", overrides=[*overrides, "grid.points_per_height=12"])
    run = Run(case, tmp_path).finish()
    blocks = [b for b in run.solver.decomposition.blocks]
    axis = fields.read(fields.last(tmp_path, "axis")).blocks[0]
    assert (np.diff(axis.x[0, 0]) > 0).all() and np.ptp(axis.y) == 0
    assert axis.x.min() == min(b.x.min() for b in blocks if b.y.min() <= 0 <= b.y.max())
    for name, joined in (("fields", True), ("axis", False)):  # samples have no neighbours
        with h5py.File(fields.last(tmp_path, name)) as file:
            assert (block_neighbours.ATTRIBUTE in file.attrs) == joined
    across = fields.read(fields.last(tmp_path, "across")).blocks[0]
    jet = next(b for b in blocks if b.name == "jet")
    assert (across.y.min(), across.y.max()) == pytest.approx((jet.y.min(), jet.y.max()))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("range={i=[5, 99]}", r"range.i = \[5, 99\] holds no nodes of block .* which has 12 along i"),
        ("range={j=[4, 4]}", "holds no nodes"),
        ("range={}, blocks=['b']", 'there is no block "b"'),
        ("plane={z=99.0}", "z = 99 does not meet the grid"),
        ("line={z=0.0}", "no line in 3 dimension"),
    ],
)
def test_parts_that_are_not_there(tmp_path, spec, message):
    with pytest.raises(HiresxError, match=message) as caught:
        Run(periodic(f"output.subset=[{{name='part', {spec}}}]"), tmp_path)
    assert 'output.subset "part"' in caught.value.message and caught.value.hint


def test_gradients_do_not_follow_from_a_part(tmp_path):
    data, _ = part(tmp_path, "plane={z=1.3}")
    fields.read(data.path, ["mach"])
    with pytest.raises(HiresxError, match="dilatation needs gradients"):
        fields.read(data.path, ["dilatation"])
