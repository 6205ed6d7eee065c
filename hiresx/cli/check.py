"""`hiresx check`: checks everything about a run before it is started."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from hiresx.base.plural import plural
from hiresx.cli import options, terminal
from hiresx.cli.options import option

# Largest number of ranks for which the matrix of bytes fits on a screen.
MATRIX = 12


def check(
    name: options.CaseName,
    preset: options.Preset = None,
    set_: options.Overrides = None,
    unset: options.Unset = None,
    ranks: options.Ranks = None,
    weights: Annotated[
        str | None, option("--weights", "1,1,4", "Relative speeds of the ranks; equal if absent.")
    ] = None,
    points_per_wave: Annotated[
        float | None, option("--points-per-wave", "N", "Points per wavelength that resolve sound; 8.", min=2)
    ] = None,
    json: options.Json = False,
) -> int:
    """Check a case without running it, and print the quality of its grid, its boundaries and sponges, the frequencies
    that the grid resolves, memory, time step, cost, and the division among ranks.

    The case's case.py is executed, as by every command that reads a case.

    Exit status: 0 done; 2 an error to correct in the case.
    """
    from hiresx.case import load

    with terminal.only_json(json):
        case = load(name, preset or (), set_ or (), unset=unset or ())
        from hiresx.cli import check_inflow, check_levels, check_numbers, check_setup, check_walls
        from hiresx.cli.grid_checks import check_grid
        from hiresx.decomposition.prescribed_vectors import check_turned_flow, check_turned_functions
        from hiresx.equations import equations
        from hiresx.estimate import CHECKING, estimate, estimate_ranks, refuse_oversized
        from hiresx.output.fields import derived, field_output
        from hiresx.output.watch import monitors
        from hiresx.rhs import fast_waves, layers
        from hiresx.solver.initial_flow import INITIAL, initial_flow

        refuse_oversized(case, for_grid=CHECKING)
        derived.check(case.output.variables, f"{name}: output.variables", equations(case).scalars)
        field_output.check(case)
        found = check_grid(case)
        built, quality, decomposition, proofs = found.grid, found.quality, found.decomposition, found.proofs
        interfaces = found.interfaces
        mirrors = check_walls.report(decomposition, found.extended)
        check_walls.check_wall_models(decomposition)
        check_turned_functions(decomposition, case, {})
        check_turned_flow(decomposition, INITIAL, lambda x, y, z: initial_flow(case)(x, y, z)[0])
        computed, refined = check_levels.computed_grid(case, found)
        watched = monitors.check(case, refined)
        setup = check_setup.setup(case, decomposition, refined, watched["probe"], points_per_wave)
        planned = estimate(layers.with_tiles(case, refined), grid=computed)
        setup["warnings"] += [*found.warnings, *check_numbers.unlikely_values(case, planned["dt"])]
        setup["warnings"] += check_walls.notes_of_sources(case, decomposition)
        setup["warnings"] += check_walls.notes_of_ends(decomposition)
        setup["warnings"] += check_inflow.notes_of_turbulence(case, decomposition)
        setup["warnings"] += check_inflow.notes_of_characteristic_inflows(case, decomposition)
        setup["warnings"] += check_inflow.notes_of_viscous_outflows(case, decomposition)
        recycled = check_inflow.recycling(case, decomposition)
        setup["warnings"] += check_inflow.notes_of_recycling(recycled)
        setup["warnings"] += fast_waves.notes(case, decomposition, planned["dt"])
        setup["warnings"] += check_setup.aliasing_remarks(case, refined, watched["probe"], planned["dt"])
        planned["seconds_on"] = check_setup.costs(case, planned)
        speeds = options.numbers(weights, "--weights", "1,1,4")
        count = ranks or (speeds and len(speeds))
        shared = estimate_ranks(case, refined, count, speeds) if count else None
        check_walls.check_wall_models_on_ranks(decomposition, count or None, speeds)
    report: dict[str, Any] = {
        "case": case.model_dump(mode="json"),
        "points": sum(block.x.size for block in built.blocks),
        "grid": quality,
        "boundaries": [
            {
                "block": built.blocks[patch.block].name,
                "face": patch.face,
                "range": patch.range,
                "type": patch.condition.type,
            }
            for patch in decomposition.patches
        ],
        "connections": [_connection(built.blocks, proof) for proof in proofs],
        "patched": [_interface(decomposition, found) for found in interfaces],
        "walls": mirrors,
        "recycling": recycled,
        "levels": check_levels.report(refined),
        "setup": setup,
        "plan": planned,
    }
    if shared is not None:
        report["ranks"] = shared
    if json:
        terminal.print_json(report)
        return 0
    terminal.say(f"{case.name}{f' ({case.preset})' if case.preset else ''}: {case.title}")
    terminal.say(f"{plural(len(quality), 'block')}, {report['points']} points")
    measures = list(dict.fromkeys(key for block in quality for key in block if key not in ("block", "size")))
    rows = [(block["block"], *(_extreme(block.get(key)) for key in measures)) for block in quality]
    terminal.table("Grid: value at i, j, k", ["block", *(key.replace("_", " ") for key in measures)], rows)
    if report["levels"]:
        columns = ["level", "blocks", "points", "under finer ones", "of the grid", "of a step's time, about"]
        terminal.table(
            "Levels: all are computed, points under finer ones included", columns, check_levels.table(report["levels"])
        )
    sides = [(b["block"], b["face"], _range(b["range"]), b["type"]) for b in report["boundaries"]]
    if sides:
        terminal.table("Boundaries", ["block", "face", "nodes i, j, k", "type"], sides)
    if report["connections"]:
        rows = [
            (
                f"{c['block']} {c['face']}",
                _range(c["range"]),
                f"{c['donor']} {c['donor_face']}",
                _range(c["donor_range"]),
                c["transform"],
                c["layout"],
                "-" if c["gap"] is None else c["gap"],
                _extreme(c["stretching"]),
                c["motion"],
            )
            for c in report["connections"]
        ]
        columns = ["of", "nodes i, j, k", "goes on in", "nodes i, j, k", "transform", "layout", "largest gap"]
        columns += ["stretching", "motion"]
        nodes = sum(c["nodes"] for c in report["connections"])
        terminal.table(f"Connections: all {nodes} nodes match", columns, rows)
    if report["patched"]:
        rows = [
            (f"{p['block']} {p['face']}", _range(p["range"]), ", ".join(p["donors"]), p["off"], p["beyond"])
            for p in report["patched"]
        ]
        columns = ["of", "nodes i, j, k", "goes on in", "largest gap", "ghosts beyond nodes"]
        terminal.table("Patched faces: lengths in cells of the donor", columns, rows)
    if recycled:
        rows = [
            (
                f"{p['block']} {p['face']}",
                f"{p['index']} = {p['node']}",
                p["distance"],
                *map(_point, p["bounds"]),
            )
            for p in recycled
        ]
        columns = ["of", "plane of nodes", "distance", "from x, y, z", "to x, y, z"]
        terminal.table("Recycling inflows: where their fluctuations come from", columns, rows)
    if oblique := check_walls.rows(mirrors, viscous=case.gas.reynolds is not None):
        columns = ["of", "type", "degrees off the normal", "what holds there"]
        terminal.table("Slip walls, symmetry and axis: where lines are not normal to them", columns, oblique)
    check_setup.show(setup)
    terminal.table("Plan", ["", ""], _plan(planned, len(refined.blocks)))
    for note in planned["notes"]:
        terminal.say(f"note: {note}")
    if shared is not None:
        _show_ranks(shared)
    return 0


def _plan(planned: Mapping[str, Any], blocks: int) -> Iterator[tuple[str, str]]:
    """Yield the requirements of a case, in words and units; the keys and plain numbers are those of --json."""
    from hiresx.grid.size import in_bytes

    points, steps = planned["points"], planned["steps"]
    yield "points", f"{points:,} in {plural(blocks, 'block')}"
    yield (
        "memory",
        f"{in_bytes(planned['memory_bytes'])}: {planned['bytes_per_point']:,.0f} bytes per point "
        f"({planned['reals_per_padded_point']} numbers at every node and ghost)",
    )
    compact = planned["compact_bytes_per_point"]
    if compact is not None and compact < planned["bytes_per_point"]:
        yield "compact plan", f"{in_bytes(compact * points)}: {compact:,.0f} bytes per point"
    plans = planned["plans"]
    yield "variables", f"{len(planned['variables'])}: {', '.join(planned['variables'])}"
    if planned["additions"]:
        yield "besides", "; ".join(planned["additions"])
    yield "kernels", f"{plans['cpu']} on a CPU, {plans['cuda']} on a GPU"
    scheme = planned["integrator"]
    yield "integrator", _integrator(scheme)
    if scheme["steady"]:
        yield "steps", f"Newton steps until the residual has fallen, {steps:,} at most"
        yield "run time", "not known: that of a step depends on the products with the Jacobian"
        return
    first = "the first; implicit.tolerance chooses the rest" if scheme.get("tolerance") else "of the initial state"
    yield "time step", f"{planned['dt']:.4g} L/c_ref, {first}"
    yield "steps", "as many as it takes" if steps is None else f"{steps:,}"
    if scheme["implicit"]:
        yield "run time", "not known: that of a step depends on the products with the Jacobian"
        return
    rate = planned["ns_per_point_rhs"]
    if rate is None:
        yield "run time", f"not known: the speed of this machine is {planned['rate_from']}"
        return
    yield "speed", f"{rate:.4g} ns per point and right-hand side ({planned['rate_from']})"
    yield "run time", "not known" if planned["seconds"] is None else f"about {span(planned['seconds'])}"
    for name, seconds in planned["seconds_on"].items():
        if name != "cpu":
            yield f"on {name}", f"about {span(seconds)}"


def _integrator(scheme: Mapping[str, Any]) -> str:
    numbers = f"{scheme['reals_per_padded_point']} of those numbers"
    if scheme["steady"]:
        return (
            f"{scheme['name']}: Newton's method for steady flow, {scheme['products']} products with the Jacobian a "
            f"step at most, about one right-hand side each, {numbers}; cfl grows up to {scheme['largest_cfl']:g}"
        )
    if scheme["implicit"]:
        return (
            f"{scheme['name']}: order {scheme['order']}, implicit, {scheme['newton_steps']} Newton steps in a stage at "
            f"most, {numbers}; no limit of the step by stability"
        )
    return (
        f"{scheme['name']}: order {scheme['order']}, {scheme['stages']} right-hand sides a step, {numbers}; stable up "
        f"to cfl {scheme['cfl']:g}, viscous_cfl {scheme['viscous_cfl']:g}"
    )


def span(seconds: float) -> str:
    """Return a time in `seconds` as text, such as "0.3 s", "4 min 44 s", "2 h 5 min" or "3 d 4 h"."""
    if seconds < 59.5:
        return f"{seconds:.2g} s"
    for name, unit, rest, part, most in (("min", 60, "s", 1, 60), ("h", 3600, "min", 60, 24)):
        whole, left = divmod(round(seconds / part), unit // part)
        if whole < most:
            return f"{whole} {name} {left} {rest}"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days} d {hours} h"


def _show_ranks(shared: dict[str, Any]) -> None:
    rows = [
        (
            row["rank"],
            ", ".join(f"{part['block']} {_range(part['box'])}" for part in row["parts"]),
            row["points"],
            f"{row['of_its_share']:.1%}",
            ", ".join(map(str, row["neighbours"])) or "-",
            f"{row['bytes_per_step'] / 1e6:.4g}",
            f"{row['memory_bytes'] / 1e6:.4g}",
        )
        for row in shared["per_rank"]
    ]
    parts, sends = "parts: block, nodes i, j, k", "sends MB/step"
    columns = ["rank", parts, "points", "of its share", "neighbours", sends, "memory MB"]
    terminal.table(
        f"{plural(shared['ranks'], 'rank')}: {plural(shared['parts'], 'part')}, by {shared['method']}", columns, rows
    )
    if 1 < shared["ranks"] <= MATRIX:
        names = list(range(shared["ranks"]))
        sent = [[f"{b / 1e6:.4g}" if b else "" for b in row] for row in shared["bytes"]]
        lines = [(n, *row) for n, row in zip(names, sent, strict=True)]
        terminal.table("MB/step, from row to column", ["", *map(str, names)], lines)
    terminal.say(
        f"the largest rank has {shared['imbalance']:.1%} more points than its share; "
        f"{shared['bytes_per_step'] / 1e6:.4g} MB between ranks per step"
    )


def _point(place: Sequence[float]) -> str:
    return ", ".join(f"{c:.6g}" for c in place)


def _connection(blocks: Any, proof: Any) -> dict[str, Any]:
    """Return the row of a checked connection; `gap` is None if no nodes should coincide."""
    from hiresx.grid.orientation import donor_range, transform_of

    c = proof.connection
    return {
        "block": blocks[c.block].name,
        "face": c.face,
        "range": c.range,
        "donor": blocks[c.donor].name,
        "donor_face": c.donor_face,
        "donor_range": donor_range(c, blocks),
        "transform": transform_of(c.matrix),
        "layout": proof.layout,
        "motion": str(c.motion),
        "nodes": proof.nodes,
        "gap": proof.gap if proof.layout == "shared" else None,
        "stretching": {"value": proof.stretching, "node": proof.steepest},
    }


def _interface(decomposition: Any, found: Any) -> dict[str, Any]:
    """Return the row of a patched face: the blocks behind it, the largest distance of its nodes from their faces, and
    the largest distance of its ghosts beyond their last nodes, both in cells."""
    patch, blocks = decomposition.patches[found.place], decomposition.blocks
    return {
        "block": blocks[patch.block].name,
        "face": patch.face,
        "range": patch.range,
        "donors": [blocks[b].name for b in sorted(set(found.donor.tolist()))],
        "ghosts": len(found.donor),
        "off": float(f"{found.off:.2g}"),
        "beyond": float(f"{found.beyond:.2g}"),
    }


def _extreme(extreme: Any) -> str:
    return "-" if extreme is None else f"{extreme['value']:.4g} at {terminal.text(extreme['node'])}"


def _range(ranges: Any) -> str:
    return " ".join(f"{first}:{last}" for first, last in ranges)
