"""The checks of kernels without a GPU find what they are there for."""

import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import numpy as np
import pytest
import sanitize
from sanitize_backend import CheckingBackend
from sanitize_flows import computed

from hiresx import kernels
from hiresx.device import Configuration, emulated
from hiresx.errors import HiresxError
from hiresx.verify.groups.kernels import AGREE, differences

# Kernels that are at fault where they are told to be.
FAULTS = """
KERNEL(put, int i, int j, int k, int to, real *a) { (void)j, (void)k, a[i + to] = real(1); }
KERNEL(shift, int i, int j, int k, const real *given, real *a) {
    (void)j, (void)k, a[i] = given[i > 0 ? i - 1 : 0] + real(1);
}
ROW_KERNEL(turn, int i, int j, int k, int meets, int waits, int beyond, const real *given, real *a) {
    SHARED real held[32];
    (void)i, (void)j, (void)k;
    LANES {
        FETCH(held[lane], given + lane);
        if (waits) FETCHED;
        if (!meets) a[lane] = held[31 - lane];
    }
    LANES {
        if (meets) a[lane] = held[31 - lane + beyond];
    }
}
"""
ORDERS = (0, *sanitize.ORDERS)


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("checked") / "kernels"
    # Conditions and terms come behind solver.h by themselves, with the whole scheme.
    copytree(kernels.ROOT, found, ignore=ignore_patterns("__pycache__", "boundary", "terms"))
    (found / "boundary").mkdir()
    (found / "terms").mkdir()
    (found / "solver.h").write_text(FAULTS)
    return found


@pytest.fixture(params=ORDERS)
def device(root, request) -> CheckingBackend:
    return CheckingBackend(request.param, root=root)


def turned(device, meets: bool, waits: bool) -> np.ndarray:
    """32 numbers backwards."""
    numbers, a = device.to_device(np.arange(32.0)), device.empty(32)
    program = device.compile(Configuration())
    program.launch("turn", (1, 1, 1), meets=int(meets), waits=int(waits), beyond=0, given=numbers, a=a)
    return np.asarray(a)


def test_a_warp_that_meets_and_waits_does_well_in_any_order(device):
    assert turned(device, meets=True, waits=True).tolist() == list(range(31, -1, -1))


def test_a_warp_that_does_not_meet_is_found(root):
    found = [turned(CheckingBackend(order, root=root), meets=False, waits=True) for order in ORDERS]
    assert all(sanitize.changes([one], [found[0]]) for one in found[1:])


def test_a_fetch_that_nobody_waits_for_is_nowhere(device):
    assert np.isnan(turned(device, meets=True, waits=False)).all()


def test_threads_that_read_what_others_write_are_found(root):
    """Within a block, and beyond it."""
    for count in (32, 1000):
        found = []
        for order in ORDERS:
            device = CheckingBackend(order, root=root)
            a = device.to_device(np.zeros(count))
            device.compile(Configuration()).launch("shift", (count, 1, 1), given=a, a=a)
            found.append([np.asarray(a)])
        assert all(sanitize.changes(one, found[0]) for one in found[1:])


def test_launches_that_are_said_to_be_independent_and_are_not_are_found(root):
    found = []
    for order in (0, 1):
        device = CheckingBackend(order, root=root)
        program, a, b = device.compile(Configuration()), device.to_device(np.zeros(8)), device.to_device(np.zeros(8))
        calls = [program.call("shift", (8, 1, 1), given=x, a=y) for x, y in ((a, b), (b, a))]
        program.prepare([calls])()
        found.append([np.asarray(a), np.asarray(b)])
    assert sanitize.changes(found[1], found[0])


