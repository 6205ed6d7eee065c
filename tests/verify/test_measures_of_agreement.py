"""What checks measure: how far results of kernels lie apart, and what a flow that does not survive has for errors."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hiresx.solver import Solver
from hiresx.verify import runner
from hiresx.verify.checks import Limit, Workbench
from hiresx.verify.groups import kernels, mms, waves


def blocks(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, (5, *shape)) for shape in shapes]


@pytest.mark.parametrize("block", [0, 1])
@pytest.mark.parametrize("variable", [0, 4])
@pytest.mark.parametrize("result", [1, 2, 3])
def test_the_worst_of_all_results_blocks_and_variables(result, variable, block):
    """Relative to the largest value of the variable in any block of the first result."""
    reference = blocks((3, 4, 5), (2, 4, 6))
    reference[1][variable, 0, 0, 0] = 8.0  # the largest
    others = [[array.copy() for array in reference] for _ in range(3)]
    results = [reference, *others]
    assert kernels._worst(results) == 0
    results[result][block][variable, 1, 2, 3] += 0.02
    assert kernels._worst(results) == pytest.approx(0.02 / 8, rel=1e-12)
    results[result][block][variable, 1, 2, 3] = np.nan
    assert not kernels._worst(results) < 1e9


def test_waves_that_lag_and_decay_have_negative_errors():
    """cos 2 pi (x - c t) with c t = .3, one of .8 of its height that has come but to .28."""
    x = np.arange(8) / 8
    exact, found = np.cos(2 * np.pi * (x - 0.3)), 0.8 * np.cos(2 * np.pi * (x - 0.28))
    run = SimpleNamespace(blocks=[SimpleNamespace(x=x)], state=lambda _: found, exact=lambda _: exact)
    amplitude, phase = waves.errors([waves.ratio(run)])
    assert amplitude[0] == pytest.approx(-0.2) and phase[0] == pytest.approx(-0.02 * 360)


def test_a_manufactured_flow_that_does_not_survive_has_no_errors(monkeypatch):
    pytest.importorskip("sympy", reason="pip install '.[mms]'")
    asked = []
    monkeypatch.setattr(Solver, "watched_step", lambda self, look: asked.append(self.steps) or False)
    boundary = next(name for name in mms.BOUNDARIES if name != "periodic")
    setup = mms.Setup(mms.PLANE, (), (("weights", "linear"),), amplitude=0.02, boundary=boundary)
    found = mms.errors(Workbench("cpu", None), setup, 12)
    assert len(found) == 3 and np.isnan(found).all() and asked == [0]


def test_limits_are_those_that_the_kept_results_were_judged_by():
    """What the pages say of a check holds of the program: a limit that changes asks for its results anew."""
    limits = {(name, check.name): check.limit for name in runner.names() for check in runner.group(name).CHECKS}
    compared = set()
    for path in sorted((Path(__file__).parents[2] / "docs/results").glob("verification-*.json")):
        for kept in json.loads(path.read_text(encoding="utf-8"))["checks"]:
            key = kept["group"], kept["check"]
            threshold = tuple(kept["threshold"]) if isinstance(kept["threshold"], list) else kept["threshold"]
            assert limits[key] == Limit(kept["relation"], threshold), (path.name, *key)
            compared.add(key)
    assert {group for group, _ in compared} >= {"accuracy", "mms", "strong-shocks", "taylor-green"}


@pytest.mark.parametrize(("tested", "other"), [("cuda", "cuda"), ("cpu", "emulated")])
def test_both_backends_of_a_comparison_are_compiled_ahead(monkeypatch, tested, other):
    compiled = []

    def backend(name):
        return SimpleNamespace(compile=lambda configuration: compiled.append((name, configuration)))

    monkeypatch.setattr(runner, "find_backend", backend)
    monkeypatch.setattr(runner.cuda, "precompile", backend("cuda").compile)
    every_kernel = next(check for check in kernels.CHECKS if check.name == "every kernel: sigma model")
    alone = next(check for check in kernels.CHECKS if "as one by one" in check.name)
    count = runner.compile_ahead(SimpleNamespace(backend=tested), [every_kernel, every_kernel, alone])
    (first,), (second,) = every_kernel.configurations, alone.configurations
    assert set(compiled) == {("cpu", first), (other, first), (other, second)}
    assert count == len(compiled) == 3
