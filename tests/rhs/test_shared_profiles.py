"""A function of the case that gives the state at several patches and times is called once for all of them."""

import numpy as np
import pytest
from checkpoint_cases import CHANNEL, gust, swell

from hiresx import Case, Simulation, load
from hiresx.decomposition import Part
from hiresx.rhs import shared_profiles
from hiresx.rhs.prescribed_waves import OTHER_TIME
from hiresx.solver import conditions


def parts_along_j(whole):
    """The block in three parts, each with a piece of the inlet."""
    ni, nj, nk = whole.blocks[0].size
    ends = [0, nj // 3, 2 * nj // 3, nj]
    return [Part(0, ((0, ni), (ends[n], ends[n + 1]), (0, nk))) for n in range(3)]


def run(profile, parts=parts_along_j):
    simulation = Simulation(Case.model_validate(TALL), backend="cpu", profiles={"gust": profile}, parts=parts)
    simulation.run(progress=False)
    return simulation, [np.array(state.interior(state.q)) for state in simulation.solver.states]


TALL = CHANNEL | {"grid": CHANNEL["grid"] | {"n": [CHANNEL["grid"]["n"][0], 36, 1]}}


def test_several_patches_are_asked_for_together_and_the_flow_is_the_same(monkeypatch):
    shapes = []

    def counted(x, y, z, t):
        shapes.append((x.shape, t))
        return gust(x, y, z, t)

    _, flows = run(counted)
    # once for all patches, but at first also for each of them, to compare
    later = [(shape, t) for shape, t in shapes if t != shapes[0][1] + OTHER_TIME]
    assert len({t for _, t in later}) == len(later) > 5 and all(len(shape) == 1 for shape, _ in later)
    monkeypatch.setattr(conditions, "shared_profiles", lambda *arguments: [])
    _, apart = run(gust)
    for one, other in zip(flows, apart, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.ptp(flows[0]) > 1e-3


def test_waves_are_left_to_each_patch():
    """The device computes them, so the function is not called during steps."""
    times = []

    def counted(x, y, z, t):
        times.append(t)
        return swell(x, y, z, t)

    simulation, flows = run(counted)
    inlets = [c for c in simulation.solver.conditions if c.patch.face == "imin"]
    assert len(inlets) == 3 and all(c.moves for c in inlets)
    assert set(times) == {0.0, OTHER_TIME}, "before the first step only"
    _, whole = run(swell, parts=None)
    np.testing.assert_allclose(np.concatenate(flows, axis=2), whole[0], rtol=1e-13, atol=1e-14)


def first_place(x, y, z, t):
    """Different values, without an error, when it is called for several patches together."""
    rho, u, v, w, p = gust(x, y, z, t)
    return rho * (1 + 0.1 * np.sin(20 * t) * (y.ravel()[0] + 0.2)), u, v, w, p


def three_dimensions(x, y, z, t):
    """An error then."""
    rho, u, v, w, p = gust(x, y, z, t)
    return rho * (1 + 0.1 * np.sin(20 * t) * (x[0, 0, 0] + 0.2)), u, v, w, p


@pytest.mark.parametrize("profile", [first_place, three_dimensions])
def test_functions_of_whole_patches_are_called_for_each(profile, monkeypatch):
    _, flows = run(profile)
    monkeypatch.setattr(conditions, "shared_profiles", lambda *arguments: [])
    _, apart = run(profile)
    for one, other in zip(flows, apart, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.ptp(flows[0]) > 1e-3


def test_a_function_is_compared_once_while_tiles_change(monkeypatch):
    compared, agree = [], shared_profiles.SharedProfile._agree
    monkeypatch.setattr(
        shared_profiles.SharedProfile, "_agree", lambda self, time: compared.append(time) or agree(self, time)
    )
    simulation = Simulation(load("double-mach", preset="levels-quick"), backend="cpu")
    for _ in range(12):
        simulation.adapt()
        simulation.step()
        simulation.step()
    assert simulation.adaptations.changes > 1 and len(compared) == 1
