"""Arguments of launches on a GPU, with NumPy in place of CuPy: those that fit are accepted by fast checks,
and for others the error names the argument."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx import load
from hiresx.device.cuda import CudaProgram
from hiresx.device.wrappers import generate
from hiresx.solver import configuration

SIDE = 12
NODES = SIDE**3


@pytest.fixture(scope="module")
def program():
    chosen = configuration(load("sedov"))
    _, signatures = generate(chosen, "cuda")
    return CudaProgram(None, SimpleNamespace(ndarray=np.ndarray), None, signatures, chosen.real, None)


def arguments(**changes):
    field = {name: np.zeros((5, SIDE, SIDE, SIDE)) for name in ("q0", "q", "r")}
    numbers = {"o": 0, "sj": SIDE, "sk": SIDE**2, "sv": NODES, "dt_stride": 0, "a": 0.5, "b": 0.25, "first": 1}
    return {**numbers, **field, "jacobian": np.zeros((SIDE,) * 3), "dt": np.zeros(1)} | changes


def test_arguments_that_fit_are_passed_on_without_the_slower_checks(program, monkeypatch):
    monkeypatch.setattr("hiresx.device.cuda.check_places", None)
    given = arguments()
    call = program.call("update", (SIDE,) * 3, **given)
    assert list(call.arguments) == [name for _, name in call.signature.arguments]
    values = [call.arguments[name] for name in call.arguments]
    assert call.packed[:3] == (SIDE,) * 3 and all(isinstance(n, np.int32) for n in call.packed[:3])
    assert all(passed is value or passed == value for passed, value in zip(call.packed[3:], values, strict=True))
    monkeypatch.undo()
    program._passes["update"] = lambda extent, **rest: None
    slower = program.call("update", (SIDE,) * 3, **given)
    assert all(a is b or (a == b and type(a) is type(b)) for a, b in zip(call.packed, slower.packed, strict=True))
    del program._passes["update"], program._converters["update"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"q": np.zeros((4, SIDE, SIDE, SIDE))}, "argument q .*needs 5 variables"),
        ({"jacobian": np.zeros(NODES - 1)}, "argument jacobian .*needs 1 variables"),
        ({"sv": NODES - 1}, "argument sv"),
        ({"o": -1}, "argument o "),
        ({"r": np.zeros((5, SIDE, SIDE, SIDE), np.float32)}, "argument r .*float64"),
        ({"q": None}, "argument q "),
        ({"a": 1}, "argument a .*fraction"),
        ({"first": 2**31}, "argument first .*int32"),
        ({"other": 1}, "takes no argument other"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(program, changes, said):
    with pytest.raises(TypeError, match=said):
        program.call("update", (SIDE,) * 3, **arguments(**changes))
