"""Reads grids that others published as they were delivered, and runs flows on them, for docs/public-grids.md.

    python docs/make/public_grid_runs.py FOLDER --out docs/results/public-grids.json

FOLDER holds the working trees of the repositories as owner/name; archives in them are opened. Only the results are
kept, nothing of the files. For every file: `hiresx info`, the case that `hiresx new --from` starts, its check, and 100
steps of a uniform flow through it, every boundary the same far field; for one of each family 100 steps of a flow with
the walls that its author names; and for some a flow that is compared with what is known of it
(public_flows.py). With --flows only these are run, and put into the results that --out has already.
"""

import argparse
import io
import json
import re
import subprocess
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from public_flows import compared

from hiresx.case.schema import Case
from hiresx.decomposition import decompose
from hiresx.errors import HiresxError
from hiresx.grid import Grid, build, check_jacobian, matched_connections
from hiresx.grid.blocks import direction
from hiresx.grid.connections import Connection
from hiresx.grid.from_file import describe_form, file_kind
from hiresx.grid.grid_report import grid_report
from hiresx.grid.starting_case import case_text
from hiresx.output.saved import files
from hiresx.simulation import Simulation

STEPS = 100
# A uniform flow along no grid line, in units of the sound speed.
STREAM = {"rho": 1.0, "u": 0.3, "v": 0.1, "w": 0.0, "p": 1 / 1.4}
WALL = re.compile(r"wall|viscous[_-]solid|bcwall|airfoil|body", re.IGNORECASE)
MIRROR = re.compile(r"symmetry", re.IGNORECASE)


def listed() -> list[dict[str, Any]]:
    """The files, from public-grids.toml."""
    text = Path(__file__).with_name("public_grids.toml").read_text(encoding="utf-8")
    grids: list[dict[str, Any]] = tomllib.loads(text)["grid"]
    return grids


def measured(folder: Path) -> list[dict[str, Any]]:
    """What is found of every file under `folder`."""
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for entry in listed():
            record = dict(entry)
            try:
                path = _file(folder / entry["repository"], entry["path"], Path(scratch))
                other = entry.get("connectivity")
                joins = None if other is None else _file(folder / entry["repository"], other, Path(scratch))
                record |= _one(path, joins, entry.get("flow"), entry.get("compared"))
            except (HiresxError, OSError) as error:
                record["refused"] = str(getattr(error, "message", error)).replace(scratch, "").lstrip("/")
            print(f"{record['path']}: {record.get('refused') or record.get('deviation')}", flush=True)
            found.append(record)
    return found


