"""The list of registers and spills of the kernels (docs/make/kernel_registers.py)."""

import json

import kernel_registers
import pytest

from hiresx import kernels
from hiresx.case.viscosity import VISCOSITIES
from hiresx.device import Configuration, nvrtc
from hiresx.equations.storage import PRECISIONS

pytest.importorskip("cupy", reason="pip install '.[cuda13]'")

KERNEL = """
extern "C" __global__ void halve(int n, float *a) { if (threadIdx.x < n) a[threadIdx.x] *= 0.5f; }
"""


def test_command_line(capsys, monkeypatch):
    monkeypatch.setattr(kernel_registers, "each_choice", lambda: [Configuration(), Configuration(viscosity="constant")])
    monkeypatch.setattr(kernel_registers, "generate", lambda *_: (KERNEL, {}))
    assert kernel_registers.main(["--arch", "sm_75,sm_90", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nvrtc"] == nvrtc.version()
    assert [entry["architecture"] for entry in found["entries"]] == ["sm_75", "sm_90"] * 2
    assert found["entries"][3]["configuration"] == {"viscosity": "constant"}
    assert kernel_registers.main(["--arch", "sm_90"]) == 0
    assert "viscosity=constant, sm_90" in capsys.readouterr().out
    assert kernel_registers.main(["--arch", "sm_1"]) == 2
    assert "sm_1" in capsys.readouterr().err


def test_what_takes_more_than_before():
    kernel = {"kernel": "update", "registers": 40, "spill_stores": 0, "spill_loads": 0, "stack": 0}
    entry = {"configuration": {"flux": "roe"}, "architecture": "sm_80", "kernels": [kernel]}
    before = {"kind": "registers", "nvrtc": "13.5", "entries": [entry]}

    def now(compiler: str, **changed):
        return before | {"nvrtc": compiler, "entries": [entry | {"kernels": [kernel | changed]}]}

    assert kernel_registers.find_growth(before, before) == []
    assert kernel_registers.find_growth(before, now("13.5", registers=41)) == [
        "update for sm_80 (flux=roe): registers 40 -> 41"
    ]
    assert kernel_registers.find_growth(before, now("13.6", registers=41)) == []  # another compiler's count
    assert kernel_registers.find_growth(before, now("13.6", spill_loads=8)) == [
        "update for sm_80 (flux=roe): spill_loads 0 -> 8"
    ]
    assert kernel_registers.find_growth(before, now("13.5", kernel="new", registers=99)) == []


def test_a_kernel_that_takes_more_fails_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(kernel_registers, "each_choice", lambda: [Configuration()])
    monkeypatch.setattr(kernel_registers, "generate", lambda *_: (KERNEL, {}))
    path = tmp_path / "before.json"
    assert kernel_registers.main(["--arch", "sm_90", "--json"]) == 0
    path.write_text(capsys.readouterr().out)
    assert kernel_registers.main(["--arch", "sm_90", "--against", str(path)]) == 0
    found = json.loads(path.read_text())
    found["entries"][0]["kernels"][0]["registers"] -= 1
    path.write_text(json.dumps(found))
    capsys.readouterr()
    assert kernel_registers.main(["--arch", "sm_90", "--against", str(path)]) == 1
    assert "grown: " in capsys.readouterr().err
    path.write_text("{}")
    assert kernel_registers.main(["--arch", "sm_90", "--against", str(path)]) == 2


def test_each_choice_has_every_header():
    configurations = kernel_registers.each_choice()
    assert len(set(configurations)) == len(configurations)
    for folder in ("flux", "weights", "positivity", "interpolation", "space"):
        assert {getattr(configuration, folder) for configuration in configurations} == set(kernels.choices(folder))
    assert {configuration.turbulence for configuration in configurations} == set(kernels.choices("turbulence"))
    assert {configuration.viscosity for configuration in configurations} == {"none", *VISCOSITIES}
    assert {configuration.precision for configuration in configurations} == set(PRECISIONS)
