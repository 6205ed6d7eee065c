"""The amplification of turbulence by a shock, of averages whose moments are known."""

import sys

import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

from hiresx import HiresxError, Simulation, load
from hiresx.cli import execute
from hiresx.exact.linear_interaction import isotropic_amplification
from hiresx.post import amplification

GIVEN = ("grid.n=[81,8,8]", "time.end=1e-5", "time.dt=1e-5", "average.start=0", "average.every=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A shock at x = 0 with velocities of known mean squares: R11 1.5 times as large behind it, R22 1.2 times."""
    case = load("shock-turbulence", overrides=GIVEN)

    def flow(x, y, z):
        rho, u, _, _, p = case.evaluate("behind", x, y, z)
        rho, u, p = (np.where(x < 0, a, b) for a, b in ((1.0, rho), (1.5, u), (1 / 1.4, p)))
        size = 0.01 * np.sqrt(np.where(x < 0, 1.0, 1.2))
        return rho, u + 0.01 * np.sqrt(np.where(x < 0, 1.0, 1.5)) * np.cos(y), size * np.cos(z), size * np.cos(y), p

    out = tmp_path_factory.mktemp("shock") / "run"
    Simulation(case, "cpu", initial=flow, out=out).run(progress=False)
    return out


def test_ratios_are_those_of_the_moments(folder):
    found = amplification(folder)
    rows = {row["quantity"]: row for row in found.summary["amplification"]}
    theory = isotropic_amplification(found.summary["mach"])
    assert found.summary["mach"] == pytest.approx(1.5, rel=1e-3) and abs(found.summary["shock_at_x"]) < 0.1
    for name, wanted in (("R11", 1.5), ("R22", 1.2), ("k", 1.3)):
        assert rows[name]["amplification"] == pytest.approx(wanted, rel=2e-3)
        assert rows[name]["difference"] == pytest.approx(wanted / getattr(theory, name) - 1, abs=2e-3)
    x, shock = found.data["x"].values, found.summary["shock_at_x"]
    ahead, behind = x[x < shock][:-6], x[x > shock][6:]  # without six nodes on either side
    behind = behind[behind < 6.5]  # where the sponge begins
    np.testing.assert_allclose(found.summary["ahead"], [(ahead[0] + ahead[-1]) / 2, ahead[-1]], rtol=1e-12)
    np.testing.assert_allclose(found.summary["behind"], [(behind[0] + behind[-1]) / 2, behind[-1]], rtol=1e-12)
    given = amplification(folder, (-1.2, -0.9), (1.0, 2.0)).summary
    assert given["behind"] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        ({"ahead": (0.5, 1.0)}, r"--ahead 0.5,1: no nodes there, or not from x = -1.5"),
        ({"behind": (8.6, 9.0)}, r"--behind 8.6,9"),
    ],
)
def test_ranges_on_the_wrong_side_are_refused(folder, ranges, said):
    with pytest.raises(HiresxError, match=said):
        amplification(folder, **ranges)


def test_a_range_is_two_numbers(folder, capsys):
    assert execute(["post", "amplification", str(folder), "--behind", "4,1"]) != 0
    assert "--behind 4,1: needs two numbers, the smaller one first" in "".join(capsys.readouterr())


def test_a_run_of_another_kind_is_refused_with_what_is_wanted(tmp_path):
    case = load("sod", overrides=["time.end=1e-3", "average.every=1"])
    Simulation(case, "cpu", out=tmp_path / "tube").run(progress=False)
    with pytest.raises(HiresxError, match="tube") as found:
        amplification(tmp_path / "tube")
    assert "along +x through a plane shock at rest" in found.value.hint and "j and k" in found.value.hint


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.assign(rho=1 + 0.02 * (d["rho"] > 1.1)), "rises nowhere by more than 2.00%"),
        (lambda d: d.assign(R_u_u=d["R_u_u"].where(d["x"] < 0, 1e-12)), "no turbulence has arrived .* R11 is"),
        (lambda d: d.assign(R_u_u=d["R_u_u"].where(d["x"] > 0, 0.0)), "there is no turbulence from x = -1"),
    ],
)
def test_averages_without_a_shock_or_turbulence_beside_it_are_refused(folder, monkeypatch, change, said):
    module = sys.modules[amplification.__module__]
    result = module.turbulence(folder, "j,k")
    result.data = change(result.data)
    monkeypatch.setattr(module, "turbulence", lambda run, over: result)
    with pytest.raises(HiresxError, match=said):
        amplification(folder)