def with_flows(folder: Path, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The `records` with their flows that are compared run anew."""
    found = []
    known = {(record["repository"], record["path"]): record for record in records}
    with tempfile.TemporaryDirectory() as scratch:
        for entry in listed():
            record = known.get((entry["repository"], entry["path"]))
            if record is None:
                continue
            if "compared" in entry:
                path = _file(folder / entry["repository"], entry["path"], Path(scratch))
                other = entry.get("connectivity")
                joins = None if other is None else _file(folder / entry["repository"], other, Path(scratch))
                case = Case.from_dict(tomllib.loads(case_text(path, grid_report(path, joins), joins)))
                record = {**record, "compared": compared(case, build(case.grid), entry["compared"])}
                print(f"{record['path']}: {record['compared']}", flush=True)
            found.append(record)
    return found


def _file(repository: Path, place: str, scratch: Path) -> Path:
    """The file `place`, a path or archive!member, where it can be read."""
    outer, _, member = place.partition("!")
    path = repository / outer
    if not member and path.suffix not in (".gz", ".Z"):
        return path
    data = subprocess.run(["gzip", "-dc", str(path)], capture_output=True, check=True).stdout
    if member:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            held = archive.extractfile(member)
            assert held is not None
            data = held.read()
    made = scratch / Path(member or path.stem).name
    made.write_bytes(data)
    return made


def _one(path: Path, joins: Path | None, flow: list[str] | None, known: str | None = None) -> dict[str, Any]:
    started = time.perf_counter()
    told = grid_report(path, joins)
    blocks = told["blocks"]
    record: dict[str, Any] = {
        "form": describe_form(path),
        "blocks": len(blocks),
        "nodes": sum(b["ni"] * b["nj"] * b["nk"] for b in blocks),
        "thin": "".join(sorted({b["thin"] for b in blocks})),
        "hands": ", ".join(sorted({b["hands"] for b in blocks} - {""})),
        "collapsed": sorted({line for b in blocks for line in b["collapsed"].split(", ") if line}),
        "done": told.get("done", []),
        "read_s": round(time.perf_counter() - started, 2),
    }
    if "refused" in told:
        return record | {"refused": told["refused"].rpartition(f"{path.name}: ")[2]}
    record |= {"joins": told["connections"], "meets": len(told.get("meets", ()))}
    case = Case.from_dict(tomllib.loads(case_text(path, told, joins)))
    grid = build(case.grid)
    record |= _agreement(path, joins, grid)
    decompose(case, grid)
    try:
        check_jacobian(grid)
    except HiresxError as error:
        return record | {"refused": error.message}
    record["deviation"] = _uniform(case, grid)
    if flow is not None:
        record["flow"] = _flow(case, grid, flow)
    if known is not None:
        record["compared"] = compared(case, grid, known)
    return record


def _agreement(path: Path, joins: Path | None, grid: Grid) -> dict[str, Any]:
    """Where the author lists joins: whether nodes that coincide give the same ghosts at every node inside them
    ("agree"), and how many nodes of faces coincide that the author does not join ("beyond")."""
    if joins is None and file_kind(path) != "CGNS":
        return {}
    theirs = _ghosts([c for c in grid.connections if c.motion.still], grid, rim=False)
    held = _ghosts(grid.connections, grid, rim=True)
    found = matched_connections(grid.blocks)
    ours = _ghosts(found, grid, rim=True)
    return {
        "agree": all(ours.get(place) == donor for place, donor in theirs.items()),
        "beyond": len(_ghosts(found, grid, rim=False).keys() - held.keys()),
    }


def _ghosts(connections: Sequence[Connection], grid: Grid, rim: bool) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Donor (block, node) of the first ghost behind every node of every connection, with or without its rim."""
    found = {}
    for c in connections:
        block = grid.blocks[c.block]
        index = c.ghosts(1, block.size).reshape(3, -1)
        donors = c.donors(index)
        kept = np.ones(index.shape[1], dtype=bool)
        for e, (lo, hi) in enumerate(c.range):
            if not rim and e != direction(c.face) and hi - lo > 1:
                kept &= (index[e] > lo) & (index[e] < hi - 1)
        for own, donor in zip(index[:, kept].T.tolist(), donors[:, kept].T.tolist(), strict=True):
            found[(c.block, *own)] = (c.donor, *donor)
    return found


def _with(case: Case, **changes: Any) -> Case:
    return Case.from_dict({**case.model_dump(mode="json", exclude_none=True), **changes})


def _uniform(case: Case, grid: Grid) -> float:
    """The largest departure of a uniform flow from itself, every boundary the same far field."""
    boundary = []
    for condition in case.model_dump(mode="json", exclude_none=True)["boundary"]:
        place = {key: condition[key] for key in ("faces", "block", "range") if key in condition}
        boundary.append({**place, "type": "far-field", "state": STREAM})
    changed = _with(case, boundary=boundary, initial={"state": STREAM}, time={"steps": STEPS})
    simulation = Simulation(changed, grid=grid, backend="cpu")
    simulation.run()
    worst = 0.0
    for block in simulation.blocks:
        for name, value in STREAM.items():
            worst = max(worst, float(np.abs(block.state(name) - value).max()))
    return worst


def _flow(case: Case, grid: Grid, solid: list[str]) -> dict[str, Any]:
    """100 steps of a viscous flow at Mach 0.3 with the walls that the author names, or the regions `solid`."""
    dump, walls = case.model_dump(mode="json", exclude_none=True), []
    stream = {**STREAM, "v": 0.0}
    for condition in dump["boundary"]:
        place = {key: condition[key] for key in ("faces", "block", "range") if key in condition}
        given = place.get("range")
        name = given if isinstance(given, str) else ""
        if name in solid or WALL.search(name):
            walls.append({**place, "type": "no-slip-wall"})
        elif MIRROR.search(name):
            walls.append({**place, "type": "slip-wall"})
        else:
            walls.append({**place, "type": "far-field", "state": stream})
    changed = _with(case, boundary=walls, initial={"state": stream}, time={"steps": STEPS}, gas={"reynolds": 1000.0})
    simulation = Simulation(changed, grid=grid, backend="cpu")
    simulation.run()
    pressure = [block.state("p") for block in simulation.blocks]
    return {
        "time": simulation.time,
        "least_p": 1.4 * min(float(p.min()) for p in pressure),
        "largest_p": 1.4 * max(float(p.max()) for p in pressure),
        "walls": sorted({w["range"] for w in walls if w["type"] != "far-field"}),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python docs/make/public_grid_runs.py", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("source", type=Path, help="folder of the repositories")
    parser.add_argument(
        "--out", type=Path, required=True, help="the results to write, e.g. docs/results/public-grids.json"
    )
    parser.add_argument("--flows", action="store_true", help="run only the flows that are compared with something")
    asked = parser.parse_args(arguments)
    grids = None if not asked.flows else json.loads(asked.out.read_text(encoding="utf-8"))["grids"]
    found = measured(asked.source) if grids is None else with_flows(asked.source, grids)
    with files.replacing(asked.out) as temporary:
        temporary.write_text(json.dumps({"steps": STEPS, "grids": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
