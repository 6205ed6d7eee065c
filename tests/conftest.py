"""What every test is given: its share of the cores, and the signals of a program that is started in a terminal."""

import os
import signal

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
