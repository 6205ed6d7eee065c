"""Stored results of jets, and the page docs/jets.md that is made of them:

    python docs/make/jets.py collect RUN... --out docs/results/jets.json
    python docs/make/jets.py page docs/results/jets.json --out docs/jets.md
    python docs/make/jets.py picture docs/results/jets.json --out docs/jets-theory.png

Kept is what `hiresx post jet` finds of each run, with its set-up, speed, versions and hardware.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from markdown_tables import table, write_page

from hiresx.output.saved import files
from hiresx.output.show import picture_file
from hiresx.post import jet_pictures, jet_theory
from hiresx.post.azimuthal import azimuthal
from hiresx.post.jet import analyse, expanded_jet
from hiresx.post.jet_points import stored_points
from hiresx.post.result import as_run

HEADING = """# Jets

This page has results of the bundled jets, computed on GPUs and compared with formulas and measurements. The page is
generated from stored results:

    {made}

`hiresx post jet` and `hiresx post azimuthal` computed the numbers; [Results and analysis](post.md#the-jet) explains
them. For planar jets lengths are in nozzle heights h, times t in h/c, and St is f h/Uj. For round jets lengths are in
nozzle diameters D, times in D/c, and St is f Dj/Uj. Here c is the ambient speed of sound. Uj, Mj and Dj are the
velocity, the Mach number and the diameter of the fully expanded jet.
"""
# Criteria: shape and Mach number of the jet, value of its record, least and largest value.
ASKED = (
    ("planar", 1.551, "length of cell 2", 2.40, 2.75),
    ("planar", 1.551, "length of cell 3", 2.40, 2.75),
    ("planar", 1.551, "length of cell 4", 2.40, 2.75),
    ("planar", 1.551, "St of the tone", 0.100, 0.125),
    ("planar", 1.551, "tone above the rest, dB", 15.0, None),
    ("planar", None, "St over that of the correlations", 0.90, 1.10),
    ("round", 1.42, "end of cell 1", 1.25, 1.40),
    ("round", 1.42, "length of cell 2", 1.25, 1.40),
    ("round", 1.42, "St of the loudest tone", 0.316, 0.386),
)
_FOLDED = """\
Frequencies f are in c/h (c/D). "dB above the rest" is the height of a tone above the running median of the spectrum.
"St by formulas" has, for planar jets, the values of the vortex sheet with uc = 0.55 Uj and 0.70 Uj, of Powell and of
Krothapalli; for round jets, those of Tam, Seiner and Yu, of the vortex sheet with uc = 0.70 Uj, and of the feedback
frequency with the cell length and the convection velocity uc of the run. If samples were not filtered, a tone may be
the alias of a higher frequency, which the samples cannot distinguish from it. The column "possible aliases of" has the
lowest three of these frequencies.


"""
# Mach numbers that are the same.
_SAME = 0.002
# Segments of the spectra of a ring, and the Strouhal number up to which its tones are shown.
_RING, _HIGHEST = 4, 4.0


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python docs/make/jets.py", description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    kept = verbs.add_parser("collect", help="keep what was found of runs")
    kept.add_argument("runs", nargs="+", type=Path, help="folders of runs")
    kept.add_argument("--command", action="append", default=[], help="how a run was started; one for each, in order")
    made = verbs.add_parser("page", help="write the page")
    made.add_argument("results", type=Path, help="what `collect` wrote")
    drawn = verbs.add_parser("picture", help="draw the planar jets beside theory and published values")
    drawn.add_argument("results", type=Path, help="what `collect` wrote")
    for verb in (kept, made, drawn):
        verb.add_argument("--out", type=Path, required=True, help="the file to write")
    asked = parser.parse_args(arguments)
    if asked.verb == "page":
        write(asked.results, asked.out)
        return
    if asked.verb == "picture":
        draw(asked.results, asked.out)
        return
    commands = [*asked.command, *[None] * len(asked.runs)]
    records = [collected(run, command) for run, command in zip(asked.runs, commands, strict=False)]
    with files.replacing(asked.out) as temporary:
        temporary.write_text(json.dumps({"kind": "jets", "runs": records}, indent=1) + "\n", encoding="utf-8")


def draw(results: Path, out: Path) -> None:
    """Draws the spacing of the cells and the Strouhal number of the tone of the stored planar jets over Mj, as Figs 18
    and 19 of Ye et al. (2022)."""
    jets: list[Any] = []
    for run in json.loads(results.read_text())["runs"]:
        found = run["jet"]
        if found["shape"] != "planar":
            continue
        lengths = [cell["length"] for cell in found["cells"]]
        jets.append(
            SimpleNamespace(
                run=SimpleNamespace(gamma=1.4, path=Path(run["name"])),
                state=jet_theory.of_mach(found["Mj"]),
                cells=SimpleNamespace(mean=found["cell_spacing"], lengths=lengths),
                summary=found,
            )
        )
    with picture_file.style():
        picture_file.save(jet_pictures.against_theory(jets, stored_points("planar")), out)


def collected(run: Any, command: str | None = None) -> dict[str, Any]:
    """What is kept of a run: no place of it. Raises HiresxError as `jet.analysed`."""
    run = as_run(run)
    record = run.record
    found = json.loads(json.dumps(analyse(run, expanded_jet(run)).summary, default=float))
    found.pop("run")
    found["missing"] = [text.replace(str(run.path), run.path.name) for text in found["missing"]]
    heard = found.get("screech")
    ring: list[dict[str, Any]] = []
    if found["shape"] == "round" and heard:
        state = {"length": found["hj"], "velocity": found["Uj"]}
        name = f"{heard['signals'].partition('.')[0]}.p"
        ring = azimuthal(run, name, heard["from"], segments=_RING, **state).summary["tones"]
    started = {key: record.get(key) for key in ("points", "steps", "time", "wall_s", "point_steps_per_s", "status")}
    hardware = {key: value for key, value in record["hardware"].items() if key != "host"}
    hardware["gpus"] = [{k: v for k, v in gpu.items() if k != "uuid"} for gpu in hardware.get("gpus") or ()]
    return {
        "name": run.path.resolve().name, "title": run.title, "command": command, "date": record["started"],
        "backend": record["backend"], "versions": record["versions"], "hardware": hardware, **started, "jet": found,
        "ring": json.loads(json.dumps(ring, default=float)),
    }  # fmt: skip


def write(results: Path, out: Path) -> None:
    """Write the page `out` from the file `results`. Raises HiresxError for a file that holds no such results."""
    made, hint = (f"python docs/make/jets.py {words}" for words in (
        f"page {results} --out {out}", f"collect RUN... --out {results}"
    ))  # fmt: skip
    write_page(results, out, lambda document: "\n".join(_sections(document, made)), "runs of jets", hint)


def _sections(document: dict[str, Any], made: str) -> list[str]:
    runs = document["runs"]
    sections = [HEADING.format(made=made), "## Runs\n", _runs(runs)]
    sections += [f"    {run['command']}" for run in runs if run["command"]]
    sections += [
        "\n## Criteria\n",
        'The column "required" has the ranges that were set as criteria for these runs.\n',
        _criteria_table(runs),
        "## Shock cells\n",
        _cells(runs),
        "## Tones\n",
        _tones(runs),
    ]
    if any(run["ring"] for run in runs):
        sections += ["The tones of the azimuthal modes m at the ring of probes around the lip are:\n", _rings(runs)]
    if document.get("post"):
        sections += ["## Time and memory of the analysis\n", *map(_post, document["post"])]
    sections += [f"{note}\n" for note in document.get("notes", ())]
    for picture in document.get("pictures", ()):
        sections.append(f"![{picture['title']}]({picture['file']})\n\n{picture['title']}\n")
    return sections


def _runs(runs: Sequence[dict[str, Any]]) -> str:
    rows = [
        [run["name"], _processor(run["hardware"]), run["jet"]["shape"], f"{run['jet']['Mj']:.3f}", run["points"],
         run["steps"], f"{run['time']:.1f}", f"{run['wall_s'] / 60:.1f}", f"{run['point_steps_per_s'] / 1e6:.0f}",
         run["status"]]
        for run in runs
    ]  # fmt: skip
    columns = [
        "run",
        "GPU",
        "jet",
        "Mj",
        "points",
        "steps",
        "to t",
        "minutes",
        "10^6 points x steps per s",
        "status",
    ]
    drivers = sorted({str(run["versions"].get("driver", "-")) for run in runs})
    dates = sorted({run["date"][:10] for run in runs})
    return (
        f"The runs used the driver {' and '.join(drivers)} on {', '.join(dates)}.\n\n{table(columns, rows)}\n"
        "The commands of the runs, in the order of the table, are:\n"
    )


def _processor(hardware: dict[str, Any]) -> str:
    """The name of the GPU that a run had, or of its CPU."""
    gpus = hardware["gpus"]
    return str(gpus[0]["name"] if gpus else hardware["cpu"])


def value(found: dict[str, Any], name: str) -> float | None:
    """The value `name` of ASKED in what was found of a jet; None where it is not there."""
    tone = (found.get("screech") or {}).get("fundamental")
    cells = found.get("cells") or []
    if name.startswith(("length of cell", "end of cell")):
        n = int(name.rpartition(" ")[2]) - 1
        return float(cells[n][name.partition(" ")[0]]) if n < len(cells) else None
    if name == "St of the loudest tone":
        tones = [*([tone] if tone else []), *(found.get("screech") or {}).get("other_tones", [])]
        return float(max(tones, key=lambda t: t["amplitude"])["strouhal"]) if tones else None
    if tone is None:
        return None
    if name == "St over that of the correlations":
        known = [p["strouhal"] for p in found["predictions"] if ", K = " in p["formula"]]
        return float(tone["strouhal"]) / (sum(known) / len(known)) if known else None
    return float(tone["strouhal"] if name == "St of the tone" else tone["above_background_db"])


def _criteria_table(runs: Sequence[dict[str, Any]]) -> str:
    rows = []
    for shape, mach, name, least, most in ASKED:
        for run in runs:
            found = run["jet"]
            if found["shape"] != shape or (mach is not None and abs(found["Mj"] - mach) > _SAME):
                continue
            is_it = value(found, name)
            good = is_it is not None and is_it >= least and (most is None or is_it <= most)
            limits = f"{least:g} to {most:g}" if most is not None else f"{least:g} or more"
            rows.append(
                [run["name"], name, limits, "-" if is_it is None else f"{is_it:.3f}", "yes" if good else "**no**"]
            )
    return table(["run", "quantity", "required", "computed", "met"], rows) + "\n"


def _cells(runs: Sequence[dict[str, Any]]) -> str:
    rows = [
        [run["name"], f"{run['jet']['Mj']:.3f}", ", ".join(f"{cell['length']:.2f}" for cell in run["jet"]["cells"]),
         f"{run['jet']['cell_spacing']:.3f}", f"{run['jet']['cell_spacing_over_vortex_sheet']:.3f}",
         "-" if run["jet"]["core_end"] is None else f"{run['jet']['core_end']:.1f}"]
        for run in runs
    ]  # fmt: skip
    return table(["run", "Mj", "length of each cell", "mean", "mean / vortex sheet's", "end of the core"], rows) + "\n"


def _tones(runs: Sequence[dict[str, Any]]) -> str:
    rows = []
    for run in runs:
        heard = run["jet"].get("screech") or {}
        tones = [("fundamental", heard["fundamental"])] if heard.get("fundamental") else []
        tones += [(f"{line['order']} f", line) for line in heard.get("harmonics", ())]
        tones += [("other", line) for line in heard.get("other_tones", ())]
        formulas = ", ".join(f"{p['strouhal']:.3f}" for p in run["jet"]["predictions"][:4])
        for n, (kind, line) in enumerate(tones):
            rows.append([run["name"] if not n else "", kind, f"{line['strouhal']:.4f}", f"{line['amplitude']:.5f}",
                         f"{line['above_background_db']:.1f}", line["mode"], f"{line['frequency']:.3f}",
                         _images(line["frequency"], heard), formulas if not n else ""])  # fmt: skip
    columns = [
        "run", "tone", "St", "amplitude of p", "dB above the rest", "mode", "f", "possible aliases of", "St by formulas"
    ]  # fmt: skip
    return _FOLDED + table(columns, rows) + "\n"


def _images(frequency: float, heard: dict[str, Any]) -> str:
    """The lowest frequencies that the samples cannot tell from this one; nothing where they were filtered."""
    if heard["filtered"]:
        return ""
    rate = 1 / heard["dt"]
    return ", ".join(f"{image:.2f}" for image in (rate - frequency, rate + frequency, 2 * rate - frequency))


def _rings(runs: Sequence[dict[str, Any]]) -> str:
    rows = [
        [run["name"], f"{tone['strouhal']:.3f}", tone["kind"], str(abs(tone["m"])), f"{tone['share']:.2f}",
         f"{tone['above_background_db']:.1f}"]
        for run in runs
        for tone in run["ring"]
        if tone["strouhal"] < _HIGHEST
    ]  # fmt: skip
    return table(["run", "St", "kind", "m", "share of that mode", "dB above the rest"], rows) + "\n"


def _post(post: dict[str, Any]) -> str:
    """`post`: what was analysed ("what"), and for each command its seconds and memory ("rows")."""
    rows = [
        [f"`{row['command']}`", f"{row['wall_s']:.1f}", f"{row['cpu_s']:.1f}", f"{row['peak_MB']:.0f}"]
        for row in post["rows"]
    ]
    total, most = sum(row["wall_s"] for row in post["rows"]), max(row["peak_MB"] for row in post["rows"])
    words = f"{post['what']}: {total:.1f} s and at most {most / 1000:.2f} GB.\n\n"
    return words + table(["command", "s", "CPU s", "MB at most"], rows) + "\n"


if __name__ == "__main__":
    main()
