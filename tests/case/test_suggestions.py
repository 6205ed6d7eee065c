"""Commands that are suggested can be copied into a shell, whatever the names in them are; and what takes a minute on
first use is announced."""

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from paths import ROOT

from hiresx.base import shell
from hiresx.base.notify import notifications_to
from hiresx.cli import execute
from hiresx.device import compiler
from hiresx.output.saved.checkpoint import FOLDER

NAMES = ("a b", "x[1]", "$(touch pwned)", "it's", "-x", "a\nb", "#", "*")
# A command with a name in it, in the text of a program.
COMMAND = re.compile(
    r"(?:hiresx (?:run|launch|check|new|plot|history|info|diff|verify|bench|scaling|topo)\b|\brm |sbatch |qsub |"
    r"adf2hdf |cgnsconvert )[^\"'`\n]*?\{[^}]*\}"
)


def said(*words: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        execute(list(words))
    return out.getvalue() + err.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_a_word_is_one_word_of_a_shell(name, tmp_path):
    for made, expected in (
        (shell.quote(name), name),
        (shell.quote(Path(name)), f"./{name}" if name[0] == "-" else name),
    ):
        done = subprocess.run(["bash", "-c", f"printf '%s' {made}"], capture_output=True, text=True, cwd=tmp_path)
        assert done.stdout == expected
    line = shell.quote_for_comment(name)
    assert line.isprintable()
    assert subprocess.run(["bash", "-c", f"printf '%s' {line}"], capture_output=True, text=True).stdout == name


@pytest.mark.parametrize("name", NAMES)
def test_suggestions_that_hold_a_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = said("new", "sod", f"./{name}")
    edited = shlex.split(text.partition("then: ")[2])
    assert edited[:3] == ["hiresx", "check", edited[2].rstrip(";")] or edited[2].endswith(";")
    assert Path(edited[2].removesuffix(";"), "case.toml").is_file()
    Path(name, "run.json").write_text("{}")
    assert "continue it" not in said("run", "sod", "--out", name)
    Path(name, FOLDER).mkdir()
    Path(name, FOLDER, "checkpoint_1_step_1.hxc").touch()
    text = said("run", "sod", "--out", name)
    again = shlex.split(text.partition("continue it: ")[2])
    assert again[:3] == ["hiresx", "run", "--restart"] and Path(again[3], "run.json").is_file() and len(again) == 4
    assert not list(tmp_path.rglob("pwned"))


def test_every_command_in_the_sources_quotes_its_names():
    found = [
        (path.name, match[0])
        for room in ("hiresx", "topology")
        for path in (ROOT / room).rglob("*.py")
        for match in COMMAND.finditer(re.sub(r'"\n\s+f?"', "", path.read_text(encoding="utf-8")))
    ]
    assert len(found) > 8
    plain = ("count", "job.ranks", "why", "submit", "name")  # no names of files
    for file, text in found:
        for name in re.findall(r"\{([^}]*)\}", text):
            assert name.startswith(("quote(", "quote_all(", "shell.quote", "quote_for_comment(")) or name in plain, (
                file,
                text,
            )


# --- what takes a minute


@pytest.fixture
def lazy_compiler(tmp_path, monkeypatch):
    """A compiler that makes nothing, and a cache of one's own."""
    program = tmp_path / "cxx"
    program.write_text('#!/bin/bash\n[ "$1" = --version ] && echo "cxx 1" && exit\necho "error: no" >&2; exit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return program


def test_compiling_is_announced_where_there_is_no_terminal(lazy_compiler):
    words = [sys.executable, "-m", "hiresx", "run", "sod", "--backend", "cpu", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ))
    first, *_ = done.stderr.splitlines()
    assert first == f"note: {compiler.COMPILING}" and done.returncode == 2 and done.stdout.startswith("{")
    # on one rank only
    more = {"OMPI_COMM_WORLD_RANK": "1"}
    code = "from hiresx.cli import terminal; terminal.note_once('once')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | more)
    assert done.stderr == ""


def test_what_is_compiled_already_is_not_announced(tmp_path, monkeypatch):
    monkeypatch.setenv("HIRESX_CACHE", str(tmp_path))
    told: list[str] = []
    with notifications_to(told.append):
        for _ in range(2):
            compiler.build('extern "C" int one() { return 1; }', ("-shared", "-fPIC"), "toy")
    assert told == [compiler.COMPILING]
    compiler.build('extern "C" int two() { return 2; }', ("-shared", "-fPIC"), "toy")
    assert len(told) == 1
