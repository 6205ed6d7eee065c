"""`hiresx check`: everything about a run short of running it."""

from typing import Any

from hiresx.cli import options, terminal


def check(
    name: options.CaseName,
    preset: options.Preset = None,
    set_: options.Overrides = None,
    json: options.Json = False,
) -> int:
    """Validate a case without running it: grid quality, boundaries, memory, time step and cost."""
    from hiresx.case import load

    with terminal.only_json(json):
        case = load(name, preset, set_ or ())
        from hiresx import grid
        from hiresx.decomposition import decompose
        from hiresx.output import derived, field_output, monitors
        from hiresx.simulation import plan

        derived.check(case.output.variables, f"{name}: output.variables")
        field_output.check(case)
        built = grid.build(case.grid, case.directory)
        quality = grid.quality(built)
        grid.check_jacobian(built)
        field_output.check_grid(case, built.blocks)
        decomposition = decompose(case, built)
        monitors.check(case, decomposition)
        planned = plan(case)
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
        "connections": [
            {
                "block": built.blocks[connection.block].name,
                "face": connection.face,
                "range": connection.range,
                "donor": built.blocks[connection.donor].name,
            }
            for connection in decomposition.connections
        ],
        "plan": planned,
    }
    if json:
        terminal.print_json(report)
        return 0
    terminal.say(f"{case.name}{f' ({case.preset})' if case.preset else ''}: {case.title}")
    terminal.say(f"{len(quality)} block{'s' * (len(quality) > 1)}, {report['points']} points")
    measures = list(dict.fromkeys(key for block in quality for key in block if key not in ("block", "size")))
    rows = [(block["block"], *(_extreme(block.get(key)) for key in measures)) for block in quality]
    terminal.table("Grid: value at i, j, k", ["block", *(key.replace("_", " ") for key in measures)], rows)
    sides = [(b["block"], b["face"], _range(b["range"]), b["type"]) for b in report["boundaries"]]
    sides += [(c["block"], c["face"], _range(c["range"]), f"connected to {c['donor']}") for c in report["connections"]]
    terminal.table("Boundaries", ["block", "face", "nodes [i, j, k]", "type"], sides)
    terminal.mapping("Plan", planned)
    return 0


def _extreme(extreme: Any) -> str:
    return "-" if extreme is None else f"{extreme['value']:.4g} at {terminal.text(extreme['node'])}"


def _range(ranges: Any) -> str:
    return " ".join(f"{first}:{last}" for first, last in ranges)
