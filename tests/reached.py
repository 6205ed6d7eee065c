"""Which tests run which lines of the sources and launch which kernels: noted by one run of the tests under coverage.py,
and then asked by random_faults.py.

    python tests/reached.py --out FOLDER            the quick tests; a package that is noted already is left out
    python tests/reached.py --out FOLDER --packages grid post --slow

The tests of a package run in one process, in a copy of the checkout. What tests share, functools' caches of the
package and of the tests' helpers, is emptied between test files: what a file uses is run in it. Loaded by pytest
(`-p reached`) this file is the plugin that notes, or, with HIRESX_ORDER, one that runs the named tests
alone, in their order.
"""

import argparse
import ast
import functools
import hashlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

NOTING, ORDER = "HIRESX_REACHED", "HIRESX_ORDER"
LONGEST = 3600


# ---- in the process of the tests


def _empty_caches(place: str) -> None:
    for module in [*sys.modules.values()]:
        if str(getattr(module, "__file__", None) or "").startswith(place):
            for value in [*vars(module).values()]:
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


class Notes:
    """What is noted beside lines: how long each test took that passed, and what kernels it launched."""

    def __init__(self, path: Path):
        self.path, self.file, self.test = path, "", ""
        self.seconds: Counter[str] = Counter()
        self.unfit: set[str] = set()
        self.kernels: dict[str, list[str]] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        import coverage

        self.test, file = item.nodeid, item.nodeid.partition("::")[0]
        if file != self.file:
            self.file = file
            _empty_caches(os.getcwd())
        if (now := coverage.Coverage.current()) is not None:
            now.switch_context(item.nodeid)
        yield

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.outcome != "passed":
            self.unfit.add(report.nodeid)

    def launched(self, kernel: str) -> None:
        tests = self.kernels.setdefault(kernel, [])
        if not tests or tests[-1] != self.test:
            tests.append(self.test)

    def pytest_sessionfinish(self) -> None:
        seconds = {test: round(time, 3) for test, time in self.seconds.items() if test not in self.unfit}
        self.path.write_text(json.dumps({"seconds": seconds, "kernels": self.kernels}), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if NOTING not in os.environ:
        return
    notes = Notes(Path(os.environ.pop(NOTING)))
    config.pluginmanager.register(notes)
    from hiresx.device.native import NativeProgram

    for name in ("call", "launch"):
        was = getattr(NativeProgram, name)

        def noted(self: Any, kernel: str, *more: Any, was: Any = was, **named: Any) -> Any:
            notes.launched(kernel)
            return was(self, kernel, *more, **named)

        setattr(NativeProgram, name, noted)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A test that is red, when tests are run in an order, is run once more: it may have been so by chance."""
    if ORDER not in os.environ:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    # what comes next has all that this one has but its own fixtures
    reports = runtestprotocol(item, log=False, nextitem=item.parent)
    if any(report.failed for report in reports):
        item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=item.parent)
    item.session._setupstate.teardown_exact(nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if ORDER not in os.environ:
        return
    order = {test: n for n, test in enumerate(json.loads(Path(os.environ[ORDER]).read_text(encoding="utf-8")))}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
    items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


# ---- noting


def note(out: Path, rooms: Iterable[str], kernels: Path | None, options: Iterable[str] = ()) -> None:
    """Runs the tests of each of the packages, and leaves in `out` two files of each."""
    import deliberate_faults as deliberate
    from random_faults import sources

    out.mkdir(parents=True, exist_ok=True)
    digests = {name: digest(text) for name, text in sources().items()}
    of_tests = {str(path.relative_to(deliberate.ROOT)): digest(path.read_text()) for path in _tests(deliberate.ROOT)}
    with tempfile.TemporaryDirectory(prefix="reached-") as scratch:
        place = deliberate.copy(deliberate.ROOT, Path(scratch))
        for room in rooms:
            notes = out / f"{room}.json"
            if notes.is_file():
                continue
            data, settings = out / f"{room}.coverage", Path(scratch) / f"{room}.cfg"
            settings.write_text(_SETTINGS.format(place=place, data=data), encoding="utf-8")
            began = time.monotonic()
            done = deliberate.pytest(
                place, kernels or Path(scratch) / "cache", [f"tests/{room}"], "-p", "reached", *options,
                longest=LONGEST, by=("coverage", "run", f"--rcfile={settings}", "-m"),
                PYTHONPATH=f"{place}{os.pathsep}{place / 'tests'}", **{NOTING: str(notes)},
            )  # fmt: skip
            print(f"{room}: {time.monotonic() - began:.0f} s, {done.said.strip().splitlines()[-1:]}", flush=True)
            _combine(place, data)
            if notes.is_file():
                found = json.loads(notes.read_text(encoding="utf-8"))
                # of the other rooms nothing is known yet
                here = {name: one for name, one in of_tests.items() if name.startswith(f"tests/{room}/")}
                notes.write_text(json.dumps({"digests": digests | here, **found}), encoding="utf-8")


_SETTINGS = """
[run]
source =
    {place}/hiresx
    {place}/topology
data_file = {data}
parallel = true
sigterm = true
context = ${{PYTEST_CURRENT_TEST}}
patch = subprocess, _exit
relative_files = false
[paths]
"""


def _combine(place: Path, data: Path) -> None:
    """One file of all processes, with the names of the checkout's files."""
    from coverage import CoverageData

    whole = CoverageData(str(data))
    whole.erase()
    for part in sorted(data.parent.glob(f"{data.name}.*")):
        with suppress(Exception):  # one of a process that was killed while it wrote
            one = CoverageData(str(part))
            one.read()
            whole.update(one, map_path=lambda name: name.removeprefix(f"{place}/").removeprefix("hiresx/../"))
        part.unlink()
    whole.write()


def _tests(root: Path) -> list[Path]:
    return sorted(root.glob("tests/*/test_*.py"))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ---- asking


@dataclass(frozen=True)
class Reached:
    """What a folder of notes tells. `seconds` are those of each test that passed."""

    folder: Path
    digests: dict[str, str]
    seconds: dict[str, float]
    kernels: dict[str, set[str]]

    @classmethod
    def read(cls, folder: Path) -> "Reached":
        digests, seconds, kernels = {}, {}, {}
        for path in sorted(folder.glob("*.json")):
            found = json.loads(path.read_text(encoding="utf-8"))
            digests |= found["digests"]
            seconds |= found["seconds"]
            for kernel, tests in found["kernels"].items():
                kernels.setdefault(kernel, set()).update(tests)
        return cls(folder, digests, seconds, kernels)

    def tests(self, name: str, text: str, at: int) -> set[str]:
        """Tests that run the statement at text[at] of a source of Python; where it is run when the module is
        imported, or the source is not what was noted, those that run anything in the file."""
        by_line = self._lines(name)
        everything = set().union(*by_line.values()) - {""}
        line = text.count("\n", 0, at) + 1
        if self.digests.get(name) != digest(text) or not in_function(text, line):
            return everything
        first, last = statement(text, line)
        found = set().union(*(by_line.get(line, set()) for line in range(first, last + 1)))
        return everything if "" in found else found

    def _lines(self, name: str) -> dict[int, set[str]]:
        from coverage import CoverageData

        found: dict[int, set[str]] = {}
        for path in sorted(self.folder.glob("*.coverage")):
            data = CoverageData(str(path))
            data.read()
            for line, contexts in data.contexts_by_lineno(name).items():
                # of a process that a test began, as pytest calls what is under way
                names = {one.rpartition(" (")[0] if one.endswith(")") else one for one in contexts}
                found.setdefault(line, set()).update(names)
        return found


def statement(text: str, line: int) -> tuple[int, int]:
    """The first and last line of the innermost statement that has this one; of a compound one, of its head."""
    found = line, line
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
            body = getattr(node, "body", None)
            end = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            # walked from the outside: the last one that holds them is the innermost
            found = (node.lineno, end) if line <= end else found
    return found


def in_function(text: str, line: int) -> bool:
    """Whether a line is run when a function is called, and not when its module is imported: that happens in whatever
    test comes first."""
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(one.body[0].lineno <= line <= one.end_lineno for one in functions)


def main() -> int:
    parser = argparse.ArgumentParser(description="Note which tests run which lines and launch which kernels.")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to keep it")
    parser.add_argument("--packages", "--rooms", nargs="+", metavar="PACKAGE", help="folders of tests/; all if absent")
    parser.add_argument("--kernels", type=Path, metavar="FOLDER", help="a kernel cache to use")
    parser.add_argument("--slow", action="store_true", help="with the slow tests")
    given = parser.parse_args()
    root = Path(__file__).resolve().parent
    rooms = given.packages or sorted({path.parent.name for path in root.glob("*/test_*.py")})
    note(given.out.resolve(), rooms, given.kernels, ("-m", "" if given.slow else "not slow"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
