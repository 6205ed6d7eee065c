"""Small faults, put into the sources one at a time: does the test that is meant for it turn red?

    python tests/deliberate_faults.py                    all; exits 1 when fewer than 95 % are caught
    python tests/deliberate_faults.py --jobs 16          so many at a time, each on one core
    python tests/deliberate_faults.py --out FILE         keeps each outcome there at once; run again, it goes on
    python tests/deliberate_faults.py --only NAME ...    these (parts of names or of their files will do)
    python tests/deliberate_faults.py --list             what there is

The list is deliberate_faults.toml beside this file: for each fault a name, the `file`, the `old` text, which stands in
it once, the `new` one, and the `tests` that must turn red. Each worker has a copy of the checkout in a scratch folder,
and a cache of kernels; the checkout itself and the user's cache are not touched. First the tests are run as they are:
one that is red or skipped without a fault proves nothing. A fault that does not compile or cannot be imported is not
caught by that, nor is one whose tests do not end in time.

FILE has a line of JSON for each outcome. What it tells of sources or tests that have changed since is tried again.
"""

import argparse
import compileall
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import Queue
from typing import Any

from ranks import kill_marked

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".toml")
LEAST = 0.95
# Folders beside hiresx/ that are packages in it once it is installed.
ROOMS = ("cases", "kernels", "topology")
SOURCES = ("hiresx", *ROOMS)
# Seconds for the tests of one fault: one that makes a test wait for ever is told as that.
LONGEST = 300

