"""`hiresx scaling`: measures the parallel scaling of a case."""

from pathlib import Path
from typing import Annotated, Any

from hiresx.cli import options, terminal
from hiresx.cli.options import option
from hiresx.errors import HiresxError

MODES = ("strong", "weak")


def scaling(
    name: options.CaseName,
    preset: options.Preset = None,
    set_: options.Overrides = None,
    unset: options.Unset = None,
    ranks: Annotated[str, option("--ranks", "1,2,4,...", "Numbers of ranks.")] = "1,2",
    mode: Annotated[
        str, option("--mode", "strong|weak", "Same grid for all, or same number of nodes per rank.")
    ] = "strong",
    steps: Annotated[int, option("--steps", "N", "Time steps of a sample.", min=1)] = 10,
    repeats: Annotated[int, option("--repeats", "N", "Samples; the results are medians.", min=1)] = 3,
    placements: Annotated[
        str | None, option("--placements", "optimal,paper,round-robin", "Compare placements on GPUs.")
    ] = None,
    backend: options.Backend = "auto",
    transport: Annotated[str, option("--transport", "NAME", "As in hiresx run.")] = "auto",
    predict: Annotated[
        Path | None, option("--predict", "MACHINE.json", "Also predict a machine with these rates.")
    ] = None,
    measure: Annotated[
        bool, option("--measure/--no-measure", None, "Measure on this machine; if not, only --predict.")
    ] = True,
    out: Annotated[Path | None, option("--out", "DIR", "Write scaling.json, scaling.nc and scaling.png there.")] = None,
    json: options.Json = False,
) -> int:
    """Run a case on several numbers of ranks, and show seconds per step, efficiency, waiting times and the gain of
    overlap.

    With --predict MACHINE.json also predict the times on another machine (see docs/parallel.md).

    Exit status: 0 done; 2 an error to correct.
    """
    with terminal.only_json(json):
        from hiresx.bench.results import header
        from hiresx.case import load
        from hiresx.output.saved import directories
        from hiresx.scaling import experiment, store
        from hiresx.scaling import predict as prediction
        from hiresx.scaling.scaling_table import rows
        from hiresx.scaling.weak import refine_for_ranks
        from hiresx.topology.place import STRATEGIES

        if mode not in MODES:
            raise HiresxError(f"--mode {mode}: not known", f"it is one of {', '.join(MODES)}")
        wanted = _numbers(ranks)
        names = [] if placements is None else [word.strip() for word in placements.split(",")]
        for word in names:
            if word not in STRATEGIES:
                raise HiresxError(f"--placements {word}: not known", f"there are {', '.join(STRATEGIES)}")
        if not measure and predict is None:
            raise HiresxError("--no-measure leaves nothing to do", "give --predict MACHINE.json")
        case = load(name, preset or (), set_ or (), unset=unset or ())
        if out is not None:
            directories.make_directory(out)
        rates = None if predict is None else prediction.Rates.read(predict)
        found = []
        if measure:
            todo = experiment.jobs(wanted, names)
            found = list(experiment.run_jobs(case, todo, mode, steps, repeats, backend, transport, terminal.note))
        backends = {rank["backend"] for run_ in found for rank in run_["by_rank"]}
        document: dict[str, Any] = header("scaling") | {
            "case": " ".join([case.name, *(set_ or ()), *(f"--unset {key}" for key in unset or ())]),
            "mode": mode,
            "backend": "cuda" if "cuda" in backends else "cpu",
            "rows": rows(found),
            "runs": found,
        }
        if rates is not None:
            cases = [(n, refine_for_ranks(case, n) if mode == "weak" else case) for n in wanted]
            document["predicted"] = prediction.curve(cases, rates)
            document["predicted_from"] = rates.source
        if out is not None:
            store.write_json(out / "scaling.json", document)
            store.write_netcdf(out / "scaling.nc", document)
            store.draw(out / "scaling.png", document)
    if json:
        terminal.print_json(document)
        return 0
    show(document)
    if out is not None:
        terminal.say(f"wrote {out}")
    return 0


def _numbers(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise HiresxError(f"--ranks {text}: not numbers of ranks", "write for instance --ranks 1,2,4")
    return sorted({int(word) for word in words})


def show(document: dict[str, Any]) -> None:
    """Print `document`, the result of a scaling experiment or prediction, as tables."""
    if document["rows"]:
        terminal.table(
            f"{document['mode']} scaling of {document['case']}",
            ("ranks", "placement", "points", "ms/step", "spread", "speed-up", "efficiency", "Mpoint-steps/s",
             "sssp/M", "waiting", "overlap gain", "MB/step", "halos by"),
            [
                (
                    row["ranks"], row["placement"] or "", f"{row['points']:,}", f"{1e3 * row['step_s']:.4g}",
                    f"{1e3 * row['least']:.4g}-{1e3 * row['most']:.4g}", f"{row['speedup']:.2f}",
                    f"{row['efficiency']:.1%}", f"{row['point_steps_per_s'] / 1e6:.4g}", f"{row['sssp'] / 1e6:.4g}",
                    f"{row['wait']:.1%}", f"{row['overlap_gain']:.1%}", f"{row['sent_bytes'] / 1e6:.3g}",
                    ", ".join(row["transports"]),
                )
                for row in document["rows"]
            ],
        )  # fmt: skip
        from hiresx.scaling.store import stages

        names = stages(document["rows"])
        terminal.table(
            "ms per step by stage, most of any rank",
            ("ranks", "placement", *names),
            [
                (row["ranks"], row["placement"] or "", *(f"{1e3 * row['stages'].get(name, 0):.4g}" for name in names))
                for row in document["rows"]
            ],
        )
    if document.get("predicted"):
        terminal.table(
            f"predicted from {document['predicted_from']}",
            ("ranks", "ms/step", "work", "exchange", "speed-up", "efficiency", "busiest link"),
            [
                (
                    row["ranks"], f"{1e3 * row['step_s']:.4g}", f"{1e3 * row['work_s']:.4g}",
                    f"{1e3 * row['exchange_s']:.4g}", f"{row['speedup']:.2f}", f"{row['efficiency']:.1%}",
                    row["busiest"] or "",
                )
                for row in document["predicted"]
            ],
        )  # fmt: skip
