"""A page of docs/ that is a tutorial, as a Jupyter notebook: its text as Markdown, its commands, files and Python as
code cells with what they printed and the pictures that they made. Written as JSON, without Jupyter.

    python .ci/site/tutorial.py OUT.ipynb              # executed: some minutes
    python .ci/site/tutorial.py OUT.ipynb --as-it-is   # without outputs
"""

import base64
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-jet.md"
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```\n", re.DOTALL)
FILE = re.compile(r"# (?P<path>\S+/\S+\.(?:toml|py))(?P<more>, at the end)?\n")


@dataclass
class Cell:
    """`kind`: text, sh, python, or file (whose first line names it); `skipped`: the page says that it is not run.
    `said`: what it printed; `pictures`: the PNG files that it wrote, by name."""

    kind: str
    text: str
    skipped: bool = False
    said: str = ""
    pictures: dict[str, bytes] = field(default_factory=dict)


def cells(page: str) -> list[Cell]:
    """The cells of a page in Markdown."""
    found, at = [], 0
    for block in BLOCK.finditer(page):
        found.append(Cell("text", page[at : block.start()].strip()))
        kind = "file" if FILE.match(block["text"]) else block["kind"]
        found.append(Cell(kind, block["text"].rstrip("\n"), (block["mark"] or "").startswith("not run")))
        at = block.end()
    found.append(Cell("text", page[at:].strip()))
    return [cell for cell in found if cell.text]


def executed(todo: list[Cell], folder: Path) -> None:
    """Run the cells in `folder`, one after the other. Raises RuntimeError for one that fails."""
    names: dict[str, object] = {"__name__": "tutorial"}
    with contextlib.chdir(folder):
        for cell in todo:
            if cell.skipped or cell.kind == "text":
                continue
            if cell.kind == "file":
                _write(cell.text)
            elif cell.kind == "python":
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    exec(compile(cell.text, "tutorial", "exec"), names)
                cell.said = said.getvalue()
            else:
                cell.said = "".join(map(_said, commands(cell.text)))
            cell.pictures = {Path(name).name: Path(name).read_bytes() for name in pictures(cell)}


def commands(text: str) -> list[str]:
    """Those of a block of shell commands; a backslash at the end of a line joins it with the next."""
    return [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip() and not line.startswith("#")]


def pictures(cell: Cell) -> list[str]:
    """Names of the pictures that a cell of commands makes and that are shown: named ones, of sweeps, of jets."""
    found: list[str] = []
    for command in commands(cell.text) if cell.kind == "sh" else ():
        words = shlex.split(command, comments=True)
        out = words[words.index("--out") + 1] if "--out" in words else ""
        if out.endswith(".png"):
            found.append(out)
        elif words[1] == "sweep" and "--plot" in words:
            found.append(f"{out}/table.png")
        elif words[1:3] == ["post", "jet"]:
            found.append(f"{out}/jet.png")
    return found


def _write(text: str) -> None:
    named = FILE.match(text)
    assert named is not None
    with Path(named["path"]).open("a" if named["more"] else "w", encoding="utf-8") as stream:
        stream.write("\n" + text + "\n")


def _said(command: str) -> str:
    program = [sys.executable, "-m", *shlex.split(command, comments=True)]
    done = subprocess.run(program, capture_output=True, text=True, env=os.environ | {"COLUMNS": "100"})
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}\n{done.stderr}")
    return done.stdout


def notebook(made: list[Cell]) -> str:
    """The notebook as JSON (nbformat 4.5)."""
    entries = [_entry(n, cell) for n, cell in enumerate(made)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {
        "cells": entries,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _entry(number: int, cell: Cell) -> dict[str, object]:
    entry: dict[str, object] = {"id": f"cell-{number}", "metadata": {}}
    if cell.kind == "text" or cell.skipped:
        # on the site the notebook lies beside the pages
        text = re.sub(r"\]\(([\w-]+)\.md", r"](\1.html", cell.text)
        text = text if cell.kind == "text" else f"```{cell.kind}\n{cell.text}\n```"
        return entry | {"cell_type": "markdown", "source": _lines(text)}
    outputs: list[dict[str, object]] = []
    if cell.said:
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(cell.said)})
    for data in cell.pictures.values():
        picture = {"image/png": base64.b64encode(data).decode(), "text/plain": ["<a picture>"]}
        outputs.append({"output_type": "display_data", "data": picture, "metadata": {}})
    ran = number if outputs else None
    return entry | {
        "cell_type": "code", "source": _lines(_code(cell)), "execution_count": ran, "outputs": outputs,
    }  # fmt: skip


def _code(cell: Cell) -> str:
    """A cell as Jupyter runs it."""
    if cell.kind == "file":
        named = FILE.match(cell.text)
        assert named is not None
        return f"%%writefile {'-a ' if named['more'] else ''}{named['path']}\n\n{cell.text}"
    if cell.kind == "sh":
        shown = [f"display(Image({name!r}))" for name in pictures(cell)]
        if shown:
            shown.insert(0, "from IPython.display import Image, display\n")
        return "\n".join([*(f"!{command}" for command in commands(cell.text)), *shown])
    return cell.text


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def illustrated(page: str, made: list[Cell]) -> str:
    """The page with the pictures below the commands that made them."""
    blocks = iter([cell for cell in made if cell.kind != "text"])

    def shown(block: re.Match[str]) -> str:
        pictures = "\n\n".join(f"![{name}](tutorial-{name})" for name in next(blocks).pictures)
        return block[0] + (f"\n{pictures}\n" if pictures else "")

    return BLOCK.sub(shown, page)


def built(execute: bool) -> tuple[str, dict[str, bytes]]:
    """The page in Markdown with its pictures, and the files beside it: these and the notebook."""
    page = PAGE.read_text(encoding="utf-8")
    made = cells(page)
    if execute:
        with tempfile.TemporaryDirectory() as folder:
            executed(made, Path(folder))
    files = {f"tutorial-{name}": data for cell in made for name, data in cell.pictures.items()}
    name = f"{PAGE.stem}.ipynb"
    heading, _, rest = illustrated(page, made).partition("\n")
    how = "with what it prints" if execute else "not executed"
    page = f"{heading}\n\n[This page as a Jupyter notebook]({name}), {how}.\n{rest}"
    return page, files | {name: notebook(made).encode()}


if __name__ == "__main__":
    target, *how = sys.argv[1:]
    Path(target).write_bytes(built("--as-it-is" not in how)[1][f"{PAGE.stem}.ipynb"])
