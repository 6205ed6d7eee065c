"""Spectra over wavenumbers: Parseval, and waves of known variance."""

import json

import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

from watched_runs import tables

import hiresx
from hiresx import Case, HiresxError, Simulation
from hiresx.post import homogeneous_directions, wavenumber

LENGTH = 3.0
SPACING = 2 * np.pi / LENGTH


def box(n, periodic="xz", **changes) -> Case:
    return Case.from_dict(tables(n, (LENGTH, 1.0, LENGTH), periodic=periodic, **changes))


def kept(folder, states, n=(15, 8, 12), periodic="xz"):
    """A run with the fields of these states, one at each time."""
    case = box(n, periodic, output={"every_steps": 1}, time={"steps": len(states), "dt": 1e-9})
    run = Simulation(case, "cpu", initial=states[0], out=folder)
    fields = next(a for a in run.attachments if a.name == "fields")
    fields.begin(run.solver, False)
    for step, state in enumerate(states[1:], 1):
        block = run.blocks[0]
        run.solver.set_state(0, *state(block.x, block.y, block.z))
        run.solver.complete_state()
        run.solver.steps, run.solver.time = step, float(step)
        fields.after_step(run.solver)
    fields.finish(run.solver)
    record = {"status": "finished", "case": case.model_dump(mode="json")}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


@pytest.mark.parametrize(
    ("n", "periodic", "curves"),
    [((15, 8, 12), "xz", 5), ((16, 8, 11), "xz", 5), ((15, 8, 12), "xyz", 1)],
    ids=["odd", "even", "homogeneous"],
)
def test_sums_of_spectra_are_variances(tmp_path, n, periodic, curves):
    """Of noise on a large mean, along an odd and an even number of nodes. The curves of several places have a legend
    that names these, a single one has none."""
    rng = np.random.default_rng(1)

    def noise(x, y, z):
        return 1 + 0.1 * rng.random(x.shape), 5.0, 0.1 * rng.random(x.shape), 0.0, 100 + 1e-3 * rng.random(x.shape)

    folder = kept(tmp_path, [noise] * 3, n, periodic)
    for along in "ik":
        found = wavenumber(folder, ("rho", "v", "p"), along)
        legends = [ax.get_legend() for ax in found.draw().axes]
        assert [legend and len(legend.get_texts()) for legend in legends] == [curves if curves > 1 else None] * 3
        assert found.summary["times"] == 3 and found.summary["along"] == along
        assert [row["parseval_error"] < 1e-12 for row in found.summary["spectra"]] == [True] * 3, found.summary
    values = hiresx.open(folder).series(["v"])["box"]["v"].values
    variance = values.var(axis=(0, 1, 3) if curves > 1 else None)
    np.testing.assert_allclose(found.data["variance_v"].values, variance, rtol=1e-12)


def test_waves_have_their_places(tmp_path):
    """v = a(y) cos(3 k x) + b cos(2 k z), k the lowest wavenumber: half of a^2 at 3 k along x, half of b^2 at 0."""

    def waves(x, y, z):
        v = 0.1 * (1 + y) * np.cos(3 * SPACING * x + 1) + 0.05 * np.cos(2 * SPACING * z)
        return 1.0, 0.0, v, 0.0, 1 / 1.4

    found = wavenumber(kept(tmp_path, [waves]), ("v",)).data
    power = found["E_v"].values * SPACING
    y = found["y"].values
    np.testing.assert_allclose(found["wavenumber"].values, SPACING * np.arange(8))
    np.testing.assert_allclose(power[1:-1, 3], 0.5 * (0.1 * (1 + y[1:-1])) ** 2, rtol=1e-12)
    np.testing.assert_allclose(power[1:-1, 0], 0.5 * 0.05**2, rtol=1e-12)
    others = [m for m in range(8) if m not in (0, 3)]
    assert abs(power[1:-1, others]).max() < 1e-17


def test_what_cannot_be_is_refused(tmp_path):
    folder = kept(tmp_path, [lambda x, y, z: (1.0, 0.0, 0.0, 0.0, 1 / 1.4)])
    with pytest.raises(HiresxError, match='"j" is not periodic and uniform'):
        wavenumber(folder, ("u",), "j")
    with pytest.raises(HiresxError, match="speed"):
        wavenumber(folder, ("speeed",))


def test_the_image_of_the_first_node_is_left_out():
    """In a box that its boundary conditions make periodic along z alone; by `grid.periodic` it has no such node."""
    grid = {"generator": "box", "lower": [0.0, 0.0, 1.0], "upper": [2.0, 1.0, 4.0]}
    steps = {0: np.array([0.0, 0.0, 0.3]), 2: np.array([0.2, 0.0, 0.0])}
    assert homogeneous_directions.distinct({"grid": grid}, steps, (11, 5, 10)) == {"k": slice(10), "i": slice(10)}
