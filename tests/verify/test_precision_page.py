"""The page of precisions is what its stored results say."""

import json
from types import SimpleNamespace

from paths import ROOT
from precision import main
from precision_speed import STEPS, _advance


def test_the_page_is_of_its_results(tmp_path):
    results = [ROOT / "docs/results" / name for name in ("precision-h200.json", "precision-errors-cpu.json")]
    assert main([*map(str, results), "--out", str(tmp_path / "page.md")]) == 0
    assert main([str(results[0]), "--out", str(tmp_path / "none.md")]) == 2
    made = (tmp_path / "page.md").read_text()
    assert made == (ROOT / "docs/precision.md").read_text()
    for check in json.loads(results[1].read_text())["checks"]:
        assert f" {check['value']:.1e} " in made


def test_a_measurement_takes_its_steps():
    """However many the solver takes at once, and until the device is done."""
    taken, waits = [], SimpleNamespace(synchronize=lambda: taken.append(0))
    solver = SimpleNamespace(advance=lambda most: taken.append(min(most, 2)) or taken[-1], backend=waits)
    assert _advance(solver) > 0 and sum(taken) == STEPS and taken[-1] == 0
