"""Finds the groups of checks and runs them."""

import importlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from hiresx.case.error_messages import did_you_mean
from hiresx.device import backend as find_backend
from hiresx.device import cuda
from hiresx.device.configuration import Configuration
from hiresx.errors import HiresxError
from hiresx.rhs.compact import UnsuitedPlan
from hiresx.solver.plan_choice import check_plan
from hiresx.verify.checks import Check, Workbench

# Number of digits of curves: more than a picture shows.
DIGITS = 6


def names() -> list[str]:
    """Return the names of all groups of checks of `hiresx verify`."""
    folder = Path(__file__).parent / "groups"
    return sorted(path.stem.replace("_", "-") for path in folder.glob("*.py") if path.stem != "__init__")


def group(name: str) -> ModuleType:
    """Return the module of a group of checks: its docstring describes the checks, CHECKS is a list of `Check`, LONG is
    true if they take minutes. Raises HiresxError for an unknown name."""
    if name not in names():
        raise HiresxError(f'no group of checks is called "{name}"', did_you_mean(name, [*names(), "all", "long"]))
    return importlib.import_module(f"hiresx.verify.groups.{name.replace('-', '_')}")


def choose_groups(asked: Sequence[str]) -> list[str]:
    """Return the names of the groups of checks that `asked` selects, each once, in the order of `names`. `asked`: names
    of groups, "long" (those that take minutes) or "all"; empty: those that take seconds."""
    found = set() if asked else {name for name in names() if not group(name).LONG}
    for word in asked:
        if word in ("all", "long"):
            found |= {name for name in names() if word == "all" or group(name).LONG}
        else:
            group(word)
            found.add(word)
    return [name for name in names() if name in found]


def run(
    asked: Sequence[str], backend: str, say: Callable[[str], None] | None, plan: str | None = None
) -> list[dict[str, Any]]:
    """Run the checks of the groups `asked` and return their results. `asked`: names of groups, or "long" or "all";
    empty for those that take seconds. `say`: a function that is called with lines about the progress; None: they are
    printed to standard error if it is a terminal. `plan`: the order of computation; None for the default of the
    backend. The results are described in `hiresx.verify.run`."""
    if say is None:
        say = partial(print, file=sys.stderr, flush=True) if sys.stderr.isatty() else lambda text: None
    wanted = choose_groups(asked)
    bench = Workbench(find_backend(backend).name, plan)
    if plan is not None:
        check_plan(plan, bench.backend)
    began = time.perf_counter()
    count = compile_ahead(bench, (check for name in wanted for check in group(name).CHECKS))
    say(f"{count} sets of kernels compiled or found in {time.perf_counter() - began:.1f} s")
    results = []
    for name in wanted:
        for check in group(name).CHECKS:
            result = judge(name, check, bench)
            say(line(result))
            results.append(result)
        bench.forget()
    return results


def compile_ahead(bench: Workbench, checks: Iterable[Check]) -> int:
    """Compile the kernels that `checks` need, on all cores at once, and return the number of configurations (sets of
    kernels) that were needed. A compilation that fails is repeated in its check, which reports the error. `bench`: the
    `Workbench` with the backend under test."""
    wanted = list(dict.fromkeys(found for check in checks for found in check.needed_kernels(bench.backend)))

    def compile_one(needed: tuple[str, Configuration]) -> None:
        name, configuration = needed
        with suppress(HiresxError):
            if name == "cuda":
                cuda.precompile(configuration)
            else:
                find_backend(name).compile(configuration)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(compile_one, wanted))
    return len(wanted)


def judge(name: str, check: Check, bench: Workbench) -> dict[str, Any]:
    """Run one check of the group `name`, and return its result as a dictionary (`hiresx.verify.run`). `bench`: the
    `Workbench` with the backend under test."""
    began = time.perf_counter()
    value, curves, error, left_out = math.nan, {}, None, None
    try:
        value = check.value(bench)
        curves = {key: [_round(v) for v in values] for key, values in check.curve_values(bench).items()}
    except UnsuitedPlan as fault:
        left_out = fault.message
    except HiresxError as fault:
        error = str(fault)
    return {
        "group": name,
        "check": check.name,
        "backend": bench.backend,
        "value": value,
        "relation": check.limit.relation,
        "threshold": check.limit.threshold,
        "pass": None if left_out else check.limit.holds(value),
        "seconds": time.perf_counter() - began,
        "commands": [bench.command(run) for run in check.runs],
        **({"plan": bench.plan} if bench.plan else {}),
        **({"left_out": left_out} if left_out else {}),
        **({"error": error} if error else {}),
        **({"curves": curves} if curves else {}),
    }


def _round(value: float) -> float:
    return float(f"{float(value):.{DIGITS}g}")


def line(result: dict[str, Any]) -> str:
    """Return the result of a check as one line of text. `result`: the dictionary that `judge` returns."""
    if "left_out" in result:
        return f"left out  {result['group']}: {result['check']}: {result['left_out']}"
    mark = "pass" if result["pass"] else "FAIL"
    threshold = result["threshold"]
    shown = f"{threshold[0]:g} .. {threshold[1]:g}" if isinstance(threshold, tuple) else f"{threshold:g}"
    return (
        f"{mark}  {result['group']}: {result['check']}: {result['value']:.4g} {result['relation']} {shown}"
        f"  ({result['seconds']:.1f} s)" + (f"  {result['error']}" if "error" in result else "")
    )
