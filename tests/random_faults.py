"""Faults that nobody chose: single small changes drawn by a seed; does any test of their packages turn red?

    python tests/random_faults.py --number 200             seed: the commit that is checked out
    python tests/random_faults.py --seed WORD --number 30  the first 30 of the same list that 200 would begin with
    python tests/random_faults.py --paths kernels hiresx/exchange
    python tests/random_faults.py --list                   what would be tried, and by which tests
    python tests/random_faults.py --out FILE               keeps each outcome there at once; run again, it goes on
    python tests/random_faults.py --slow                   with the slow tests
    python tests/random_faults.py --reached FOLDER         by tests that come past the place, see tests/reached.py

Python is changed by the operators of Cosmic Ray (pip install '.[mutants]'), kernels by those of mutations.py. A
file is drawn by the number of its lines, then a place in it. The tests are those whose files name the changed module or
kernel, or catch a fault of the list beside this file in it, and then all others of its package; the first that is red
ends them. It must be red again alone, and green without the change. With `--reached` they are those that were noted as
running the changed statement or launching a kernel that comes past it, wherever they lie, quick ones first: a fault
then takes seconds. The notes hold for sources and test files that have not changed since; of others all that is about
them is run. Kernels with a fault are compiled with little optimisation.

Not counted are changes that make no program, and those of equivalent_faults.toml, which change nothing that could be
seen, with the reason. A test that takes more than `--longest` seconds is red; a fault whose tests were all green until
`--altogether` seconds were over is counted as not caught. Exits 1 when fewer than 80 % are caught. What has survived is
printed as an entry for deliberate_faults.toml: write the test, and put it there.
"""

import argparse
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import deliberate_faults as deliberate
from deliberate_faults import CAUGHT, NOTHING_RUN, ROOT, SURVIVED, Fault, Tried, Workers
from mutations import draw
from reached import ORDER, Reached, digest

EQUIVALENT = Path(__file__).with_name("equivalent_faults.toml")
LEAST = 0.80
# Rooms from whose files is drawn.
DRAWN = ("hiresx", "kernels", "topology")
# Where the tests of a package lie, if not under its own name; a file that is named goes before its package.
TESTS = {
    "kernels": ("device", "rhs"),
    "topology": ("topology",),
    "hiresx": ("run",),
    "hiresx/base": ("run", "case"),
    "hiresx/bench": ("verify",),
    "hiresx/case": ("case", "run"),
    "hiresx/cli": ("run", "output", "case", "rhs"),
    "hiresx/decomposition": ("decomposition", "rhs"),
    "hiresx/equations": ("rhs", "case", "output"),
    "hiresx/estimate": ("run", "case"),
    "hiresx/exact": ("rhs", "verify"),
    "hiresx/gradients": ("time",),
    "hiresx/launch": ("run",),
    "hiresx/mpi": ("run", "exchange"),
    "hiresx/placement": ("topology",),
    "hiresx/scaling": ("run",),
    "hiresx/simulation": ("run", "case", "output"),
    "hiresx/solver": ("rhs",),
    "hiresx/sweeps": ("run",),
    "hiresx/time": ("time", "device", "rhs"),
}
# Seconds for one test and for all tests of a fault.
LONGEST, ALTOGETHER = 100, 900
# A change that no run comes past is no plausible one: `folder // name`.
ABSURD = re.compile(r"TypeError: (?:unsupported operand|bad operand) type")
# Seconds that tests noted as coming past a fault may take together, and test files that a first try is of.
ENOUGH, FEW = 120, 6
# Seconds of a test that is not quick: a small set of kernels is compiled in less.
LONG = 3
# Tests that may be red by chance before a fault is given up.
_CHANCES = 5
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - |$)", re.MULTILINE)


@dataclass(frozen=True)
class Drawn:
    """A fault whose `tests` are whole files, and the kind of change that it is."""

    fault: Fault
    kind: str


def seed_of_the_commit() -> str:
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return said.stdout.strip()


