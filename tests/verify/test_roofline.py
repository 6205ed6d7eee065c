"""Operations are counted as one would by hand; kernels stand beside the ceilings of their device."""

import operations
import pytest
import reported
import roofline

from hiresx.errors import HiresxError
from hiresx.output.show import picture_file


@pytest.mark.slow
def test_operations_are_those_of_the_text():
    found = operations.per_point("decomposed")
    assert found["update", None] == pytest.approx(11)  # dt / J, and a product and a sum for each variable
    assert found["flux_difference", "i"] == pytest.approx(5)  # the first direction sets,
    assert found["flux_difference", "j"] == pytest.approx(10)  # the others add
    assert found["interpolate", "i"] == found["interpolate", "k"] > 500
    sweep = operations.per_point("fused")["sweep_along", "i"]
    assert sweep == pytest.approx(
        sum(found[name, "i"] for name in ("interpolate", "numerical_flux", "flux_difference"))
        + found["physical_flux", None] / 3
    )


def test_what_moves_unknown_bytes_is_not_counted(monkeypatch):
    rows = [
        {"kernel": kernel, "direction": None, "ns_per_point": 2e9, "bytes_per_point": moved}
        for kernel, moved in (("update", 8.0), ("reduce", None))
    ]
    monkeypatch.setattr(operations.kernel_times, "prepare", lambda *asked: asked[2:])
    monkeypatch.setattr(operations.kernel_times, "stage_rows", lambda *prepared, repeats: rows)
    assert operations._count.__wrapped__("decomposed") == {("update", None): 2.0}


KERNELS = (("update", None, 168.0), ("inviscid_sweep", "i", 104.0), ("reduce", None, None))
RESULT = {
    "backend": "cpu",
    "copy_gb_per_s": 10.0,
    "gflop_per_s": {"fp64": 40.0},
    "kernels": [
        {"plan": "pencils", "precision": "fp64", "kernel": kernel, "direction": direction, "bytes_per_point": moved,
         "ns_per_point": 20.0}
        for kernel, direction, moved in KERNELS
    ],
}  # fmt: skip


@pytest.fixture
def rated(monkeypatch):
    known = {("update", None): 11.0, ("inviscid_sweep", "i"): 520.0, ("reduce", None): 3.0}
    monkeypatch.setattr(operations, "per_point", lambda plan: known)
    result = RESULT | {"kernels": [dict(row) for row in RESULT["kernels"]]}
    roofline.rate(result)
    return result


def test_the_nearer_ceiling_counts(rated):
    update, sweep, reduced = rated["kernels"]
    assert update["gflop_per_s"] == pytest.approx(0.55) and sweep["gflop_per_s"] == pytest.approx(26)
    assert update["of_ceiling"] == pytest.approx(168 / 20 / 10)  # bandwidth
    assert sweep["of_ceiling"] == pytest.approx(26 / 40)  # arithmetic
    assert reduced["operations_per_point"] is reduced["of_ceiling"] is None


def test_a_picture_of_it(rated, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    drawn, save = [], picture_file.save
    monkeypatch.setattr(picture_file, "save", lambda figure, to: drawn.append(figure) or save(figure, to))
    assert roofline.draw(rated, tmp_path / "r.png").stat().st_size > 10_000
    reported.check("drawn-roofline", reported.drawn(*drawn))
    with pytest.raises(HiresxError, match="no kernels"):
        roofline.draw(rated | {"kernels": []}, tmp_path / "none.png")
