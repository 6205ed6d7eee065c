"""Sponges on their grid: where they lie by regions, what they damp, and what of them is refused or remarked."""

import numpy as np
import pytest

from hiresx.case import Case
from hiresx.device import backend
from hiresx.errors import HiresxError
from hiresx.grid import build
from hiresx.rhs import layers
from hiresx.rhs.sponge import layer_reals
from hiresx.solver import Solver

BUMP = {
    "generator": "channel-bump", "cells": [8, 16, 20], "n_normal": 9, "height": 2.0, "downstream": 3.0, "blocks": 3,
}  # fmt: skip
BOX = {"generator": "box", "n": [41, 11, 1], "lower": [0.0, 0.0, 0.0], "upper": [8.0, 2.0, 0.0]}
CPU = backend("cpu")
REST = {"rho": 1.0, "p": 1 / 1.4}


def case(grid, *sponges, **tables):
    conditions = [{"faces": "all", "type": "slip-wall"}]
    start = {"state": REST}
    common = {"time": {"steps": 1}, "initial": start, "boundary": conditions}
    return Case.from_dict({"grid": grid, "sponge": [{"state": REST, **s} for s in sponges], **common, **tables})


def x(start, end, strength=1.0, **keys):
    return {"axis": "x", "start": start, "end": end, "strength": strength, **keys}


def placed(grid, *sponges):
    made = case(grid, *sponges)
    blocks = build(made.grid).blocks
    return layers.place_sponges(made, blocks), blocks


def ends(grid, *sponges):
    return [layers.ends(spec) for spec in placed(grid, *sponges)[0].sponge]


def test_sponges_stand_where_regions_of_the_grid_are():
    outlet, inlet = {"region": "outlet"}, {"region": "inlet"}
    asked = (x({**outlet, "offset": -1.5}, outlet), x({**inlet, "offset": 0.25}, inlet))
    assert ends(BUMP, *asked) == [(2.5, 4.0), (-0.75, -1.0)]
    longer = {**BUMP, "downstream": 6.0, "upstream": 2.0}
    assert ends(longer, *asked) == [(5.5, 7.0), (-1.75, -2.0)]
    # faces of any grid, one block's or all
    assert ends(BOX, x(6.0, {"face": "imax"})) == [(6.0, 8.0)]
    last = {"block": "downstream"}
    ((start, end),) = ends(BUMP, x({"face": "imin", **last}, {"face": "imax", **last}))
    assert 1 < start < 1.1 and end == 4
    above = {"axis": "y", "start": {"region": "upper-wall", "offset": -0.5}, "end": {"region": "upper-wall"}}
    assert ends(BUMP, {**above, "strength": 1.0}) == [(1.5, 2.0)]


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ({"region": "outlte"}, r'sponge.0.end: no region "outlte"'),
        ({"face": "imax", "block": "downstraem"}, 'no block "downstraem"'),
        ({"region": "lower-wall"}, 'region "lower-wall" reaches from x = -1 to 4'),
        ({"face": "imax"}, r"the face imax reaches from x = \S+ to 4"),
        ({"region": "outlet", "offset": -2.0}, "start and end both come to x = 2"),
    ],
)
def test_parts_of_the_grid_that_are_no_place(end, said):
    with pytest.raises(HiresxError, match=said):
        placed(BUMP, x(2.0, end))


def test_one_side_of_a_region_is_a_place():
    assert ends(BUMP, x(2.0, {"region": "lower-wall", "side": "largest"})) == [(2.0, 4.0)]
    assert ends(BUMP, x(2.0, {"region": "lower-wall", "side": "least"})) == [(2.0, -1.0)]
    with pytest.raises(HiresxError, match="takes exactly one of region and face"):
        case(BUMP, x(2.0, {"region": "outlet", "face": "imax"}))


