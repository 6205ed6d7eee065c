"""What the page of decaying turbulence keeps of a run, and how its table says it."""

import decaying_turbulence
import decaying_turbulence_runs
import numpy as np
import pytest

from hiresx import HiresxError


@pytest.mark.slow
def test_a_row_has_the_energies_and_what_was_lost():
    """On 12^3 nodes: the losses are the change of the energy within 2 %, most of it by the model; the shells hold the
    energy, but for waves in the corners beyond the largest sphere, of which there are none at the start."""
    row = decaying_turbulence_runs.outcome(decaying_turbulence_runs.SPLIT, "smagorinsky", 12, "cpu")
    energy, losses = row["energy"], row["losses"]
    assert sum(losses.values()) == pytest.approx(energy[0] - energy[-1], rel=0.02)
    assert losses["dissipation_model"] > 0.9 * sum(losses.values())
    assert [len(held) for held in row["spectra"]] == [5, 5, 5]
    assert sum(row["spectra"][0]) == pytest.approx(energy[0], rel=2e-3)
    assert sum(row["spectra"][-1]) < energy[-1]
    cells = decaying_turbulence.cells(row)
    assert len(cells) == len(decaying_turbulence.COLUMNS) and cells[:2] == ["split", "smagorinsky"]


def row(**changes):
    """A run whose shells have 1.1 and 0.8 times the measured energy at the two times."""
    spectra = [share * decaying_turbulence.measured(7, time) for share, time in ((1, 42), (1.1, 98), (0.8, 171))]
    losses = {"dissipation": 1.0, "dissipation_model": 6.0, "dissipation_numerical": 3.0}
    found = {"scheme": "split", "model": "wale", "points": 16, "spectra": spectra, "losses": losses, "seconds": 2}
    return found | changes


def test_cells_are_ratios_errors_and_shares():
    found = decaying_turbulence.cells(row())
    assert found == ["split", "wale", "1.100", "0.800", "0.10", "0.22", "10.0 %", "60.0 %", "30.0 %", "2.0"]
    assert abs(np.log(1.1)) == pytest.approx(0.10, abs=5e-3) and abs(np.log(0.8)) == pytest.approx(0.22, abs=5e-3)
    # the error is that of the wave numbers 2 to a third of 16
    spectra = [np.array(held) for held in row()["spectra"]]
    spectra[1][[0, 5, 6]] *= 3
    assert decaying_turbulence.cells(row(spectra=spectra))[4] == "0.10"
    spectra[1][1] *= 3
    assert float(decaying_turbulence.cells(row(spectra=spectra))[4]) > 0.5


def test_a_run_that_stopped_says_so(tmp_path):
    found = decaying_turbulence.cells(row(stopped="the flow blew up"))
    assert found[2] == "**stops**: the flow blew up" and len(found) == len(decaying_turbulence.COLUMNS)
    with pytest.raises(HiresxError, match="cannot read"):
        decaying_turbulence.write(tmp_path / "none.json", tmp_path / "page.md")
