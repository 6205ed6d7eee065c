"""The pages of docs/ are true: their commands and Python run as they stand, their links lead somewhere, the case-file
reference is that of the schema, and every message of the troubleshooting page is one that the code can give.

Blocks of a page are taken in order, in one empty folder: `sh` line by line, `python` in one namespace, `toml` and
`python` that begin with `# some/file` are written there (with `, at the end` added to what is there), other `toml` is
put over a small case and must be valid. What must not run has `<!-- not run: reason -->` above it; `<!-- exit N -->`
says that its last command ends with status N.
"""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from case_file import page
from paths import ROOT

from hiresx.case import Case, bundled_cases, presets
from hiresx.case.loader import merge
from hiresx.cli import execute

DOCS = ROOT / "docs"
# Pages with commands; verification and performance are generated and name the commands they are made with.
PAGES = (
    "getting-started", "outputs", "post", "python", "how-do-i", "grids", "numerics", "parallel", "troubleshooting",
    "case-file", "README", "tutorial-jet", "monitor",
)  # fmt: skip
BLOCK = re.compile(r"(?:<!-- (?P<mark>not run: [^>]+|exit \d+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
FILE = re.compile(r"# (\S+/\S+\.(?:toml|py))(, at the end)?\n")
# A tutorial takes minutes as it stands: here its runs are shorter, on a coarser grid.
REDUCED = {
    "tutorial-jet": {
        "time.end = 32.0": "time.end = 3.0",
        "time.end=22.0": "time.end=2.0",
        "output.every_time = 0.5": "output.every_time = 0.1",
        "points_per_height = 16": "points_per_height = 10",
        "start = 12.0": "start = 1.0",
        "--from 12": "--from 1",
        "--length 16": "--length 8",
        "jet.Mj,jet.cell_spacing": "jet.Mj,jet.Uj",  # so short a run has no cells
        "start=12.0": "start=1.0",
    }
}
SMALL = {
    "grid": {"generator": "box", "n": [7, 7, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0]},
    "time": {"steps": 1},
}


class Block(NamedTuple):
    kind: str
    text: str
    mark: str
    line: int


def blocks(name: str) -> list[Block]:
    text = (DOCS / f"{name}.md").read_text()
    for old, new in REDUCED.get(name, {}).items():
        assert old in text, f"{name}: {old} is not in it any more"
        text = text.replace(old, new)
    assert text.count("```") == 2 * len(BLOCK.findall(text)), f"{name}: a block of code without a language"
    return [
        Block(m["kind"], m["text"], m["mark"] or "", text[: m.start("text")].count("\n") + 1)
        for m in BLOCK.finditer(text)
    ]


LONG = ("getting-started", "how-do-i", "outputs", "parallel", "post", "tutorial-jet")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in PAGES])
def test_what_a_page_says_can_be_done(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "page"}
    for block in blocks(name):
        place = f"docs/{name}.md, line {block.line}"
        if block.mark.startswith("not run") or block.kind in ("cpp", "math"):
            continue
        if file := FILE.match(block.text):
            Path(file[1]).parent.mkdir(parents=True, exist_ok=True)
            with Path(file[1]).open("a" if file[2] else "w") as stream:
                stream.write(("\n" if file[2] else "") + block.text)
        elif block.kind == "sh":
            wanted = int(block.mark.removeprefix("exit ") or 0)
            commands = block.text.replace("\\\n", "").splitlines()
            for number, command in enumerate(commands):
                status = run(command)
                assert status == (wanted if number == len(commands) - 1 else 0), (
                    f"{place}: {command}\n{capfd.readouterr()}"
                )
        elif block.kind == "python":
            exec(compile("\n" * block.line + block.text, place, "exec"), names)
        elif block.kind == "toml":
            Case.from_dict(merge(SMALL, tomllib.loads(block.text)))
        else:
            pytest.fail(f"{place}: {block.kind} is run by nobody")


def run(command: str) -> int:
    """In this process: Python and its libraries are then loaded once and not with every command."""
    words = shlex.split(command, comments=True)
    assert words[0] == "hiresx" and not set(words) & {"|", ">", "||", "&&"}, f"not a plain command: {command}"
    return execute(words[1:])


@pytest.mark.slow
def test_the_flux_of_the_recipe_works(tmp_path):
    """In a copy of the sources, to which it is added as the page says."""
    for folder in ("hiresx", "kernels", "topology", "cases"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (flux,) = (block.text for block in blocks("how-do-i") if block.kind == "cpp")
    (tmp_path / "kernels" / "flux" / "hll.h").write_text(flux)
    (command,) = (b.text for b in blocks("how-do-i") if "scheme.flux=hll " in b.text and b.kind == "sh")
    arguments = shlex.split(command)[1:]
    code = f"from hiresx.cli import main; main({arguments!r})"
    compiler = tmp_path / "unoptimised"  # sooner done: this is about whether it compiles and runs
    compiler.write_text('#!/bin/bash\nexec g++ "${@/-O3/-O0}"\n')
    compiler.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "CXX": str(compiler)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "hll" / "run.json").is_file()


def test_the_case_file_page_is_that_of_the_schema():
    text = (DOCS / "case-file.md").read_text()
    assert text == page(text), "run: python docs/make/case_file.py --out docs/case-file.md"


def anchors(text: str) -> set[str]:
    """Of the headings of a page, as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", sorted([ROOT / "README.md", *DOCS.glob("*.md")]), ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        found = path.parent / target if target else path
        assert found.exists(), f"{path.name}: {target} is not there"
        if anchor:
            assert anchor in anchors(found.read_text()), f"{path.name}: {target}#{anchor} is not there"


def test_every_page_is_in_the_index_and_on_the_site():
    index, site = (path.read_text() for path in (DOCS / "README.md", ROOT / ".ci" / "site" / "mkdocs.yml"))
    pages = [path.name for path in DOCS.glob("*.md") if path.name != "README.md"]
    assert [name for name in pages if f"({name})" not in index or f"- {name}\n" not in site] == []


def test_the_start_command_names_what_exists():
    text = (ROOT / "README.md").read_text()
    (start,) = re.findall(r"<!-- start -->\n```\n(.*?)\n```\n<!-- end start -->", text, re.DOTALL)
    words = shlex.split(start)
    case, preset = words[words.index("run") + 1], words[words.index("--preset") + 1]
    assert case in bundled_cases() and preset in presets(case)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (extra,) = re.findall(r"\.\[(\w+)\]", start)
    assert extra in extras


def constants() -> set[str]:
    """The texts in the code; of an f-string the parts between what is put in."""
    found = set()
    for path in [*(ROOT / "hiresx").rglob("*.py"), *(ROOT / "topology").rglob("*.py")]:
        tree = ast.parse(path.read_text())
        found |= {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return found


@pytest.mark.slow
def test_the_messages_of_the_troubleshooting_page_are_those_of_the_code():
    known = constants()
    headings = re.findall(r"^### (.*)$", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)
    messages = [message for heading in headings for message in re.findall(r"`([^`]*)`", heading)]
    assert len(messages) > 30
    parts = {part.strip(": ") for message in messages for part in message.split("...")}
    lost = [part for part in sorted(parts) if len(part) > 4 and not any(part in text for text in known)]
    assert lost == []