CAUGHT, SURVIVED, ENDLESS, NOTHING_RUN = "caught", "survived", "does not end", "no test was run"
# Marks the processes of a fault, so that all of one that hangs can be ended.
MARK = "HIRESX_DELIBERATE_FAULT"
# What a fault's own failure to be a program looks like; a plausible fault is one that compiles.
BROKEN = re.compile(
    r"does not compile the|SyntaxError|IndentationError|ImportError while|ModuleNotFoundError|NameError:|UnboundLocal"
)
# A test's line as pytest -v prints it.
STATUS = re.compile(r"^(\S+?::.+?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """`old` in `file` (of the checkout) becomes `new`; each of `tests` (pytest's names) may be what turns red."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def anchored(self, root: Path) -> bool:
        path = root / self.file
        return path.is_file() and path.read_text(encoding="utf-8").count(self.old) == 1

    @property
    def files(self) -> list[str]:
        """Of its tests."""
        return list(dict.fromkeys(test.partition("::")[0] for test in self.tests))

    def applied(self, text: str) -> str:
        return text.replace(self.old, self.new)


def read(path: Path = LIST) -> list[Fault]:
    """The faults of a list."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
    return [Fault(**(table | {"tests": tuple(table["tests"])})) for table in tables]


def copy(root: Path, to: Path) -> Path:
    """The checkout as it is now, with what is new and not ignored, laid out so that it can be imported from there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True
    )
    place = to / "checkout"
    if listed.returncode == 0:
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (root / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, place / name)
    else:  # not under git
        shutil.copytree(root, place, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "runs"))
    for room in ROOMS:
        (place / "hiresx" / room).symlink_to(f"../{room}")
    if (shared := root.parent / "shared").is_dir():
        (to / "shared").symlink_to(shared)
    # A quarter of the time in which tests begin; known again by what is in a source, not by when it was written.
    for folder in (*SOURCES, "tests"):
        compileall.compile_dir(place / folder, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return place


@dataclass(frozen=True)
class Tried:
    """What pytest did: its exit status (None: it did not end), what it said, seconds, and seconds of the processor."""

    status: int | None
    said: str
    seconds: float
    cpu: float


def pytest(
    place: Path,
    cache: Path,
    tests: list[str],
    *options: str,
    longest: float,
    by: tuple[str, ...] = (),
    **variables: str,
) -> Tried:
    """Runs the tests with the sources in `place` and the kernels in `cache`, through the module `by` if there is one,
    and with further variables of the environment; ends all that it began."""
    job = uuid.uuid4().hex
    environment = os.environ | {
        "PYTHONPATH": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",  # two faults within a second in files of one size would look the same
        "HIRESX_CACHE": str(cache),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        MARK: job,
        **variables,
    }
    environment.pop("PYTEST_CURRENT_TEST", None)  # of a test that calls this
    command = [sys.executable, "-m", *by, "pytest", "--tb=short", "-p", "no:cacheprovider", "-o", "addopts=-q"]
    command += [*options, *tests, "--hypothesis-seed=0"]  # the same examples with a fault as without
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=place, env=environment, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
        ended, cpu = False, 0.0
        while not ended and time.monotonic() - began < longest:
            time.sleep(0.05)
            number, status, usage = os.wait4(process.pid, os.WNOHANG)
            ended, cpu = bool(number), usage.ru_utime + usage.ru_stime
        kill_marked(f"{MARK}={job}")
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
        else:
            process.wait()
        output.seek(0)
        said = output.read().decode(errors="replace")
    return Tried(process.returncode if ended else None, said, time.monotonic() - began, cpu)


def green(place: Path, cache: Path, tests: list[str], longest: float) -> tuple[dict[str, bool], Tried]:
    """Which of the tests pass without any fault; those that are skipped or are not there do not."""
    tried = pytest(place, cache, tests, "-vv", longest=longest)
    found = STATUS.findall(tried.said)

    def passed(test: str) -> bool:
        of_it = [what for name, what in found if name == test or name.startswith(f"{test}[")]
        return bool(of_it) and set(of_it) == {"PASSED"}

    return {test: tried.status in (0, 1) and passed(test) for test in tests}, tried


def outcome(
    fault: Fault, place: Path, cache: Path, longest: float, *options: str, **environment: str
) -> tuple[str, Tried]:
    """What became of a fault, and what pytest, with those options and variables, did."""
    path = place / fault.file
    if not fault.anchored(place):
        return "its place is not found once", Tried(0, "", 0.0, 0.0)
    text = path.read_text(encoding="utf-8")
    changed = fault.applied(text)
    if path.suffix == ".py":
        try:
            compile(changed, fault.file, "exec")
        except SyntaxError as error:
            return "does not compile", Tried(0, str(error), 0.0, 0.0)
    try:
        path.write_text(changed, encoding="utf-8")
        tried = pytest(place, cache, list(fault.tests), "-x", *options, longest=longest, **environment)
    finally:
        path.write_text(text, encoding="utf-8")
    if tried.status is None:
        return ENDLESS, tried
    if tried.status == 0:
        return SURVIVED, tried
    if tried.status == 5:
        return NOTHING_RUN, tried
    if tried.status < 0:
        return CAUGHT, tried  # a fault that writes where it must not may end all of Python
    if tried.status != 1 or BROKEN.search(tried.said):
        return "does not run", tried
    return CAUGHT, tried


class Workers:
    """`jobs` copies of the checkout, each with a cache of its own; what runs in them is kept in `out`, line by line."""

    def __init__(self, scratch: Path, jobs: int, out: Path | None):
        self.jobs, self.out = jobs, out
        self.scratch = scratch
        self.free: Queue[tuple[Path, Path]] = Queue()
        for n in range(jobs):
            (cache := scratch / str(n) / "cache").mkdir(parents=True, mode=0o700)
            self.free.put((copy(ROOT, scratch / str(n)), cache))
        self.known = {}
        if out is not None and out.exists():
            for line in out.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):  # a line cut short by an end before its time
                    known = json.loads(line)
                    self.known[known["key"]] = known
        self._writing = threading.Lock()

    @staticmethod
    def key(*of: str, files: Iterable[str]) -> str:
        """Of an outcome: it holds as long as nothing of this changes."""
        texts = (path.read_text(encoding="utf-8") if (path := ROOT / file).is_file() else "" for file in files)
        return hashlib.sha256("\0".join([*of, *texts]).encode()).hexdigest()[:16]

    def keep(self, key: str, **entry: Any) -> dict[str, Any]:
        entry = {"key": key, **entry}
        with self._writing:
            self.known[key] = entry
            if self.out is not None:
                with self.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
        return entry

    def all(self, function: Callable, tasks: Iterable) -> Iterator:
        """function(task, place, cache) for each, in their order, `jobs` at a time."""

        def at_a_place(task):
            place, cache = self.free.get()
            try:
                return function(task, place, cache)
            finally:
                self.free.put((place, cache))

        with ThreadPoolExecutor(self.jobs) as threads:
            yield from threads.map(at_a_place, tasks)

    def share_caches(self) -> None:
        """What one worker has compiled is there for all; a fault of the cache itself then harms one worker's."""
        caches = [self.scratch / str(n) / "cache" for n in range(self.jobs)]
        for cache in caches:
            for path in cache.iterdir():
                for other in caches:
                    if path.is_file() and not (other / path.name).exists():
                        shutil.copy2(path, other / path.name)


