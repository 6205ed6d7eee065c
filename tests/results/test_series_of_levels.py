"""Series of files whose tiles of refinement change."""

import numpy as np
import pytest
from chosen_tiles import choose_tiles

import hiresx
from hiresx import Simulation
from hiresx.case import Case
from hiresx.errors import HiresxError

pytest.importorskip("xarray")


@pytest.mark.parametrize("coordinates", ["once", "each"])
def test_a_tile_of_one_shape_that_moves_makes_no_series_and_the_grid_does(monkeypatch, tmp_path, coordinates):
    """One tile of level 1 goes from the left to the right: its block has the same name and size in both files."""
    place = [0.3]

    def disc(table, flow, nodes, beyond):
        x, y = nodes[0][:, 1:-1, 1:-1], nodes[1][:, 1:-1, 1:-1]
        return ((x - place[0]) ** 2 + (y - 0.5) ** 2 < 0.01).astype(float)

    choose_tiles(monkeypatch, disc)
    case = Case.from_dict(
        {
            "grid": {
                "generator": "box", "n": [32, 24, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0],
                "periodic": ["x", "y"],
            },
            "refine": {"tile": 16, "criterion": "density-curvature", "every": 1, "levels": 1, "margin": 0},
            "initial": {"state": {"rho": 1.0, "u": 0.7, "v": 0.4, "p": 0.7}},
            "boundary": [{"faces": "all", "type": "periodic"}],
            "time": {"steps": 2, "dt": 1e-3},
            "output": {"every_steps": 1, "coordinates": coordinates},
        }
    )  # fmt: skip
    simulation = Simulation(case, backend="cpu", out=tmp_path)
    simulation.run(1, progress=False, write_last=False)
    place[0] = 0.8
    simulation.run(progress=False)
    assert simulation.adaptations.changes == 1
    run = hiresx.open(tmp_path)
    tile = next(name for name in run.fields(0).children if "level1" in name)
    before, after = (run.fields(step)[tile] for step in (1, 2))
    assert before.sizes == after.sizes and not np.array_equal(before.x, after.x)
    with pytest.raises(HiresxError, match=r"fields_000002.nc has other blocks than .*fields_000000.nc") as error:
        run.series(["rho"])
    kept = [name for name in run.fields(0).children if "level" not in name]
    assert f"give blocks = {kept!r}" in error.value.hint
    with pytest.raises(HiresxError, match="has other blocks"):
        run.series(["rho"], blocks=[tile])
    with pytest.raises(HiresxError, match='has no block "nowhere"'):
        run.series(["rho"], blocks=["nowhere"])
    series = run.series(["rho"], blocks=kept)
    assert list(series.children) == kept and series[kept[0]].rho.shape[0] == 3
    assert run.series(["rho"], end=1.5e-3)[tile].rho.shape[0] == 2  # as long as it stays
