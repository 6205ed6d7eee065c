"""The part of the performance page on several ranks: scaling, and the halo exchange by transport."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hiresx.base.plural import plural
from hiresx.bench.markdown import section, table

Result = dict[str, Any]


def sections(of_kind: Mapping[str, Sequence[Result]], place: Callable[[Result], str]) -> Iterable[str]:
    """Sections of the results of kind "scaling" and "exchange"; `place` gives the machine of a result in words."""
    parts = [part for result in of_kind.get("scaling", ()) for part in _scaling(result, place)]
    if parts:
        yield section(
            "## Scaling over ranks",
            "`hiresx scaling`: seconds per step of the slowest rank, median and range of the repeats, halos on their "
            "way while the interior is computed. Efficiency is against the fewest ranks. Waiting: share of the step "
            "that ranks wait for others, mean over the ranks; by `signals` the devices wait, and no host knows for how "
            "long. Overlap wins: how much longer a step is when halos are waited for at once. sssp: points times steps "
            "per second and rank (the SENSEI paper's metric). What GPUs did before 22 November 2026 they did by the "
            "decomposed plan.",
            *parts,
        )
    parts = [part for result in of_kind.get("exchange", ()) for part in _exchange(result, place)]
    if parts:
        yield section(
            "## Halo exchange by transport",
            "`python -m hiresx.bench.exchange`: blocks in a ring, each with two faces of n x n nodes, three layers "
            "of five variables each. The time goes from the start of an exchange to the moment when all ghosts can be "
            "used, packing and unpacking included; in a row, without waiting for the device in between; recorded, as a "
            "part of what the devices do without a host. Bytes are those that a rank sends. Every answer was compared.",
            *parts,
        )


def _scaling(result: Result, place: Callable[[Result], str]) -> Iterable[str]:
    first = result["runs"][0] if result["runs"] else {}
    terms = "viscous" if first.get("viscous") else "inviscid"
    heading = f"{result['mode'].capitalize()} scaling, {result['case']}, {terms}, {first.get('precision', '').upper()}"
    yield f"### {heading}\n\n`{result['command']}`, {place(result)}, {result['date']}\n"
    yield table(
        ["ranks", "placement", "points", "ms/step", "range", "speed-up", "efficiency %", "Mpoint-steps/s", "sssp/10^6",
         "waiting %", "overlap wins %", "MB/step", "halos by"],
        [
            [
                row["ranks"], row["placement"] or "", row["points"], 1e3 * row["step_s"],
                f"{1e3 * row['least']:.4g} to {1e3 * row['most']:.4g}", row["speedup"], 100 * row["efficiency"],
                row["point_steps_per_s"] / 1e6, row["sssp"] / 1e6,
                None if "signals" in row["transports"] else 100 * row["wait"],
                f"{100 * row['overlap_gain']:.1f}", row["sent_bytes"] / 1e6, ", ".join(row["transports"]),
            ]
            for row in result["rows"]
        ],
    )  # fmt: skip
    if result.get("predicted"):
        measured = {row["ranks"]: row["step_s"] for row in result["rows"]}
        yield f"Predicted from {result['predicted_from']}:\n"
        yield table(
            ["ranks", "ms/step", "work ms", "exchange ms", "speed-up", "measured ms/step", "busiest link"],
            [
                [
                    row["ranks"], 1e3 * row["step_s"], 1e3 * row["work_s"], 1e3 * row["exchange_s"], row["speedup"],
                    1e3 * measured[row["ranks"]] if row["ranks"] in measured else None, row["busiest"] or "",
                ]
                for row in result["predicted"]
            ],
        )  # fmt: skip


def _exchange(result: Result, place: Callable[[Result], str]) -> Iterable[str]:
    yield f"### {plural(result['ranks'], 'rank')}\n\n`{result['command']}`, {place(result)}, {result['date']}\n"
    copies = [row for row in result["rows"] if "copy" in row]
    if copies:
        yield table(["plain copy", "MB", "GB/s"], [[r["copy"], r["bytes"] / 1e6, r["gb_per_s"]] for r in copies])
    yield table(
        ["transport", "n", "MB", "microseconds", "in a row", "recorded", "GB/s", "right"],
        [
            [
                ", ".join(r["ways"]), r["points"], r["bytes"] / 1e6, r["us"], r.get("us_in_a_row"),
                r.get("us_recorded"), r["gb_per_s"], "yes" if r["right"] else "NO",
            ]
            for r in result["rows"]
            if "transport" in r and "us" in r
        ],
    )  # fmt: skip