def sources(paths: tuple[str, ...] = DRAWN) -> dict[str, str]:
    """The text of every file that may be drawn, by its name."""
    found = sorted(path for name in paths for path in [ROOT / name, *ROOT.glob(f"{name}/**/*")])
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in found
        if path.suffix in (".py", ".h") and path.is_file() and not any(part.is_symlink() for part in path.parents)
    }


def drawn(seed: str, number: int, paths: tuple[str, ...] = DRAWN) -> Iterator[Drawn]:
    """So many different ones; of a larger number these are the first."""
    dice = random.Random(seed)
    texts = sources(paths)
    lines = [sum(bool(line.strip()) for line in text.splitlines()) for text in texts.values()]
    had: set[tuple[str, str]] = set()
    for _ in range(100 * number):
        if len(had) == number:
            return
        (name,) = dice.choices(list(texts), lines)
        mutation = draw(name, texts[name], dice)
        if mutation is None or (name, mutation.applied(texts[name])) in had:
            continue
        had.add((name, mutation.applied(texts[name])))
        old, new = mutation.anchored(texts[name])
        line = texts[name].count("\n", 0, mutation.start) + 1
        yield Drawn(Fault(f"{name}:{line}", name, old, new, tuple(tests_of(name, mutation.start))), mutation.kind)


def tests_of(name: str, at: int | None = None) -> list[str]:
    """The test files for a source, or for the character `at` of it: those that launch the kernels nearest to it, those
    that catch a listed fault in the file, those that name it, and the others of its package; of each the ones before
    that speak of more of what it defines, and then the shorter ones."""
    listed = {file for fault in _listed() if fault.file == name for file in fault.files}
    text = (ROOT / name).read_text(encoding="utf-8")
    defined = set(re.findall(r"^ *(?:def|class) (\w+)|^KERNEL\((\w+)|^template .* (\w+)\(", text, re.MULTILINE))
    words = {word for words in defined for word in words if len(word) > 3} | {Path(name).stem}
    packages = packages_of(name)
    kernels = {} if at is None or not name.endswith(".h") else kernels_around(name, at)
    files: dict[str, tuple[float, bool, bool, int, int]] = {}
    for file, of_it in _test_files().items():
        named = _names(name, of_it)
        far = min((steps for kernel, steps in kernels.items() if f'"{kernel}"' in of_it), default=math.inf)
        if named or file in listed or file.split("/")[1] in packages:
            spoken = len(words & _words(file))
            files[file] = (far, file not in listed, not named, -spoken, len(of_it))
    return sorted(files, key=lambda file: files[file])


# A function of the kernels' sources begins at the left edge.
_DEFINED = re.compile(
    r"^(?:VECTOR_|LINE_|ROW_)?KERNEL\((\w+)|^(?![\s/#}])[^;{}()\n]*?\bHD\b[^;{}()\n]*?(\w+)\(", re.MULTILINE
)


def kernels_around(name: str, at: int) -> dict[str, int]:
    """Kernels that come past a place of a header, by how many calls lie between: 0 for the kernel that it is in."""
    before = [found for found in _DEFINED.finditer((ROOT / name).read_text(encoding="utf-8"), 0, at + 1)]
    if not before:
        return {}
    steps, wave = {before[-1][1] or before[-1][2]: 0}, [before[-1][1] or before[-1][2]]
    functions = _functions()
    for function in wave:
        for user, (_, spoken) in functions.items():
            if function in spoken and user not in steps:
                steps[user] = steps[function] + 1
                wave.append(user)
    return {function: n for function, n in steps.items() if functions.get(function, (False, ()))[0]}


@cache
def _functions() -> dict[str, tuple[bool, set[str]]]:
    """Of every function of the kernels' sources whether it is a kernel, and the words of its body."""
    found: dict[str, tuple[bool, set[str]]] = {}
    for name, text in sources(("kernels",)).items():
        begins = [*_DEFINED.finditer(text)] if name.endswith(".h") else []
        ends = [*(one.start() for one in begins), len(text)][1:]
        for one, end in zip(begins, ends, strict=True):
            words = found.get(one[1] or one[2], (False, set()))[1] | set(re.findall(r"\w+", text[one.end() : end]))
            found[one[1] or one[2]] = bool(one[1]), words
    return found


