"""What the picture of a scaling experiment shows: curves, bars and their heights."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pip install '.[plot]'")

from hiresx.scaling import store


def row(ranks, step, placement="spread", **stages):
    ideal = 0.008 / ranks if placement == "spread" else 0.01 / ranks
    return {
        "ranks": ranks, "placement": placement, "step_s": step, "least": 0.9 * step, "most": 1.2 * step,
        "efficiency": ideal / step, "stages": {"update": 0.25 * step, "halo": 0.5 * step} | stages,
    }  # fmt: skip


ROWS = [row(2, 0.004), row(3, 0.003), row(6, 0.002), row(3, 0.005, "close", io=0.001)]
PREDICTED = [{"ranks": 2, "step_s": 0.004, "efficiency": 1.0}, {"ranks": 12, "step_s": 0.001, "efficiency": 0.7}]


@pytest.mark.parametrize("mode", ["strong", "weak"])
def test_the_curves_are_those_of_the_rows(mode):
    document = {"mode": mode, "case": "box", "rows": ROWS, "predicted": PREDICTED}
    time, efficiency, parts = store._figure(document).axes
    drawn = {container.get_label(): container for container in time.containers}
    for placement, rows in (("spread", ROWS[:3]), ("close", ROWS[3:])):
        line, _, (bars,) = drawn[placement]
        np.testing.assert_allclose(line.get_xydata(), [(r["ranks"], 1e3 * r["step_s"]) for r in rows])
        ends = [((r["ranks"], 900 * r["step_s"]), (r["ranks"], 1200 * r["step_s"])) for r in rows]
        np.testing.assert_allclose(bars.get_segments(), ends)
    lines = {line.get_label(): line.get_xydata() for line in time.lines}
    np.testing.assert_allclose(lines["predicted"], [(2, 4.0), (12, 1.0)])
    ideal = [4.0, 8 / 3, 4 / 3, 2 / 3] if mode == "strong" else [4.0] * 4
    np.testing.assert_allclose(lines["without loss"], np.stack([(2, 3, 6, 12), ideal], axis=1))
    curves = [line.get_xydata() for line in efficiency.lines]
    for curve, rows in zip(curves, (ROWS[:3], ROWS[3:], PREDICTED), strict=False):
        np.testing.assert_allclose(curve, [(r["ranks"], 100 * r["efficiency"]) for r in rows])
    np.testing.assert_array_equal(curves[3][:, 1], 100)
    bars = {
        c.get_label(): [(b.get_x() + b.get_width() / 2, b.get_y(), b.get_height()) for b in c] for c in parts.containers
    }
    assert bars.keys() == {"update", "halo", "io"}
    heights = {name: [1e3 * r["stages"].get(name, 0.0) for r in ROWS] for name in bars}
    below = np.zeros(len(ROWS))
    for name, found in bars.items():
        np.testing.assert_allclose(found, np.stack([np.arange(len(ROWS)), below, heights[name]], axis=1), atol=1e-12)
        below += heights[name]
    assert [text.get_text() for text in parts.get_xticklabels()] == ["2\nspread", "3\nspread", "6\nspread", "3\nclose"]
    assert [text.get_text() for text in parts.get_legend().get_texts()] == [*bars][::-1]
