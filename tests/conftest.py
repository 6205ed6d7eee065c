"""What every test is given: its share of the cores, a C++ compiler, and the signals of a program that is started in a
terminal. Which tests are long."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hiresx.base.termination_signals import ENDING

# Tests side by side (pytest-xdist): the workers share the cores, and a test has the threads of its worker.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
if WORKERS > 1:
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // WORKERS)))


def pytest_xdist_auto_num_workers(config):
    """One worker more than there are cores for `-n auto`: at any time some tests wait, for ranks, for the compiler of
    another worker or for a clock."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Each worker begins to collect at another file of a folder: it rewrites the assertions of the files behind it, and
    finds those of the other workers rewritten. One worker takes 15 seconds for all files."""
    report = yield
    if isinstance(collector, pytest.Dir):
        first = len(report.result) * WORKER // WORKERS
        report.result = report.result[first:] + report.result[:first]
    return report


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


# Rooms and files whose kernels are compiled as users have them, by -O3: tests/device, tests/verify and
# test_backends_agree.py compare what each kernel gives, and what test_info_diff.py sees printed of runs may tell the
# place of a greatest difference, which goes by a last bit. For all other tests, of flows, files, ranks and commands,
# the compiler optimises less: -Og, with the pass that keeps small arrays in registers, takes half the time of -O1 and
# makes most kernels as fast; some take up to 1.7 times as long. With few copies of functions (arithmetic.h) only the
# arithmetic and small functions are inlined. Kernels of the implicit integrator are then compiled in a quarter of the
# time, the others in 70 % of it. Steps of small flows take 2 to 16 % longer. A CXX of the caller is left as it is:
# `CXX=g++ pytest` has all compile as users do.
AS_USERS = {"device", "verify", "test_backends_agree.py", "test_info_diff.py"}
# Without a path, so that copies of these files find each other's kernels in a cache. By -O0 kernels would take so long
# that nothing is gained.
COMPILER = """bash -c 'exec g++ "${@/#-O[123]/-Og}" -ftree-sra -finline-small-functions -DHX_FEW_COPIES' g++"""
GIVEN_COMPILER = os.environ.get("CXX")


# Ahead of what sets up the fixtures, some of which compile.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """The compiler of this test, and of the programs that it starts."""
    if GIVEN_COMPILER is not None:
        return
    room = item.path.relative_to(Path(__file__).parent).parts[0]
    if AS_USERS & {room, item.path.name}:
        os.environ.pop("CXX", None)
    else:
        os.environ["CXX"] = COMPILER


LISTS = Path(__file__).parent


def listed(mark: str) -> set[str]:
    """The tests and files, by what pytest calls them, that <mark>.txt names."""
    lines = (LISTS / f"{mark}.txt").read_text(encoding="utf-8").splitlines()
    return {line.split(maxsplit=1)[1] for line in lines if line and not line.startswith("#")}


# Ahead of the hook that deselects by marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Those of slow.txt and long.txt are marked; the tests that take minutes come first, so that no worker is left with
    one of them alone at the end."""
    slow, long = listed("slow"), listed("long")
    files, tests = set(), set()
    for item in items:
        file = item.nodeid.partition("::")[0]
        files.add(file)
        tests.add(item.nodeid)
        if item.nodeid in slow | long:
            item.add_marker(pytest.mark.slow)
        if {item.nodeid, file} & long:
            item.add_marker(pytest.mark.long)
    # A file is left out whole where a library that its tests need is not there.
    missing = sorted(name for name in slow | long if name.partition("::")[0] in files and name not in files | tests)
    if missing and config.args == config.getini("testpaths"):
        raise pytest.UsageError(f"slow.txt or long.txt name tests that there are not: {', '.join(missing)}")
    items.sort(key=lambda item: (item.path.name != "test_verification.py", WORKERS > 1 and item.path.parts))
