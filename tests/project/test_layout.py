"""The packages form layers: a package imports only from the layers below its own."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from paths import ROOT

# The lowest first. A name is a package or a module of hiresx.
LAYERS = (
    ("errors", "kernels"),
    ("base",),
    ("signals",),  # an alias of base.signals
    ("exact",),
    ("mpi",),
    ("equations",),
    ("case",),
    ("grid",),
    ("decomposition",),
    ("device",),
    ("rhs",),
    ("time",),
    ("estimate",),
    ("exchange",),
    ("solver",),
    ("placement",),
    ("launch",),
    ("output",),
    ("bench",),
    ("simulation",),
    ("gradients",),
    ("blow_up",),  # an alias of simulation.blow_up_error
    ("scaling",),
    ("verify",),
    ("results",),
    ("post",),
    ("sweeps",),
    ("cli",),
    ("__main__",),
)
# Packages beside the layers: what they may use of them, and who may use them.
BESIDE = {"topology": {"errors", "base"}}
USERS = {"topology": {"device", "placement", "launch", "scaling", "cli"}}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def _sources():
    for path in sorted(ROOT.glob("hiresx/**/*.py")):
        yield path, path.relative_to(ROOT / "hiresx").parts[0].removesuffix(".py")
    for package in ("kernels", "topology"):
        for path in sorted(ROOT.glob(f"{package}/**/*.py")):
            yield path, package


def _imports(path: Path) -> set[str]:
    """Packages of hiresx that a file imports, at its top or inside its functions."""
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


def _upwards(path: Path, package: str) -> list[str]:
    """What a file of a package imports that it may not."""
    said, found = f"{path.relative_to(ROOT)} imports hiresx.", []
    for used in sorted(_imports(path) - {package, "__version__", "cases"}):
        if package in BESIDE:
            if used not in BESIDE[package]:
                found.append(f"{said}{used}: {package} may use {BESIDE[package]}")
        elif used in BESIDE:
            if package not in USERS[used]:
                found.append(f"{said}{used}, which is for {USERS[used]}")
        elif used not in LEVEL:
            found.append(f"{said}{used}, which is in no layer: add it to LAYERS")
        elif LEVEL[used] >= LEVEL[package]:
            found.append(f"{said}{used}, upwards from {package}")
    return found


def test_imports_run_downwards(tmp_path, monkeypatch):
    # Of __init__ not: it names the public things, resolved on use.
    sources = [(path, package) for path, package in _sources() if package != "__init__"]
    assert len(sources) > 100 and [line for source in sources for line in _upwards(*source)] == []
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from hiresx import topology, nothing\nimport hiresx.cli.app, hiresx.grid\n")
    assert len(_upwards(wrong, "rhs")) == 3 and len(_upwards(wrong, "topology")) == 3


def _modules() -> dict[str, Path]:
    """The files of the packages by the name that is imported."""
    found = {}
    for package, name in (("hiresx", "hiresx"), ("kernels", "hiresx.kernels"), ("topology", "hiresx.topology")):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT / package).with_suffix("").parts
            found[".".join([name, *(part for part in parts if part != "__init__")])] = path
    return found


def _imported_modules(text: str, modules) -> set[str]:
    """Those of `modules` that a file imports when it runs, at its top or inside its functions."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(name if name in modules else node.module for name in names)
    return found & set(modules)


def circles(imports) -> list[str]:
    """What is left of `imports`, by module, once those that import nothing that is left are taken away again and again:
    circles, and what imports them."""
    left = {name: set(used) - {name} for name, used in imports.items()}
    while done := {name for name, used in left.items() if not used & left.keys()}:
        left = {name: used for name, used in left.items() if name not in done}
    return sorted(left)


def test_no_module_imports_itself_by_way_of_others():
    """Inside of functions neither. What a package's own name gives is looked up when it is used."""
    modules = _modules()
    imports = {name: _imported_modules(path.read_text(), modules) for name, path in modules.items()}
    del imports["hiresx"]
    assert circles(imports) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == ["a", "b", "c", "d"]
    lazy = "def f():\n    from hiresx.case import loader\nif TYPE_CHECKING:\n    import hiresx.cli\n"
    assert _imported_modules(lazy, modules) == {"hiresx.case.loader"}


def test_every_package_has_a_layer():
    packages = {name for _, name in _sources()} - {"__init__"}
    assert packages <= LEVEL.keys() | BESIDE.keys()


@pytest.mark.parametrize("package", ["solver", "estimate"])
def test_what_computes_knows_nothing_of_outputs(package):
    """Nor does anything that it is made of, wherever it is imported."""
    code = f"import sys, hiresx.{package}; print(*(name for name in sys.modules if name.startswith('hiresx.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    above = [name for name in loaded if LEVEL.get(name.split(".")[1], 0) > LEVEL[package]]
    assert f"hiresx.{package}" in loaded and not above


OUTPUT = ("saved", "fields", "watch", "show")


def test_the_packages_of_output_form_layers():
    wrong = []
    for path in sorted((ROOT / "hiresx" / "output").rglob("*.py")):
        package = path.relative_to(ROOT / "hiresx" / "output").parts[0]
        for used in re.findall(r"hiresx\.output\.(\w+)", path.read_text(encoding="utf-8")):
            if package in OUTPUT and used in OUTPUT and OUTPUT.index(used) > OUTPUT.index(package):
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
    with_code = {path.parent for top in ("hiresx", "kernels", "topology") for path in ROOT.glob(f"{top}/**/*.py")}
    assert with_code <= installed
