"""The functions of a case: the file case.py beside case.toml."""

import functools
import inspect
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.base.arrays import check_reals
from hiresx.base.termination_signals import SIGNALLED
from hiresx.case.error_messages import did_you_mean
from hiresx.case.validation import check_state
from hiresx.case.wave_sums import Quantity, Waves, at, swings
from hiresx.equations import GAS_PRIMITIVE
from hiresx.errors import HiresxError, describe, error_text

if TYPE_CHECKING:
    from hiresx.case.schema import Case

FILE = "case.py"
# The hint of the error for a user's function that fails.
CORRECT_FUNCTION = "correct the function"
GAS = ("gamma", "prandtl", "reynolds")
STATE = GAS_PRIMITIVE


@functools.lru_cache(maxsize=16)
def _execute(path: Path, stamp: tuple[int, int]) -> dict[str, Callable[..., Any]]:
    module = types.ModuleType("case")
    module.__file__ = str(path)
    try:
        # The file is executed and not imported: a case folder is no package, may be read-only, and should not contain
        # __pycache__.
        exec(compile(path.read_text(encoding="utf-8-sig"), str(path), "exec"), module.__dict__)
    except SIGNALLED:
        raise
    except PermissionError as error:
        if error.filename != str(path):
            raise HiresxError(f"{_place(error, path)}: {describe(error)}", f"correct {path}") from error
        raise HiresxError(f"{path}: permission denied", "check its permissions") from None
    except BaseException as error:
        raise HiresxError(f"{_place(error, path)}: {describe(error)}", f"correct {path}") from error
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType) and value.__module__ == "case" and not name.startswith("_")
    }