def packages_of(name: str) -> tuple[str, ...]:
    """The folders of tests/ for a source."""
    return TESTS.get(name) or TESTS.get(_package(name)) or (_package(name).removeprefix("hiresx/"),)


@cache
def _listed() -> list[Fault]:
    return deliberate.read()


@cache
def _words(file: str) -> set[str]:
    return set(re.findall(r"\w+", _test_files()[file]))


@cache
def _test_files() -> dict[str, str]:
    # those of these scripts name what they like
    own = {f"test_{Path(script).stem}" for script in (__file__, str(deliberate.__file__))}
    found = sorted(path for path in ROOT.glob("tests/*/test_*.py") if path.stem not in own)
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}


def _package(name: str) -> str:
    """`hiresx/grid` of hiresx/grid/generators/box.py, `hiresx` of hiresx/simulation/blow_up_error.py."""
    folders = name.split("/")[:-1]
    return "/".join(folders[: 2 if folders[0] == "hiresx" else 1])


def _names(name: str, text: str) -> bool:
    """Whether a test file imports the module, or launches or includes the kernels, of a source file."""
    return re.search(_naming(name), text) is not None


@cache
def _naming(name: str) -> re.Pattern[str]:
    stem = Path(name).stem
    if name.endswith(".h"):
        kernels = re.findall(r"^KERNEL\((\w+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        return re.compile("|".join(map(re.escape, [f'"{kernel}"' for kernel in kernels] + [f"{stem}.h"])))
    package = ".".join(Path(name).parent.parts)
    package = re.escape(package if package.startswith("hiresx") else f"hiresx.{package}")
    return re.compile(rf"{package}\.{stem}\b|from {package} import [^\n]*\b{stem}\b")


def equivalent(path: Path = EQUIVALENT) -> dict[tuple[str, str, str], str]:
    """Why each of the kept list changes nothing, by (file, old, new)."""
    tables = tomllib.loads(path.read_text(encoding="utf-8")).get("fault", []) if path.is_file() else []
    return {(table["file"], table["old"], table["new"]): table["reason"] for table in tables}


@dataclass(frozen=True)
class Bounds:
    """Whether slow tests are run, and seconds for one test and for all of a fault."""

    slow: bool = False
    longest: float = LONGEST
    altogether: float = ALTOGETHER


@dataclass(frozen=True)
class Batch:
    """Tests of one run of pytest: whole `files`, or of them those in `order` alone, in that order; and its `-m`."""

    files: tuple[str, ...]
    order: tuple[str, ...] | None
    marked: str


def batches(one: Drawn, reached: Reached | None, slow: bool) -> list[Batch]:
    """What is run for a fault, one after the other until one is red. Of tests that are noted as coming past the place
    first those of the files that are most about it, the quick ones before the others, for no longer than `ENOUGH`; a
    test file that has changed since it was noted is run whole."""
    if reached is None:
        return [Batch(one.fault.tests, None, "" if slow else "not slow")]
    named = {file: n for n, file in enumerate(one.fault.tests)}
    steps = coming_past(one.fault, reached)
    changed = {file for file in (*named, *map(_file, steps)) if file in _test_files() and not _as_noted(file, reached)}
    noted = [test for test in steps if _file(test) in _test_files() and _file(test) not in changed]

    def rank(test: str) -> tuple[bool, int, int, float]:
        seconds = reached.seconds.get(test, math.inf)
        return seconds > LONG, steps[test], named.get(_file(test), len(named)), seconds

    first: list[str] = []
    then: list[str] = []
    spent = 0.0
    for test in sorted(noted, key=rank):
        spent += (took := reached.seconds.get(test, math.inf))
        if took < math.inf and spent < ENOUGH:
            few = len({_file(test), *map(_file, first)}) <= FEW
            (first if few and not then and spent < ENOUGH / 8 else then).append(test)
    found = [Batch(tuple(dict.fromkeys(map(_file, part))), tuple(part), "not slow") for part in (first, then) if part]
    if changed:
        found.insert(1, Batch(tuple(sorted(changed, key=lambda file: named.get(file, math.inf))), None, "not slow"))
    if not found:
        found = [Batch(one.fault.tests[:2], None, "not slow")]
    if slow:
        files = dict.fromkeys([*one.fault.tests[:FEW], *(file for batch in found for file in batch.files)])
        found.append(Batch(tuple(files), None, "slow"))
    return found


def coming_past(fault: Fault, reached: Reached) -> dict[str, int]:
    """Tests that come past the place of a fault; of a kernel by how many calls lie between."""
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    at = text.index(fault.old) + _first_difference(fault.old, fault.new)
    if fault.file.endswith(".py"):
        return dict.fromkeys(reached.tests(fault.file, text, at), 0)
    found: dict[str, int] = {}
    for kernel, steps in sorted(kernels_around(fault.file, at).items(), key=lambda item: item[1]):
        for test in sorted(reached.kernels.get(kernel, ())):
            found.setdefault(test, steps)
    # of what no kernel is known to come past, as members of a structure, all that launch any
    return found or dict.fromkeys(set().union(*reached.kernels.values()), 0)


def _first_difference(a: str, b: str) -> int:
    return next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)) - 1)