def test_memory_that_nobody_wrote_is_found(device):
    program, a = device.compile(Configuration()), device.empty(8)
    program.launch("shift", (8, 1, 1), given=device.zeros(8), a=a)
    assert np.isnan(a).all()
    quiet = CheckingBackend(device.order, poisoned=False, root=device._root)
    program.launch("shift", (8, 1, 1), given=quiet.zeros(8), a=a)
    assert (np.asarray(a) == 1).all()


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        ('"put", (8, 1, 1), to=0, a=a', ""),
        ('"put", (8, 1, 1), to=1, a=a', "use-after-poison"),
        ('"put", (8, 1, 1), to=-1, a=a', "use-after-poison"),
        ('"turn", (1, 1, 1), meets=1, waits=1, beyond=0, given=b, a=b', ""),
        ('"turn", (1, 1, 1), meets=1, waits=1, beyond=1, given=b, a=b', "out of bounds"),
    ],
    ids=["fits", "behind", "ahead", "on the chip", "beyond what is on the chip"],
)
def test_memory_of_others_is_found(root, launch, said):
    script = (
        "from hiresx.device import Configuration\n"
        "from sanitize_backend import CheckingBackend\n"
        f"device = CheckingBackend(memory=True, root=__import__('pathlib').Path({str(root)!r}))\n"
        "program, a, b = device.compile(Configuration()), device.zeros(8), device.zeros(32)\n"
        f"program.launch({launch})\n"
    )
    try:
        environment = sanitize.preloaded()
    except HiresxError as error:
        pytest.skip(str(error))
    environment |= {"PYTHONPATH": str(Path(sanitize.__file__).parent)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert bool(done.returncode) == bool(said), done.stderr
    assert said in done.stderr and "kernels/solver.h" in done.stderr + "kernels/solver.h" * (not said)


# ---- the kernels as they are, and with a fault in them

END = "            if (base + 31 + FUSED_REACH + lane < end + FUSED_REACH) FUSED_ARRIVE"
COMPONENTS = "for (int d = 0; d < {}; ++d) {{\n        const double *a"
REAL = {
    "a warp does not meet": (
        "fused.h",
        "        }\n        LANES {\n            for (int s = lane; s < 32 + corrected - 2; s += 32)",
        "            for (int s = lane; s < 32 + corrected - 2; s += 32)",
        "racecheck",
        "turned blocks",
    ),
    "a fetch is not waited for": ("fused.h", f"            FETCHED;\n{END}", END, "initcheck", "turned blocks"),
    # of a plane grid, where it would be zero
    "an area is not written": ("metrics.h", COMPONENTS.format(3), COMPONENTS.format(2), "initcheck", "axisymmetric"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", REAL)
def test_a_fault_of_the_kernels_is_found(fault, tmp_path):
    header, old, new, tool, flow = REAL[fault]
    root = tmp_path / "kernels"
    copytree(kernels.ROOT, root, ignore=ignore_patterns("__pycache__"))
    text = (root / header).read_text()
    assert text.count(old) == 1
    (root / header).write_text(text.replace(old, new))
    found = {finding.tool: finding.fault for finding in sanitize.findings(flow, "fused", [tool], root)}
    assert found[tool]


@pytest.mark.slow
def test_verification_compares_what_no_order_of_points_changes():
    configuration = Configuration(viscosity="sutherland", schmidt=(0.7,))
    found = differences([emulated.EmulatedBackend(), CheckingBackend(order=2, poisoned=False)], configuration)
    assert len(found) > 60 and {name: worst for name, worst in found.items() if not worst < AGREE} == {}


@pytest.mark.slow
def test_launches_of_several_blocks_as_one_do_not_go_by_the_order_of_threads():
    usual = computed("turned blocks", "fused", CheckingBackend(0, poisoned=False))
    for order in ORDERS:
        found = computed("turned blocks", "fused", CheckingBackend(order, poisoned=False, batches=True))
        assert not sanitize.changes(found, usual)


@pytest.mark.slow
def test_nothing_is_found_in_the_kernels_as_they_are(capsys):
    assert sanitize.main(["--flows", "turned blocks", "--json"]) == 0
    said = capsys.readouterr().out
    assert said.count('"racecheck"') == said.count('"memcheck"') == said.count('"initcheck"') == 2


@pytest.mark.slow
def test_every_kernel_stays_within_its_test_arguments(capsys):
    """Those of `hiresx verify kernels`."""
    assert sanitize.main(["--flows", "every kernel", "--json"]) == 0
    assert capsys.readouterr().out.count('"memcheck"') == 1


def test_compute_sanitizer_is_called_where_there_is_a_gpu(monkeypatch, capsys, tmp_path):
    """A stand-in for it, which finds something with one of the tools."""
    program = tmp_path / "compute-sanitizer"
    program.write_text(
        "#!/bin/sh\n"
        'echo "$@" >> "$(dirname "$0")/asked"\n'
        'case "$2" in racecheck) echo "========= Error: Race reported between Write and Read"; exit 9;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert sanitize.main(["--on", "cuda", "--flows", "jet,patched faces", "--tools", "memcheck,racecheck"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in said] == ["found", "Read", "found", "Read"]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 4 and asked[0].startswith("--tool memcheck --error-exitcode 9 --padding 512")
    assert asked[3].endswith("--inside --on cuda --tools racecheck --flows patched faces")


def test_a_tool_that_is_not_there_is_said(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sanitize.main(["--on", "cuda"]) == 2
    assert "there is no compute-sanitizer" in capsys.readouterr().err
