"""The list of deliberate faults stays true: every place is found once, every test is there, all packages are in it, and
the script tells what is caught from what is not. Trying all of it takes minutes: python tests/deliberate_faults.py."""

import ast
import re
import subprocess
import sys
from functools import cache

import deliberate_faults as script
import pytest

FAULTS = script.read()


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((script.ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_place_is_found_once():
    assert not [fault.name for fault in FAULTS if not fault.anchored(script.ROOT)]


def test_every_fault_changes_something_and_leaves_python():
    for fault in FAULTS:
        assert fault.old != fault.new, fault.name
        if fault.file.endswith(".py"):
            text = (script.ROOT / fault.file).read_text(encoding="utf-8")
            ast.parse(fault.applied(text), fault.name)


def test_every_test_is_there():
    for fault in FAULTS:
        assert fault.tests, fault.name
        for test in fault.tests:
            file, _, function = test.partition("::")
            assert re.sub(r"\[.*", "", function) in functions(file), f"{fault.name}: {test}"


@pytest.mark.slow
def test_every_test_with_parameters_is_collected():
    """A parameter that a test got later changes its name, and nothing is tried then."""
    named = {test: fault.name for fault in FAULTS for test in fault.tests if "[" in test}
    files = sorted({test.partition("::")[0] for test in named})
    pytest_ = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", "-m", "slow or not slow"]
    done = subprocess.run([*pytest_, *files], cwd=script.ROOT, capture_output=True, text=True, timeout=300)
    collected = set(done.stdout.splitlines())
    assert {test: name for test, name in named.items() if test not in collected} == {}, done.stderr


def test_the_list_is_long_enough_and_covers_every_package():
    assert len(FAULTS) >= 80 and len({fault.name for fault in FAULTS}) == len(FAULTS)
    rooms = {"/".join(fault.file.split("/")[: 2 if fault.file.startswith("hiresx/") else 1]) for fault in FAULTS}
    named = {"case", "grid", "decomposition", "device", "rhs", "time", "exchange", "placement", "launch", "output"}
    assert {"kernels", "topology", *(f"hiresx/{name}" for name in named)} <= rooms


LIST = """
[[fault]]
name = "caught"
file = "hiresx/decomposition/halo_bytes.py"
old = "per_node = cut.stencil.halo"
new = "per_node = (cut.stencil.halo - 1)"
tests = ["tests/decomposition/test_partition.py::test_bytes_of_a_stage"]

[[fault]]
name = "harmless"
file = "hiresx/decomposition/halo_bytes.py"
old = "per_node = cut.stencil.halo"
new = "per_node = (cut.stencil.halo)"
tests = ["tests/decomposition/test_partition.py::test_bytes_of_a_stage"]

[[fault]]
name = "no program"
file = "hiresx/decomposition/halo_bytes.py"
old = "matrix[rank[c.donor], rank[c.block]] +="
new = "matrix[rank[c.donor], ranks[c.block]] +="
tests = ["tests/decomposition/test_partition.py::test_bytes_of_a_stage"]

[[fault]]
name = "nowhere"
file = "hiresx/decomposition/halo_bytes.py"
old = "this stands nowhere"
new = ""
tests = ["tests/decomposition/test_partition.py::test_bytes_of_a_stage"]
"""


@pytest.mark.slow
def test_the_script_tells_what_is_caught(tmp_path, capsys):
    (tmp_path / "list.toml").write_text(LIST)
    before = (script.ROOT / "hiresx/decomposition/halo_bytes.py").read_bytes()
    assert script.main(["--from", str(tmp_path / "list.toml"), "--jobs", "1"]) == 1
    said = capsys.readouterr().out
    lines = " caught  caught", " survived  harmless", "does not run  no program", "not found once  nowhere", "1 of 4"
    assert all(line in said for line in lines), said
    assert (script.ROOT / "hiresx/decomposition/halo_bytes.py").read_bytes() == before


def test_what_there_is(capsys):
    assert script.main(["--list", "--only", FAULTS[0].name]) == 0
    said = capsys.readouterr().out
    assert FAULTS[0].name in said and FAULTS[0].tests[0] in said
    with pytest.raises(SystemExit):
        script.main(["--only", "no such fault"])
