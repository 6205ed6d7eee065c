"""The planar jet's nozzle does not ring: what is heard at its lips is the jet's."""

import numpy as np
import pytest

from hiresx import Simulation, load

# The tutorial's spacings on a smaller box.
COARSE = (
    "points_per_height=16", "boundary_layer_points=2", "exit_spacing=0.07", "length=4.0", "half_height=2.5",
    "upstream=1.6", "stretching=[1.03,1.08]", "sponge_length=3.0", "sponge_height=2.0", "sponge_stretching=1.15",
)  # fmt: skip
LIPS = 'probe=[{name="lips", points=[[-0.1,0.8,0.0],[-0.1,-0.8,0.0]], variables=["p"], every_time=0.04, filter="none"}]'


@pytest.mark.slow
def test_the_nozzle_does_not_ring_at_the_grid_s_scale():
    """With epsilon = 1e-6 both lips hear 132 dB at f = 6.2 from t = 2 on, in phase."""
    changes = [
        *(f"grid.{change}" for change in COARSE),
        "time.end=5.0",
        "output.every_time=100",
        "average.start=9",
        LIPS,
    ]
    simulation = Simulation(load("planar-jet", preset="quick", overrides=changes), backend="cpu")
    simulation.run(progress=False)
    lips = next(a.history.table() for a in simulation.attachments if a.name == "history.lips").data
    kept = lips["time"] >= 2
    values = lips["p"][kept] - lips["p"][kept].mean(axis=0)
    window = np.hanning(len(values))[:, None]
    power = 2 * np.abs(np.fft.rfft(values * window, axis=0)) ** 2 / len(values) / np.sum(window**2)
    above = np.fft.rfftfreq(len(values), 0.04) > 4
    level = 10 * np.log10(power[above].sum(axis=0)) + 20 * np.log10(1.4 * 101325 / 20e-6)
    assert level.max() < 100, level


def test_the_least_number_of_nodes_counts_the_spacings_behind_the_nozzle():
    """They grow along x by the first of the two ratios."""
    grid = load("planar-jet").grid.model_copy(update={"stretching": (1.02, 1.3)})
    x = np.linspace(0, grid.length, 100_001)
    spacing = np.hypot(grid.exit_spacing, np.log(1.02) * x)
    cells = float(np.sum(np.diff(x) / (0.5 * (spacing[1:] + spacing[:-1]))))
    assert grid.nodes == int(cells) * grid.points_per_height * grid.nk