@pytest.mark.parametrize(
    ("sponge", "said"),
    [
        (x(4.0, 12.5), r"sponge.0 from x = 4 to 12.5 is 8.5 thick, thicker than the domain: the grid reaches from 0"),
        (x(9.0, 10.0), "holds no node: the grid reaches from 0 to 8"),
        (x(-1.0, -2.0), "holds no node"),
        (x(9.0, 7.0), "covers every node: it starts outside of the grid, which reaches from 0 to 8"),
        (x(-0.5, 2.0), "covers every node"),
        (x(7.81, 7.95), "has no node between its start and its end"),
        ({**x(0.01, 0.1), "axis": "y"}, "sponge.0 from y = 0.01 to 0.1 has no node between"),
        (x(6.0, 8.0, blocks=["bxo"]), r'sponge.0.blocks: no block "bxo"'),
    ],
)
def test_sponges_that_cannot_be_meant(sponge, said):
    with pytest.raises(HiresxError, match=said):
        layers.check(*placed(BOX, sponge))


@pytest.mark.parametrize("end", [{"face": "imax"}, {"face": "imax", "offset": -2.0}])
def test_a_sponge_that_its_region_has_turned_round_is_refused(end):
    """The grid was shortened, and the sponge's start stands where it was."""
    shorter = {**BOX, "upper": [5.0, 2.0, 0.0]}
    with pytest.raises(HiresxError, match=r"sponge.0: its start comes to x = 6 and its end to [35]: turned round"):
        placed(shorter, x(6.0, end))
    assert ends(shorter, x({**end, "offset": -2.5}, end))[0][0] == 2.5


def test_remarks_on_sponges_that_are_cut_off_or_end_inside():
    assert not list(layers.notes(*placed(BOX, x(6.0, 8.0), x(2.0, 0.0))))
    layers.check(*placed(BOX, x(6.0, 8.0), x(8.0, 0.0)))
    (cut,) = layers.notes(*placed(BOX, x(6.0, 10.0)))
    assert "cut off by the end of the grid at 50% of its depth, where it has 25% of its strength" in cut
    (inside,) = layers.notes(*placed(BOX, x(2.0, 4.0)))
    assert "goes on at full strength for 4 behind its end" in inside


def test_facts_are_those_of_the_layer_that_is_computed():
    """Points, and the damping from the integral of sigma over its line, by the sponge's own arrays."""
    made = case(BOX, x(5.0, 8.0, 0.7, power=3.0), x(3.0, 0.0, 0.4), x(6.0, 10.0))
    grid = build(made.grid)
    found = layers.facts(made, grid.blocks)
    assert [f["thickness"] for f in found] == [3.0, 3.0, 4.0] and [f["reach"] for f in found] == [1, 1, 0.5]
    solver = Solver(made, CPU, grid=grid)
    for entry, layer in zip(found, solver.sponges, strict=True):
        sigma = CPU.to_host(layer.sigma)[0, 0]
        assert entry["points"] == len(sigma) and entry["nodes"] == layer.sigma.size and entry["blocks"] == ["box"]
        # trapezoids over the layer and the node at which sigma is 0
        inward = sigma if entry["end"] > entry["start"] else sigma[::-1]
        values = np.concatenate([[0.0], inward])
        integral = np.trapezoid(values, dx=0.2)
        assert -np.log(entry["damping"]) == pytest.approx(integral, rel=0.02)
        assert entry["damping_db"] == pytest.approx(-20 * np.log10(entry["damping"]))


def test_a_run_places_its_sponges_by_regions():
    """The solver computes with them as with numbers; the case stays as it was written."""
    named = case(BOX, x({"face": "imax", "offset": -2.0}, {"face": "imax"}))
    numbers = case(BOX, x(6.0, 8.0))
    by_name, by_number = (Solver(made, CPU).sponges for made in (named, numbers))
    np.testing.assert_array_equal(CPU.to_host(by_name[0].sigma), CPU.to_host(by_number[0].sigma))
    assert Case.from_dict(named.document()).model_dump() == named.model_dump()


def test_the_memory_of_a_layer_is_foreseen():
    """A number for each node beyond its start, where it has no strength, and the state that it draws to."""
    made, (block,) = placed(BOX, x(6.0, 8.0))
    assert layer_reals(made.sponge[0], block) == 10 * 11 + 5
