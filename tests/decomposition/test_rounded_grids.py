"""Grids in single precision far from the origin: planes remain planes, as far as their coordinates tell."""

import numpy as np
import plot3d_files
import pytest

from hiresx import Case, Simulation
from hiresx.decomposition import domain
from hiresx.decomposition.curved_walls import curved_walls

P = 1 / 1.4
FAR = 1000.0


def wedge(bump=0.0) -> list[list[np.ndarray]]:
    """Two blocks between walls at 30 degrees to the x axis, far from the origin, the lower one with a bump."""
    blocks = []
    for first, n in ((0.0, 11), (1.0, 14)):
        y, x = np.meshgrid(np.linspace(0, 1, 9), np.linspace(first, first + 1, n), indexing="ij")
        y = y + bump * (1 - y) * np.sin(np.pi * x / 2) ** 2
        c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
        blocks.append([(FAR + c * x - s * y)[None], (0.3 * FAR + s * x + c * y)[None], 0 * x[None]])
    return blocks


def case(path, wall, scale=1.0, move=(0.0, 0.0, 0.0)) -> Case:
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    stream = {"rho": 1.0, "u": 0.5 * float(c), "v": 0.5 * float(s), "p": P}
    return Case.from_dict(
        {
            "grid": {"file": str(path), "scale": scale, "translate": list(move)},
            "gas": {"reynolds": 100.0},
            "time": {"steps": 20, "cfl": 0.5},
            "initial": {"state": stream},
            "boundary": [
                {"faces": ["imin", "imax"], "type": "far-field", "state": stream},
                {"faces": "all", **wall},
            ],
        }
    )


@pytest.mark.parametrize(
    "change", [{}, {"scale": 1e-3}, {"move": (-FAR, -0.3 * FAR, 0.0)}], ids=["as stored", "scaled", "moved"]
)
def test_a_plane_is_one_as_far_as_the_numbers_tell(tmp_path, change):
    found = {}
    for real, bump in (("f4", 0.0), ("f4", 0.02), ("f8", 0.0), ("f8", 1e-4)):
        path = tmp_path / "grid.xyz"
        plot3d_files.write(path, wedge(bump), real=real)
        whole = domain(case(path, {"type": "slip-wall"}, **change)).whole
        isothermal = domain(case(path, {"type": "no-slip-wall", "temperature": 1.0}, **change)).whole
        curved = {isothermal.patches[n].face for n in curved_walls(isothermal)}
        found[real, bump] = {whole.patches[w.place].face for w in whole.walls if w.normal is None}
        assert curved == found[real, bump]
    assert found == {("f4", 0.0): set(), ("f4", 0.02): {"jmin"}, ("f8", 0.0): set(), ("f8", 1e-4): {"jmin"}}


def test_a_stream_passes_along_a_plane_of_rounded_numbers(tmp_path):
    path = tmp_path / "grid.xyz"
    plot3d_files.write(path, wedge(), real="f4")
    simulation = Simulation(case(path, {"type": "symmetry"}), "cpu")
    simulation.run(progress=False)
    for b in simulation.blocks:
        # The nodes lie off the plane by 3e-5 of a length, 3e-4 of a cell.
        assert np.abs(b.state("p") / P - 1).max() < 3e-4
