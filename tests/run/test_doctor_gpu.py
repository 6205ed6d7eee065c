"""What doctor tells of the driver of NVIDIA GPUs, and what it has installed for it."""

import pytest

from hiresx.base import optional
from hiresx.cli import doctor


@pytest.mark.parametrize(
    ("driver", "told", "extra"),
    [
        (11080, "for CUDA 11.8", "cuda12"),
        (12000, "for CUDA 12.0", "cuda12"),
        (12090, "for CUDA 12.9", "cuda12"),
        (13000, "for CUDA 13.0", "cuda13"),
        (13020, "for CUDA 13.2", "cuda13"),
    ],
)
@pytest.mark.parametrize("gpus", [["A", "B"], []])
def test_a_driver(driver, told, extra, gpus, monkeypatch):
    monkeypatch.setattr(doctor, "_cuda_driver", lambda: (driver, gpus))
    monkeypatch.setattr(doctor, "_python", lambda code: (None, "ImportError: libcudart"))
    drivers, cards, cupy, nvrtc = doctor._gpu()
    assert (drivers.found, drivers.hint) == (told, "")
    assert (cards.found, cards.hint) == (("A; B", "") if gpus else (None, "nvidia-smi"))
    assert cupy.hint == nvrtc.hint == optional.install_command(extra) and extra in cupy.hint
    assert cupy.needed_for == "the cuda backend; it is installed but broken: ImportError: libcudart"
