"""Small faults, put into the sources one at a time: does the test that is meant for it turn red?

    python tests/deliberate_faults.py                    all; exits 1 when fewer than 95 % are caught
    python tests/deliberate_faults.py --only NAME ...    these (parts of names will do)
    python tests/deliberate_faults.py --list             what there is

The list is deliberate_faults.toml beside this file: for each fault a name, the `file`, the `old` text, which stands in
it once, the `new` one, and the `tests` that must turn red. Each worker has a copy of the checkout in a scratch folder;
the checkout itself is not touched. First the tests are run as they are: one that is red or skipped without a fault
proves nothing. A fault that does not compile or cannot be imported is not caught by that.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix(".toml")
LEAST = 0.95
# Folders beside hiresx/ that are packages in it once it is installed.
ROOMS = ("cases", "kernels", "topology")
# Seconds for the tests of one fault: one that makes a test wait for ever is told as that.
LONGEST = 300

CAUGHT = "caught"
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
    return place


def pytest(place: Path, tests: list[str], *options: str, longest: float | None = None) -> tuple[int | None, str]:
    """(exit status, or None for one that did not end, what was said) of the tests with the sources in `place`."""
    environment = os.environ | {
        "PYTHONPATH": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",  # two faults within a second in files of one size would look the same
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
    command = [sys.executable, "-m", "pytest", "--tb=short", "-p", "no:cacheprovider", *options, *tests]
    command.append("--hypothesis-seed=0")  # the same examples with a fault as without
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=longest,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
        return None, said.decode(errors="replace") if isinstance(said, bytes) else said
    return done.returncode, done.stdout


def unproven(place: Path, tests: list[str]) -> set[str]:
    """Those of the tests that fail, are skipped or are not there without any fault."""
    status, said = pytest(place, tests, "-vv")
    if status not in (0, 1):
        raise SystemExit(f"the tests cannot be run:\n{said[-3000:]}")
    found = STATUS.findall(said)

    def green(test: str) -> bool:
        of_it = [what for name, what in found if name == test or name.startswith(f"{test}[")]
        return bool(of_it) and set(of_it) == {"PASSED"}

    return {test for test in tests if not green(test)}


def outcome(fault: Fault, place: Path) -> tuple[str, str]:
    """What became of a fault, and what pytest said."""
    path = place / fault.file
    if not fault.anchored(place):
        return "its place is not found once", ""
    text = path.read_text(encoding="utf-8")
    changed = fault.applied(text)
    if path.suffix == ".py":
        try:
            compile(changed, fault.file, "exec")
        except SyntaxError as error:
            return "does not compile", str(error)
    try:
        path.write_text(changed, encoding="utf-8")
        status, said = pytest(place, list(fault.tests), "-x", longest=LONGEST)
    finally:
        path.write_text(text, encoding="utf-8")
    if status is None:
        return "does not end", said
    if status == 0:
        return "survived", said
    if status < 0:
        return CAUGHT, said  # a fault that writes where it must not may end all of Python
    if status != 1 or BROKEN.search(said):
        return "does not run", said
    return CAUGHT, said


def run(faults: list[Fault], jobs: int, show: bool = False) -> int:
    """Try the faults; prints each outcome and the score. Returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="deliberate-faults-") as scratch:
        places: Queue[Path] = Queue()
        for n in range(jobs):
            places.put(copy(ROOT, Path(scratch) / str(n)))
        first = places.get()
        unfit = unproven(first, list(dict.fromkeys(test for fault in faults for test in fault.tests)))
        places.put(first)
        for name in sorted(unfit):
            print(f"not green without a fault: {name}", flush=True)

        def tried(fault: Fault) -> tuple[Fault, str, str]:
            if unfit.intersection(fault.tests):
                return fault, "its test is not green without it", ""
            place = places.get()
            try:
                return fault, *outcome(fault, place)
            finally:
                places.put(place)

        found = []
        with ThreadPoolExecutor(jobs) as workers:
            for fault, what, said in workers.map(tried, faults):
                found.append(what)
                print(f"{what:>12}  {fault.name}", flush=True)
                if show and what != CAUGHT:
                    print(said[-3000:], flush=True)
    caught = found.count(CAUGHT)
    print(f"{caught} of {len(faults)} caught ({caught / len(faults):.1%})")
    return int(caught < LEAST * len(faults))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Try the deliberate faults of the list: does a test catch each?")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="faults whose names contain one of these")
    parser.add_argument("--from", dest="path", type=Path, default=LIST, metavar="FILE", help="another list")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="faults at a time")
    parser.add_argument("--list", action="store_true", help="name the faults and what must catch them")
    parser.add_argument("--show", action="store_true", help="with each fault that is not caught, what pytest said")
    given = parser.parse_args(arguments)
    faults = read(given.path)
    if given.only:
        faults = [fault for fault in faults if any(part in fault.name for part in given.only)]
    if not faults:
        parser.error(f"no fault is called like that; there are {', '.join(fault.name for fault in read(given.path))}")
    if given.list:
        for fault in faults:
            print(f"{fault.name}\n    {fault.file}: {fault.old!r} -> {fault.new!r}\n    {', '.join(fault.tests)}")
        return 0
    return run(faults, given.jobs, given.show)


if __name__ == "__main__":
    sys.exit(main())
