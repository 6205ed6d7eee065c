"""What every test is given: its share of the cores, a compiler that reads a large header once, and the signals of a
program that is started in a terminal."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hiresx.base.signals import ENDING

# Tests side by side (pytest-xdist): the workers share the cores, and a test has the threads of its worker.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if WORKERS > 1:
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // WORKERS)))

# On cores that others use too, an example may take any time.
settings.register_profile("shared cores", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared cores")


# g++ with a precompiled header, which CI puts in the place of g++.
PRECOMPILING = Path(__file__).parents[1] / ".ci/g++"


def pytest_configure(config):
    """Workers compile with a precompiled header: hundreds of sets of kernels in a third less time, the same ones. It
    takes longer than it saves where few tests are run one after the other, and lies where all workers find it."""
    compiler = shutil.which("g++")
    wanted = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if not wanted or compiler is None or not PRECOMPILING.exists() or {"CXX", "PRECOMPILED"} & os.environ.keys():
        return
    scratch = tempfile.TemporaryDirectory(prefix="hiresx-tests-")
    config.add_cleanup(scratch.cleanup)
    place = Path(scratch.name)
    (place / "bin").mkdir()
    (place / "bin/g++").symlink_to(PRECOMPILING)
    os.environ |= {
        "COMPILER": compiler, "PRECOMPILED": str(place / "headers"),
        "PATH": f"{place / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
    }  # fmt: skip


@pytest.fixture(autouse=True, scope="session")
def heard_signals():
    """What a shell's background job or nohup has ignored is heard while there are tests, by what they start too."""
    ignored = [number for number in ENDING if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def pytest_collection_modifyitems(items):
    """The tests that take minutes first, so that no worker is left with one of them alone at the end."""
    items.sort(key=lambda item: item.path.name != "test_verification.py")
