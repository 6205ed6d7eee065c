"""Pictures of machines: where GPUs, switches, nodes and what explains them are drawn."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pip install '.[plot]'")

from topology_recordings import level_matrix, smi

from hiresx.topology import diagram
from hiresx.topology.cost import Model, traffic
from hiresx.topology.parse_smi import parse_smi

# Two pairs of GPUs under a switch each, on two sockets.
PAIRS = parse_smi(
    smi(level_matrix(4, ("PIX", [(0, 1), (2, 3)]), ("NODE", [(0, 1), (2, 3)])), ["0-3"] * 2 + ["4-7"] * 2)
)


def segments(axes):
    """From the lower to the upper end, to two digits."""
    found = {
        tuple(sorted(zip(*np.round(line.get_data(), 2), strict=True), key=lambda end: end[::-1])) for line in axes.lines
    }
    return {(tuple(map(float, low)), tuple(map(float, high))) for low, high in found}


def test_groups_are_drawn_above_the_middle_of_their_members():
    figure = diagram._figure(PAIRS, None, None, "")
    (axes,) = figure.axes
    x = [text.get_position()[0] for text in axes.texts if text.get_text().startswith("GPU")]
    assert len(x) == 4 and np.diff(x).min() > 0
    middles = [(x[0] + x[1]) / 2, (x[2] + x[3]) / 2]
    assert middles[0] % 1 and middles[1] % 1, "between whole numbers"
    heights = diagram.HEIGHTS
    for gpu in range(4):
        below = (round(x[gpu], 2), heights["GPU"])
        assert (below, (round(middles[gpu // 2], 2), heights["PIX"])) in segments(axes)
    places = {text.get_text(): text.xy for text in axes.texts if hasattr(text, "xy")}
    assert places["switch"][1] == heights["PIX"] and places["switch"][0] in middles
    nodes = [at for label, at in places.items() if label not in ("switch", "switches")]
    assert {at[1] for at in nodes} == {heights["NODE"]} and {at[0] for at in nodes} <= set(middles)


def test_widths_and_the_legend():
    """The busiest link is the widest; what explains the picture lies below the machine, in its middle."""
    demand = traffic(1e6 * np.array([[0, 1, 0, 0], [1, 0, 0, 4], [0, 0, 0, 1], [0, 4, 1, 0]]))
    placement = [0, 1, 2, 3]
    figure = diagram._figure(PAIRS, placement, Model(PAIRS).estimate(demand, placement), "as asked")
    figure.canvas.draw()
    (axes,) = figure.axes
    assert max(line.get_linewidth() for line in axes.lines) == pytest.approx(diagram.WIDEST)
    assert min(line.get_linewidth() for line in axes.lines) >= diagram.THINNEST
    legend = axes.get_legend()
    box, around = legend.get_window_extent(), axes.get_window_extent()
    assert (box.x0 + box.x1) / 2 == pytest.approx((around.x0 + around.x1) / 2, rel=1e-3)
    _, lowest = axes.transData.transform((0.0, -0.28))  # the lower edge of the GPUs
    assert box.y1 < lowest
    assert [text.get_text() for text in legend.get_texts()][-2:] == [
        "GPU with ranks", "width: load, this wide the busiest"
    ]  # fmt: skip
    assert axes.get_title().startswith("as asked\n") and "busiest link" in axes.get_title()
