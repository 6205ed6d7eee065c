"""The checks of a run on several ranks before any rank is started: `hiresx launch --dry-run`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hiresx.base.threads import check_threads
from hiresx.cli import options


def check_run(values: Mapping[str, Any], ranks: int) -> None:
    """Check a run before ranks are started. Raises the HiresxError with which `hiresx run` with the options `values`
    would end before its first step: for its options, its case, its grid and the partition of the grid on `ranks` ranks.
    Of a restarted run only the options are checked, as the checkpoint holds the rest."""
    from hiresx.cli.run import refuse_existing_run
    from hiresx.exchange.choice import known_transport
    from hiresx.simulation.rebalance import parse_rule

    weights = options.numbers(values["weights"], "--weights", "1,1,4")
    check_threads(values["threads"])
    known_transport(values["transport"])
    parse_rule(values["rebalance"])
    if values["restart"] is not None:
        return
    from hiresx.case import load
    from hiresx.cli.check_walls import check_wall_models, check_wall_models_on_ranks
    from hiresx.cli.grid_checks import check_grid
    from hiresx.decomposition.partition import partition
    from hiresx.estimate import refuse_on_gpus, refuse_oversized
    from hiresx.output.fields import field_output

    case = load(values["name"], values["preset"] or (), values["set_"] or ())
    refuse_oversized(case, values["backend"])
    refuse_on_gpus(case, values["backend"], ranks)
    field_output.check(case)
    if values["out"] is not None:
        refuse_existing_run(Path(values["out"]))
    decomposition = check_grid(case).decomposition
    partition(decomposition, ranks, weights)
    check_wall_models(decomposition)
    check_wall_models_on_ranks(decomposition, ranks, weights)