def run(faults: list[Fault], jobs: int, show: bool = False, out: Path | None = None, longest: float = LONGEST) -> int:
    """Try the faults; prints each outcome, a summary for each file, and the score. Returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="deliberate-faults-") as scratch:
        workers = Workers(Path(scratch), jobs, out)
        unfit, spent = _unfit(workers, faults, longest)
        for name in sorted(unfit):
            print(f"not green without a fault: {name}", flush=True)
        workers.share_caches()

        def tried(fault: Fault, place: Path, cache: Path) -> tuple[Fault, dict[str, Any]]:
            key = Workers.key(fault.name, fault.old, fault.new, *fault.tests, files=[fault.file, *fault.files])
            if unfit.intersection(fault.tests):
                return fault, {"outcome": "its test is not green without it", "cpu": 0.0}
            if key in workers.known:
                return fault, workers.known[key]
            what, done = outcome(fault, place, cache, longest)
            if show and what != CAUGHT:
                print(done.said[-3000:], flush=True)
            times = {"seconds": round(done.seconds, 1), "cpu": round(done.cpu, 1)}
            return fault, workers.keep(key, fault=fault.name, file=fault.file, outcome=what, **times)

        by_file: dict[str, list[str]] = {}
        for fault, entry in workers.all(tried, faults):
            by_file.setdefault(fault.file, []).append(entry["outcome"])
            spent += entry["cpu"]
            print(f"{entry['outcome']:>12}  {fault.name}  ({entry['cpu']:.0f} s)", flush=True)
    for file, found in sorted(by_file.items()):
        print(f"{found.count(CAUGHT):4} of {len(found):2}  {file}")
    caught = sum(found.count(CAUGHT) for found in by_file.values())
    print(f"{caught} of {len(faults)} caught ({caught / len(faults):.1%}), {spent:.0f} s of the processor")
    return int(caught < LEAST * len(faults))


def _unfit(workers: Workers, faults: list[Fault], longest: float) -> tuple[set[str], float]:
    """Tests that prove nothing, and the seconds of the processor that it took: the tests of each file at once."""
    by_file: dict[str, list[str]] = {}
    for test in dict.fromkeys(test for fault in faults for test in fault.tests):
        by_file.setdefault(test.partition("::")[0], []).append(test)

    endings = (".py", ".h")  # not what Python keeps compiled beside them
    sources = sorted(
        str(path.relative_to(ROOT)) for room in SOURCES for path in ROOT.glob(f"{room}/**/*") if path.suffix in endings
    )

    def looked_at(tests: list[str], place: Path, cache: Path) -> dict[str, Any]:
        key = Workers.key("green", *tests, files=[tests[0].partition("::")[0], *sources])
        if key in workers.known:
            return workers.known[key]
        found, done = green(place, cache, tests, 4 * longest)
        if not all(found.values()):
            print(done.said[-3000:], flush=True)
            return {"green": found, "cpu": done.cpu}
        return workers.keep(key, green=found, cpu=round(done.cpu, 1))

    entries = list(workers.all(looked_at, by_file.values()))
    return {test for e in entries for test, fine in e["green"].items() if not fine}, sum(e["cpu"] for e in entries)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Try the deliberate faults of the list: does a test catch each?")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="faults whose names or files contain one of these")
    parser.add_argument("--from", dest="path", type=Path, default=LIST, metavar="FILE", help="another list")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="faults at a time")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="keep outcomes there; what it tells is not tried again"
    )
    parser.add_argument("--longest", type=float, default=LONGEST, metavar="SECONDS", help="for the tests of one fault")
    parser.add_argument("--list", action="store_true", help="name the faults and what must catch them")
    parser.add_argument("--show", action="store_true", help="with each fault that is not caught, what pytest said")
    given = parser.parse_args(arguments)
    faults = read(given.path)
    if given.only:
        faults = [fault for fault in faults if any(part in fault.name or part in fault.file for part in given.only)]
    if not faults:
        parser.error(f"no fault is called like that; there are {', '.join(fault.name for fault in read(given.path))}")
    if given.list:
        for fault in faults:
            print(f"{fault.name}\n    {fault.file}: {fault.old!r} -> {fault.new!r}\n    {', '.join(fault.tests)}")
        return 0
    return run(faults, given.jobs, given.show, given.out, given.longest)


if __name__ == "__main__":
    sys.exit(main())