def _file(test: str) -> str:
    return test.partition("::")[0]


def _as_noted(file: str, reached: Reached) -> bool:
    return reached.digests.get(file) == digest(_test_files()[file])


def tried(one: Drawn, place: Path, cache: Path, bounds: Bounds, reached: Reached | None = None) -> dict[str, Any]:
    """What became of a fault: the outcome, the test that was red, and times. That test is run once more alone, with the
    fault and without it: one that is red by chance, as on a busy machine, is left out, and the others go on."""
    seconds = cpu = 0.0
    environment = _quick_compiler(cache) if one.fault.file.endswith(".h") else {}
    omitted: list[str] = []
    what, red, done = SURVIVED, "", Tried(0, "no test", 0.0, 0.0)
    for batch in (planned := batches(one, reached, bounds.slow)):
        options = ["-m", batch.marked, "--timeout", str(bounds.longest), "-rfE", *omitted]
        more = dict(environment)
        if batch.order is not None:
            (order := cache.with_name("order.json")).write_text(json.dumps(batch.order), encoding="utf-8")
            more |= {ORDER: str(order), "PYTHONPATH": os.pathsep.join([str(place), str(place / "tests")])}
            options += ["-p", "reached"]
        for _ in range(_CHANCES):
            left = bounds.altogether - seconds
            what, done = deliberate.outcome(replace(one.fault, tests=batch.files), place, cache, left, *options, **more)
            seconds, cpu = seconds + done.seconds, cpu + done.cpu
            red = next(iter(FAILED.findall(done.said)), "")
            if what == NOTHING_RUN:
                what = SURVIVED
            if what != CAUGHT or done.status != 1 or not red:
                break
            if batch.order is not None and not environment and red in reached.seconds:
                break  # green without the fault when it was noted, red twice with it
            alone = deliberate.pytest(place, cache, [red], longest=left, **environment).status
            again, _ = deliberate.outcome(replace(one.fault, tests=(red,)), place, cache, left, **environment)
            if alone == 0 and again != SURVIVED:
                break
            options += ["--deselect", red]
            omitted += ["--deselect", red]
        else:
            what = "its tests are not green without it"
        if what != SURVIVED or seconds > bounds.altogether:
            break
    if what == CAUGHT and one.kind.startswith("ReplaceBinaryOperator") and ABSURD.search(done.said):
        what = "does not run"
    said = "" if what == CAUGHT else done.said[-1500:]
    entry = {"outcome": what, "test": red, "said": said, "seconds": round(seconds, 1), "cpu": round(cpu, 1)}
    return entry | {"marked": batch.marked, "ran": sum(len(one.order or ()) for one in planned)}


def _quick_compiler(cache: Path) -> dict[str, str]:
    """A C++ compiler that optimises little, in half the time."""
    script = cache.with_name("g++-O1")
    command = os.environ.get("CXX") or "g++"
    script.write_text(f'#!/bin/bash\nexec {command} "${{@/#-O[23]/-O1}}"\n', encoding="utf-8")
    script.chmod(0o755)
    return {"CXX": str(script)}


