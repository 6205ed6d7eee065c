"""Types that reach the user: names that are loaded on first use are known to those who read the sources."""

import ast
import tomllib

import pytest
from paths import ROOT

import hiresx

MYPY = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]


def _seen_by_readers() -> dict[str, str]:
    """What `hiresx` imports for those who read its sources: name -> where from."""
    tree = ast.parse((ROOT / "hiresx" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    # `import name as name`: a name that is meant to be seen outside
    return {a.name: node.module for node in imports for a in node.names if a.name == a.asname}


def test_what_is_loaded_on_first_use_has_its_type():
    assert _seen_by_readers() == {**hiresx._MODULES, **dict.fromkeys(hiresx._PACKAGES, "hiresx")}
    assert set(hiresx.__all__) - {"__version__"} == set(hiresx._MODULES)


def test_the_package_says_that_it_has_types():
    assert (ROOT / "hiresx" / "py.typed").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["hiresx"]


# What everybody uses, and what most of the rest stands on.
STRICT = (
    "arrays", "communicator", "decomposition", "errors", "grid", "launch", "placement", "plan",
    "scaling", "simulation", "solver", "time", "topology",
)  # fmt: skip


def _exceptions() -> list[tuple[str, set[str]]]:
    own = [entry for entry in MYPY["overrides"] if any(name.startswith("hiresx.") for name in entry["module"])]
    # that NumPy's functions answer Any is no fault of a room
    own = [entry for entry in own if entry.keys() != {"module", "warn_return_any"}]
    return [(name, set(entry)) for entry in own for name in entry["module"]]


def test_the_public_rooms_are_strict():
    assert MYPY["strict"] and MYPY["packages"] == ["hiresx"]
    assert not [name for name, _ in _exceptions() if name.split(".")[1] in STRICT]


@pytest.mark.parametrize("name", sorted({name for name, _ in _exceptions()}))
def test_what_is_not_strict_yet_is_there(name):
    parts = name.removesuffix(".*").split(".")[1:]
    homes = [ROOT / "hiresx", ROOT]  # cases/ and topology/ lie beside it
    found = [path for home in homes for path in (home.joinpath(*parts), home.joinpath(*parts).with_suffix(".py"))]
    assert any(path.exists() for path in found)
