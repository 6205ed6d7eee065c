"""`hiresx gradient`: derivatives of forces and other results of a steady flow with respect to keys of its case."""

from typing import TYPE_CHECKING, Annotated

from hiresx.cli import options, terminal
from hiresx.cli.options import option
from hiresx.errors import HiresxError

if TYPE_CHECKING:
    from hiresx.gradients import Gradient

Of = Annotated[
    str,
    option(
        "--of",
        "NUMBER,...",
        "What is differentiated: numbers of the case's monitors, HISTORY.QUANTITY, or lift and drag of a force, where "
        "the case gives initial.state.",
    ),
]
By = Annotated[str, option("--by", "KEY,...", "Dotted keys of real numbers, e.g. parameters.mach,gas.reynolds.")]
Step = Annotated[
    float | None,
    option("--step", "H", "Step of the differences in each key; by default the flow changes by 3e-4 in it."),
]
Check = Annotated[
    bool, option("--check", None, "Beside each derivative the difference of flows that are converged around the key.")
]
Adjoint = Annotated[
    bool,
    option(
        "--adjoint",
        None,
        "Solve linear equations for each number in place of each key: for many keys of a plane flow. Forces only; "
        "rank 0 holds the matrix; needs SciPy.",
    ),
]
Extended = Annotated[
    bool,
    option(
        "--extended",
        None,
        "Compute the residual of the linear equations in extended precision, on the CPU: for viscous flow, whose thin "
        "cells enlarge round-off.",
    ),
]


def gradient(
    name: options.CaseName,
    of: Of,
    by: By,
    preset: options.Preset = None,
    set_: options.Overrides = None,
    unset: options.Unset = None,
    step: Step = None,
    check: Check = False,
    adjoint: Adjoint = False,
    extended: Extended = False,
    backend: options.Backend = "auto",
    json: options.Json = False,
) -> int:
    """Compute the steady flow of a case, and the derivatives of numbers of its monitors, such as forces (--of), with
    respect to keys of the case (--by).

    The integrator must be the implicit one (--set time.integrator=implicit). Each key costs about one solution of
    linear equations, the linearised equations of the flow; with --adjoint each number costs one instead. The right-hand
    side of the equations is computed by differences with the step --step in the key, and --extended computes their
    residual in extended precision. --check adds derivatives from differences of converged flows, four flows for each
    key.

    Exit status: 0 done; 2 an error to correct.

    If mpirun or srun starts this command, all ranks compute the flow together. hiresx launch cannot start it.
    """
    with terminal.only_json(json):
        wanted, keys = _names("--of", of, "lift,drag"), _names("--by", by, "parameters.mach,gas.reynolds")
        from hiresx.case.loader import by_key
        from hiresx.gradients import gradient as differentiate
        from hiresx.mpi.communicator import world

        comm = world()
        say = terminal.progress if not json else None
        overrides = by_key(set_ or ()) | dict.fromkeys(unset or ())
        found = differentiate(name, wanted, keys, preset, overrides, backend, step, check, comm, say, adjoint, extended)
    if comm.root:
        if json:
            terminal.print_json(found.document())
        else:
            _print(found)
    return 0


def _names(what: str, text: str, example: str) -> list[str]:
    """The names in the `text` of the option `what`. Raises HiresxError where one is empty, or there is none."""
    names = [word.strip() for word in text.split(",")]
    if not any(names):
        raise HiresxError(f"{what} names nothing", f"give one name or more, e.g. {what} {example}")
    if not all(names):
        found = ",".join(filter(None, names))
        raise HiresxError(f'{what} "{text}": there is no name beside a comma', f"write {what} {found}")
    return names


def _print(found: "Gradient") -> None:
    """Print the derivatives, number by number, and how the equations were solved."""
    flow = found.flow
    terminal.say(
        f"steady flow: {flow['steps']} steps, its residual fell by {flow['drop']:.3g} to {flow['residual']:.3g}"
    )
    rows = []
    for number, value in found.values.items():
        for key, derivative in found.derivatives[number].items():
            row = [number, f"{value:.10g}", key, f"{found.parameters[key]:.10g}", f"{derivative:.10g}"]
            if found.differences is not None:
                other = found.differences[number][key]
                off = abs(derivative - other) / abs(other) if other else abs(derivative)
                row += [f"{other:.10g}", f"{off:.1e}"]
            rows.append(row)
    checked = ["of flows", "off by"] if found.differences is not None else []
    terminal.table("Derivatives", ["of", "value", "by", "at", "derivative", *checked], rows)
    solved = [
        (key, f"{one['step']:.3g}", f"{one['residual']:.1e}", one["products"]) for key, one in found.solved.items()
    ]
    terminal.table("Linear equations", ["by", "step", "residual", "products"], solved)