def run(
    faults: list[Drawn],
    jobs: int,
    out: Path | None,
    bounds: Bounds,
    kernels: Path | None = None,
    reached: Reached | None = None,
) -> int:
    """Try them; prints each outcome, what has survived, and the score. Returns the exit status."""
    known_equivalent = equivalent()
    counted: list[str] = []
    survivors: list[Drawn] = []
    with tempfile.TemporaryDirectory(prefix="random-faults-") as scratch:
        workers = Workers(Path(scratch), jobs, out)
        if kernels is not None:
            for n in range(jobs):
                shutil.copytree(kernels, Path(scratch) / str(n) / "cache", dirs_exist_ok=True)

        def each(one: Drawn, place: Path, cache: Path) -> tuple[Drawn, dict[str, Any]]:
            fault = one.fault
            if (fault.file, fault.old, fault.new) in known_equivalent:
                return one, {"outcome": "equivalent", "test": "", "seconds": 0.0}
            key = Workers.key(fault.file, fault.old, fault.new, str(bounds), files=[fault.file, *fault.tests])
            if key in workers.known:
                return one, workers.known[key]
            entry = tried(one, place, cache, bounds, reached)
            return one, workers.keep(key, fault=fault.name, file=fault.file, kind=one.kind, **entry)

        for one, entry in workers.all(each, faults):
            print(f"{entry['outcome']:>12}  {one.fault.name}  {one.kind}  {entry['test']} ({entry['seconds']:.0f} s)")
            counted += [entry["outcome"]] if entry["outcome"] in (CAUGHT, SURVIVED, deliberate.ENDLESS) else []
            survivors += [one] if entry["outcome"] in (SURVIVED, deliberate.ENDLESS) else []
            sys.stdout.flush()
    for one in survivors:
        print(f"\n{as_entry(one.fault)}")
    caught = counted.count(CAUGHT)
    print(f"\n{caught} of {len(counted)} caught ({caught / max(1, len(counted)):.1%}), {len(faults)} drawn")
    return int(caught < LEAST * len(counted))


def as_entry(fault: Fault) -> str:
    """As it would stand in deliberate_faults.toml."""
    texts = {"name": fault.name, "file": fault.file, "old": fault.old, "new": fault.new}
    return "[[fault]]\n" + "\n".join(f"{key} = {json.dumps(text)}" for key, text in texts.items())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw faults by a seed, and try them: does a test catch each?")
    parser.add_argument("--seed", help="any word; the commit that is checked out if absent")
    parser.add_argument("--number", type=int, default=30, metavar="N", help="how many")
    parser.add_argument(
        "--paths", "--rooms", nargs="+", default=list(DRAWN), metavar="PATH", help="folders or files to draw from"
    )
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="faults at a time")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="keep outcomes there; what it tells is not tried again"
    )
    parser.add_argument("--longest", type=float, default=LONGEST, metavar="SECONDS", help="for one test of a fault")
    parser.add_argument(
        "--altogether", type=float, default=ALTOGETHER, metavar="SECONDS", help="for all tests of a fault"
    )
    parser.add_argument("--kernels", type=Path, metavar="FOLDER", help="a kernel cache, of which each job has a copy")
    parser.add_argument("--reached", type=Path, metavar="FOLDER", help="what tests/reached.py has noted there")
    parser.add_argument("--slow", action="store_true", help="with the slow tests")
    parser.add_argument("--list", action="store_true", help="name the faults and what may catch them")
    given = parser.parse_args(arguments)
    seed = given.seed or seed_of_the_commit()
    paths = tuple(path.strip("/") for path in given.paths)
    if not sources(paths):
        parser.error(f"no .py or .h file in {', '.join(paths)}")
    faults = list(drawn(seed, given.number, paths))
    print(f"seed {seed}", flush=True)
    if given.list:
        for one in faults:
            print(f"\n# {one.kind}\n{as_entry(one.fault)}\ntests = {json.dumps(one.fault.tests)}")
        return 0
    bounds = Bounds(given.slow, given.longest, given.altogether)
    reached = Reached.read(given.reached) if given.reached else None
    return run(faults, given.jobs, given.out, bounds, given.kernels, reached)


if __name__ == "__main__":
    sys.exit(main())
