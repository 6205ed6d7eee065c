"""The verification page, made from stored results and never typed:

    hiresx verify all --backend cpu --json > docs/results/verification-cpu.json
    python docs/make/verification.py docs/results/verification-*.json --out docs/verification.md

Each results file is what `hiresx verify --json` printed. Of two results of one check on one backend, the later file
counts. Pictures go beside the page.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pages
import verification_pictures
import verification_tables

from hiresx.base.plural import plural
from hiresx.base.shell import quote
from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.verify import runner

Result = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    return pages.command_line("verification.py", __doc__, write, arguments)


def write(results: list[Path], out: Path) -> None:
    """Write the page `out` and its pictures from the files `results`. Raises HiresxError for a file that is none of
    `hiresx verify --json`."""
    documents = [read(path) for path in results]
    groups = []
    for name in runner.names():
        # check -> backend, with the plan that was asked for -> result
        found: dict[str, dict[str, Result]] = {}
        for document in documents:
            for check in document["checks"]:
                if check["group"] == name:
                    column = ", ".join(filter(None, (check["backend"], check.get("plan"))))
                    found.setdefault(check["check"], {})[column] = check
        if found:
            groups.append(group(name, found, out))
    command = pages.command("verification.py", results, out)
    sources = [source(path, document) for path, document in zip(results, documents, strict=True)]
    pages.write(pages.fill("verification.md.jinja", command=command, sources=sources, groups=groups), out)


def read(path: Path) -> Result:
    held, hint = "verification results", f"hiresx verify all --json > {quote(path)}"
    document = pages.read(path, ["checks"], held, hint)
    if not all({"backend", "group"} <= check.keys() for check in document["checks"]):
        raise HiresxError(f"{path} holds no {held}", hint)
    return document


def source(path: Path, document: Result) -> list[str]:
    """What the first table says of a file."""
    checks, machine = document["checks"], document["hardware"]
    gpus = machine.get("gpus", []) if document["backend"] in ("cuda", "auto") else []
    named = "".join(f", {name}" for name in pages.count_each(gpu["name"] for gpu in gpus))
    place = f"{machine['cpu']}, {plural(machine['threads_available'], 'thread')}{named}"
    judged = [check for check in checks if "left_out" not in check]
    passed = f"{sum(check['pass'] for check in judged)} of {len(judged)}"
    return [path.name, f"`{document['command']}`", document["date"], place, f"{document['wall_s']:.0f} s", passed]


def group(name: str, found: dict[str, dict[str, Result]], out: Path) -> Result:
    """What the section of a group says."""
    module = runner.group(name)
    title, _, text = (module.__doc__ or "").strip().partition("\n")
    backends = sorted({backend for results in found.values() for backend in results})
    firsts = {check: next(iter(results.values())) for check, results in found.items()}
    curves = {check: first["curves"] for check, first in firsts.items() if "curves" in first}
    tabulate = getattr(verification_tables, name.replace("-", "_"), None)
    return {
        "name": name,
        "title": title,
        "text": text.strip(),
        "picture": picture(name, curves, out),
        "page_table": tabulate(curves) if tabulate and curves else None,
        "backends": backends,
        "rows": [
            [check, limit(firsts[check]), *(value(results[b]) if b in results else "" for b in backends)]
            for check, results in found.items()
        ],
        "commands": list(dict.fromkeys(command for first in firsts.values() for command in first["commands"])),
    }


def picture(name: str, curves: dict[str, Any], out: Path) -> str | None:
    """Draw the group's picture from `curves`; returns its path relative to the page."""
    draw = getattr(verification_pictures, name.replace("-", "_"), None)
    if draw is None or not curves:
        return None
    with picture_file.style():
        return picture_file.save(draw(curves), out.with_name(f"{out.stem}-{name}.png")).name


def value(result: Result) -> str:
    if "left_out" in result:
        return "left out"
    found = result["value"]
    shown = "did not run" if found is None else f"{found:.4g}"
    return shown if result["pass"] else f"**{shown}: fails**"


def limit(result: Result) -> str:
    threshold = result["threshold"]
    if result["relation"] == "in":
        return f"{threshold[0]:.5g} to {threshold[1]:.5g}"
    return f"{'≤' if result['relation'] == '<=' else '≥'} {threshold:g}"


if __name__ == "__main__":
    sys.exit(main())
