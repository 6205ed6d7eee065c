"""The verification page, made from stored results and never typed:

    hiresx verify all --backend cpu --json > docs/results/verification-cpu.json
    python docs/make/verification.py docs/results/verification-*.json --out docs/verification.md

Each results file is what `hiresx verify --json` printed. Of two results of one check on one backend, the later file
counts. Pictures go beside the page.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import verification_pictures as pictures

from hiresx.base.plural import plural
from hiresx.base.shell import quote
from hiresx.bench.markdown import counted
from hiresx.errors import HiresxError
from hiresx.output.saved import files
from hiresx.output.show import picture_file
from hiresx.verify import runner

HEADING = """# Verification

What the method must show, and what it shows. This page is made from stored results:

    {command}
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python docs/make/verification.py", description=__doc__.partition("\n")[0])
    parser.add_argument("results", nargs="+", type=Path, help="what `hiresx verify --json` printed")
    parser.add_argument("--out", type=Path, required=True, help="the page to write, e.g. docs/verification.md")
    asked = parser.parse_args(arguments)
    write(asked.results, asked.out)


def write(results: list[Path], out: Path) -> None:
    """Write the page `out` and its pictures from the files `results`. Raises HiresxError for a file that is none of
    `hiresx verify --json`."""
    command = " ".join(["python docs/make/verification.py", *map(str, results), "--out", str(out)])
    sections = [HEADING.format(command=command)]
    documents = [_read(path) for path in results]
    sections.append(_sources(results, documents))
    for name in runner.names():
        # check -> backend, with the plan that was asked for -> result
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for document in documents:
            for check in document["checks"]:
                if check["group"] == name:
                    found.setdefault(check["check"], {})[_column(check)] = check
        if found:
            sections.append(_section(name, found, out))
    with files.replacing(out) as temporary:
        temporary.write_text("\n".join(sections), encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for check in document["checks"]:
            check["backend"], check["group"]
        return document
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HiresxError(
            f"{path} holds no verification results: {type(error).__name__}: {error}",
            f"hiresx verify all --json > {quote(path)}",
        ) from None


def _sources(paths: list[Path], documents: list[dict[str, Any]]) -> str:
    rows = []
    for path, document in zip(paths, documents, strict=True):
        checks, machine = document["checks"], document["hardware"]
        gpus = machine.get("gpus", []) if document["backend"] in ("cuda", "auto") else []
        named = "".join(f", {name}" for name in counted(gpu["name"] for gpu in gpus))
        place = f"{machine['cpu']}, {plural(machine['threads_available'], 'thread')}{named}"
        judged = [check for check in checks if "left_out" not in check]
        passed = sum(check["pass"] for check in judged)
        seconds = f"{document['wall_s']:.0f} s"
        rows.append(
            [path.name, f"`{document['command']}`", document["date"], place, seconds, f"{passed} of {len(judged)}"]
        )
    return _table(["results", "command", "date", "machine", "took", "pass"], rows)


def _section(name: str, found: dict[str, dict[str, dict[str, Any]]], out: Path) -> str:
    title, _, text = (runner.group(name).__doc__ or "").strip().partition("\n")
    backends = sorted({backend for results in found.values() for backend in results})
    rows, commands = [], []
    for check, results in found.items():
        first = next(iter(results.values()))
        values = [_value(results[backend]) if backend in results else "" for backend in backends]
        rows.append([check, _limit(first), *values])
        commands += [command for command in first["commands"] if command not in commands]
    parts = [f"## {title.rstrip('.')}", "", f"`hiresx verify {name}`", "", text.strip(), ""]
    drawn = _curves(found)
    picture = _picture(name, drawn, out)
    if picture:
        parts += [f"![{title}]({picture})", ""]
    tabulate = getattr(runner.group(name), "tabulated", None)
    if tabulate and drawn:
        parts.append(_table(*tabulate(drawn)))
    parts.append(_table(["check", "must be", *backends], rows))
    if commands:
        listed = "\n".join(f"    {command}" for command in commands)
        parts += ["<details><summary>The runs</summary>", "", listed, "", "</details>", ""]
    return "\n".join(parts)


def _curves(found: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """The curves of each check that has some, of one backend."""
    firsts = ((check, next(iter(results.values()))) for check, results in found.items())
    return {check: first["curves"] for check, first in firsts if "curves" in first}


def _picture(name: str, curves: dict[str, Any], out: Path) -> str | None:
    """Draw the group's picture from `curves`; returns its path relative to the page."""
    draw = getattr(pictures, name.replace("-", "_"), None)
    if draw is None or not curves:
        return None
    with picture_file.style():
        return picture_file.save(draw(curves), out.with_name(f"{out.stem}-{name}.png")).name


def _column(result: dict[str, Any]) -> str:
    return ", ".join(filter(None, (result["backend"], result.get("plan"))))


def _value(result: dict[str, Any]) -> str:
    if "left_out" in result:
        return "left out"
    value = result["value"]
    shown = "did not run" if value is None else f"{value:.4g}"
    return shown if result["pass"] else f"**{shown}: fails**"


def _limit(result: dict[str, Any]) -> str:
    threshold = result["threshold"]
    if result["relation"] == "in":
        return f"{threshold[0]:.5g} to {threshold[1]:.5g}"
    return f"{'≤' if result['relation'] == '<=' else '≥'} {threshold:g}"


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    main()
