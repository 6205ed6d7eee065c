"""The rooms stand on floors: a room imports only from the rooms below it."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from paths import ROOT

# From the ground up. A name is a package or a module of hiresx.
FLOORS = (
    ("announce", "arrays", "errors", "kernels", "parallel", "plural", "shell", "signals"),
    ("exact", "optional"),
    ("started",),
    ("communicator",),
    ("background",),
    ("equations",),
    ("case",),
    ("grid",),
    ("decomposition",),
    ("device",),
    ("rhs",),
    ("time",),
    ("estimate", "resolution"),
    ("exchange",),
    ("solver",),
    ("placement",),
    ("launch",),
    ("output",),
    ("blow_up",),
    ("bench",),
    ("logbook",),
    ("simulation",),
    ("scaling",),
    ("verify",),
    ("results",),
    ("post",),
    ("sweeps",),
    ("cli",),
    ("__main__",),
)
# Rooms that stand beside the house: what they may use of it, and who may use them.
BESIDE = {"topology": {"errors", "optional", "plural"}}
USERS = {"topology": {"device", "placement", "launch", "scaling", "cli"}}
LEVEL = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def _sources():
    for path in sorted(ROOT.glob("hiresx/**/*.py")):
        yield path, path.relative_to(ROOT / "hiresx").parts[0].removesuffix(".py")
    for room in ("kernels", "topology"):
        for path in sorted(ROOT.glob(f"{room}/**/*.py")):
            yield path, room


def _imports(path: Path) -> set[str]:
    """Rooms of hiresx that a file imports, at its top or inside its functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module] if node.module != "hiresx" else [f"hiresx.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "hiresx" and len(parts) > 1:
                found.add(parts[1])
    return found


@pytest.mark.parametrize(("path", "room"), [pytest.param(*s, id=str(s[0].relative_to(ROOT))) for s in _sources()])
def test_imports_run_downwards(path, room):
    if room == "__init__":
        return  # names the public things, resolved on use
    for used in _imports(path) - {room, "__version__", "cases"}:
        if room in BESIDE:
            assert used in BESIDE[room], f"{path.name} imports hiresx.{used}: {room} may use {BESIDE[room]}"
        elif used in BESIDE:
            assert room in USERS[used], f"{path.name} imports hiresx.{used}, which is for {USERS[used]}"
        else:
            assert used in LEVEL, f"{path.name} imports hiresx.{used}, which stands on no floor: add it to FLOORS"
            assert LEVEL[used] < LEVEL[room], f"{path.name} imports upwards: hiresx.{room} -> hiresx.{used}"


def test_every_room_has_a_floor():
    rooms = {name for _, name in _sources()} - {"__init__"}
    assert rooms <= LEVEL.keys() | BESIDE.keys()


@pytest.mark.parametrize("room", ["solver", "estimate"])
def test_what_computes_knows_nothing_of_outputs(room):
    """Nor does anything that it is made of, wherever it is imported."""
    code = f"import sys, hiresx.{room}; print(*(name for name in sys.modules if name.startswith('hiresx.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    above = [name for name in loaded if LEVEL.get(name.split(".")[1], 0) > LEVEL[room]]
    assert f"hiresx.{room}" in loaded and not above


OUTPUT = ("saved", "fields", "watch", "show")


def test_the_rooms_of_output_stand_on_each_other():
    wrong = []
    for path in sorted((ROOT / "hiresx" / "output").rglob("*.py")):
        room = path.relative_to(ROOT / "hiresx" / "output").parts[0]
        for used in re.findall(r"hiresx\.output\.(\w+)", path.read_text(encoding="utf-8")):
            if room in OUTPUT and used in OUTPUT and OUTPUT.index(used) > OUTPUT.index(room):
                wrong.append(f"{path.relative_to(ROOT)} uses {used}")
    assert not wrong


def test_nothing_else_on_the_top_level():
    allowed = {"pyproject.toml", "hiresx", "kernels", "topology", "cases", "tests", "docs", "README.md"}
    allowed |= {"LICENSE", "CITATION.cff", "CHANGELOG.md", "MANIFEST.in"}  # looked for there by people and tools
    present = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    made = {"build", "dist", "runs"} | {name for name in present if name.endswith(".egg-info")}
    assert present - made <= allowed


def test_every_folder_with_code_is_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    homes = {"hiresx": "hiresx", **project["package-dir"]}
    installed = set()
    for package in project["packages"]:
        root = max((name for name in homes if package == name or package.startswith(f"{name}.")), key=len)
        installed.add(ROOT / homes[root] / package.removeprefix(root).strip(".").replace(".", "/"))
    with_code = {path.parent for room in ("hiresx", "kernels", "topology") for path in ROOT.glob(f"{room}/**/*.py")}
    assert with_code <= installed
