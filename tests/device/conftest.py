"""What several test files of the room are given."""

import pytest
from device_texts import ARITHMETIC, SOLVER, UPDATE

from hiresx import kernels
from hiresx.device import Configuration
from hiresx.device.configuration import FOLDERS
from hiresx.device.cpu import CpuBackend as CpuBackend
from hiresx.device.emulated import EmulatedBackend as EmulatedBackend


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """A kernels folder in which every choice of the default configuration is an empty header."""
    folder = tmp_path_factory.mktemp("kernels")
    for name in FOLDERS:
        (folder / name).mkdir()
        (folder / name / f"{getattr(Configuration(), name)}.h").write_text("")
    for name in ("fallback", "limiter"):
        (folder / f"positivity/{name}.h").write_text(
            f"constexpr bool limits_flux = {str(name == 'limiter').lower()};\n"
        )
    reach = "constexpr int interpolation_reach = 3;\nconstexpr int correction_reach = 3;\n"
    reach += "constexpr bool interpolates_nodes = true;\n"
    (folder / f"interpolation/{Configuration().interpolation}.h").write_text(reach)
    (folder / "deep").mkdir()
    (folder / "deep/update.h").write_text(UPDATE)
    (folder / "deep/constant.h").write_text("#define CONSTANT real(1)\n")
    (folder / "arithmetic.h").write_text(ARITHMETIC)
    (folder / "gas.h").write_text("")
    (folder / "equations.h").write_text("")
    (folder / "solver.h").write_text(SOLVER)
    for name in ("shim.h", "storage.h"):
        (folder / name).write_text((kernels.ROOT / name).read_text())
    return folder


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def environment(monkeypatch, shared_cache):
    """Compiled toys stay out of the user's cache."""
    monkeypatch.setenv("HIRESX_CACHE", str(shared_cache))
    monkeypatch.delenv("CXX", raising=False)


@pytest.fixture(params=[CpuBackend, EmulatedBackend], ids=["cpu", "emulated"])
def native(request, root):
    return request.param(root)


@pytest.fixture(params=["cpu", "emulated"])
def backend(request):
    return request.param