def _place(error: BaseException, path: Path) -> str:
    """Return file and line of `path` at which `error` occurred."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{path}, line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}, line {lines[-1]}" if lines else str(path)


def public_functions(directory: Path | None) -> dict[str, Callable[..., Any]]:
    """Return the public functions of the file case.py in the folder `directory`, by name. The result is empty if there
    is no such file. Raises HiresxError, with file and line, if the file cannot be executed."""
    path = None if directory is None else Path(directory).absolute() / FILE
    if path is None or not path.is_file():
        return {}
    status = path.stat()
    return _execute(path, (status.st_mtime_ns, status.st_size))


def function(directory: Path | None, name: str) -> Callable[..., Any]:
    """Return the function `name` of the file case.py in the folder `directory`. Raises HiresxError if there is no such
    file or function."""
    found = public_functions(directory)
    if name in found:
        return found[name]
    if directory is None:
        raise HiresxError(
            f'the case has no case.py, so no function "{name}"',
            "give the function to Simulation, or load the case from a folder that holds case.toml and case.py",
        )
    if not found:
        raise HiresxError(
            f'{Path(directory) / FILE} does not exist, but the case uses its function "{name}"',
            f"write {FILE} beside the case file with `def {name}(x, y, z, ...)`",
        )
    raise HiresxError(f'{Path(directory) / FILE}: no function "{name}"', did_you_mean(name, list(found), "functions"))


def keyword_only(call: Callable[..., Any]) -> dict[str, bool]:
    """Return the keyword-only arguments of the function `call`: a dictionary from their names to whether they have a
    default."""
    return _keyword_only(call) if isinstance(call, types.FunctionType) else _keyword_only.__wrapped__(call)


@functools.lru_cache(maxsize=256)
def _keyword_only(call: Callable[..., Any]) -> dict[str, bool]:
    return {
        argument.name: argument.default is not inspect.Parameter.empty
        for argument in inspect.signature(call).parameters.values()
        if argument.kind is inspect.Parameter.KEYWORD_ONLY
    }


def arguments(call: Callable[..., Any], parameters: Mapping[str, Any], gas: Any) -> dict[str, Any]:
    """Return the values of the keyword-only arguments of the function `call`, by name. They are taken from
    `parameters`, the table [parameters] of a case, and from `gas`, its table [gas] (gamma, prandtl, reynolds). Raises
    HiresxError for an argument without a default that is in neither table."""
    values: dict[str, Any] = {}
    for name, has_default in keyword_only(call).items():
        if name in parameters:
            values[name] = parameters[name]
        elif name in GAS:
            values[name] = getattr(gas, name)
        elif not has_default:
            raise HiresxError(
                f'function "{call.__name__}" has the argument "{name}", which is not in [parameters]',
                did_you_mean(name, [*parameters, *GAS], "parameters"),
            )
    return values


def check_parameters(directory: Path | None, parameters: Iterable[str], place: str) -> None:
    """Raise HiresxError for the first name in `parameters` that is not a keyword-only argument of any function of
    case.py in the folder `directory`: it is probably misspelt. A name of a key of [gas] is refused as well. `place`:
    the file and the table that contain the parameters, for the message."""
    found = public_functions(directory)
    taken = sorted({name for call in found.values() for name in keyword_only(call)})
    for name in parameters:
        if name in GAS:
            raise HiresxError(
                f"{place}: parameters.{name}: functions get {name} from [gas]", f"remove it, and set gas.{name}"
            )
        if name not in taken:
            raise HiresxError(
                f"{place}: parameters.{name}: no function of {FILE} takes it as a keyword-only argument",
                did_you_mean(name, [taker for taker in taken if taker not in GAS], "parameters of functions"),
            )


@contextmanager
def wrap_user_call(call: Callable[..., Any], what: str) -> Iterator[None]:
    """Return a context manager in which the user's function `call` is called. Any exception in it, SystemExit included,
    becomes a HiresxError with the description `what` of the function and the line of its file. KeyboardInterrupt,
    Terminated and HiresxError are not converted."""
    try:
        yield
    except (HiresxError, *SIGNALLED):
        raise
    except BaseException as error:
        code = getattr(call, "__code__", None)
        place = f"{_place(error, Path(code.co_filename))}: " if code else ""
        raise HiresxError(f"{place}{what} failed: {describe(error)}", CORRECT_FUNCTION) from error


def evaluate_profile(
    case: "Case", function: str | Callable[..., Any], x: np.ndarray, y: np.ndarray, z: np.ndarray,
    t: float | None = None,
) -> list[Quantity]:  # fmt: skip
    """Return rho, u, v, w, p of the flow that `function` gives at the nodes x, y, z (arrays of one shape, in units of
    the length scale L) and the time t (in L / c_ref). `function`: a function, or the name of a function of case.py. A
    quantity that it returns as `Waves` (a sum of waves in time) stays a `Waves`, broadcast to the shape of x; the
    others become arrays. Raises the errors of `Case.evaluate`."""
    call = case.function(function) if isinstance(function, str) else function
    return state(call, case.arguments(call), x, y, z, t)


def state(
    call: Callable[..., Any], values: Mapping[str, Any], x: np.ndarray, y: np.ndarray, z: np.ndarray, t: float | None
) -> list[Quantity]:
    """Return rho, u, v, w, p that the user's function `call(x, y, z[, t], **values)` returns. `x`, `y`, `z`:
    coordinates of points, arrays of one shape, in L. Each result is an array of this shape, or a `Waves` (a sum of
    waves in time). If t is None, the function is called without t. Raises HiresxError if the function fails or returns
    something else."""
    wanted = "it must return (rho, u, v, w, p), each a number or an array that broadcasts to the shape of x"
    return _evaluate(call, values, (x, y, z), t, STATE, "a state", wanted)


def evaluate_scalar_profile(
    case: "Case", quantity: str, function: str | Callable[..., Any], x: np.ndarray, y: np.ndarray, z: np.ndarray,
    t: float | None = None,
) -> Quantity:  # fmt: skip
    """Return the values that `function` gives for the passive scalar `quantity` at the nodes x, y, z (arrays of one
    shape, in units of the length scale L) and the time t (in L / c_ref). `function`: a function, or the name of a
    function of case.py. The result is an array of the shape of x, or a `Waves` (a sum of waves in time). Raises the
    errors of `Case.evaluate_scalar`."""
    call = case.function(function) if isinstance(function, str) else function
    wanted = f"it must return {quantity}, a number or an array that broadcasts to the shape of x"
    return _evaluate(
        lambda *a, **k: (call(*a, **k),), case.arguments(call), (x, y, z), t, (quantity,), "a scalar", wanted, call
    )[0]


def _on(shape: tuple[int, ...], name: str, part: Any) -> Quantity:
    """Return what a function gives for the quantity `name` as waves or an array of `shape`. Raises ValueError."""
    if isinstance(part, Waves):
        return part.on(shape)
    try:
        reals = check_reals(part)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    return np.array(np.broadcast_to(reals.astype(float), shape))


def _evaluate(
    call: Callable[..., Any], values: Mapping[str, Any], places: tuple[np.ndarray, ...], t: float | None,
    quantities: Sequence[str], kind: str, wanted: str, user: Callable[..., Any] | None = None,
) -> list[Quantity]:  # fmt: skip
    """Return the `quantities` that `call` returns. `call` is the function `user` of the user, or calls it."""
    user, shape = call if user is None else user, places[0].shape
    name = getattr(user, "__name__", "function")
    code = getattr(user, "__code__", None)
    place = f'{code.co_filename}: function "{name}"' if code else f'function "{name}"'
    with wrap_user_call(user, f'function "{name}"'):
        try:
            with np.errstate(all="ignore"):  # the result of a division by zero is reported below, with its place
                result = call(*places, **values) if t is None else call(*places, t, **values)
        except HiresxError as error:
            raise HiresxError(f"{place}: {error.message}", error.hint) from error
        try:
            parts = list(result)
            if len(parts) != len(quantities):
                raise ValueError(f"{len(parts)} values")
            if t is None and swings(parts):
                raise ValueError("waves, where nothing depends on time")
            state = [_on(shape, name, part) for name, part in zip(quantities, parts, strict=True)]
        except (TypeError, ValueError) as error:
            raise HiresxError(f"{place} returned something else than {kind}: {error_text(error)}", wanted) from error
    when = f", at t = {t:.6g}," if t else ""
    check_state(f"{place}{when} returned", dict(zip(quantities, at(state, t or 0.0), strict=True)), places)
    least = {name: part.least() for name, part in zip(quantities, state, strict=True) if isinstance(part, Waves)}
    check_state(f"{place} returned waves that may come down to", least, places)
    return state
