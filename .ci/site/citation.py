"""The page that says how to cite the project, made of CITATION.cff."""

from typing import Any

import yaml


def citation_page(text: str) -> str:
    """Markdown: the software and the papers it refers to, in words and as BibTeX."""
    cff = yaml.safe_load(text)
    lines = [
        f"# Citation\n\n{cff['message']}\n\n- {_listed(cff['authors'])}: {cff['title']}, version {cff['version']}."
    ]
    software = {"title": cff["title"], "author": _bibtex_names(cff["authors"]), "version": cff["version"]}
    if "date-released" in cff:
        software["year"] = str(cff["date-released"])[:4]
    blocks = [_bibtex("software", "hiresx", software)]
    for paper in cff["references"]:
        where = f"{paper['journal']} {paper['volume']}:{paper['start']} ({paper['year']})"
        link = f"[doi {paper['doi']}](https://doi.org/{paper['doi']})"
        lines.append(f"- {_listed(paper['authors'])}: *{paper['title']}*, {where}, {link}. {paper.get('notes', '')}")
        entry = {name: paper[name] for name in ("title", "journal", "volume", "year", "doi")}
        entry |= {"author": _bibtex_names(paper["authors"]), "pages": paper["start"]}
        blocks.append(_bibtex("article", f"{paper['authors'][0]['family-names'].lower()}{paper['year']}", entry))
    return "\n".join(lines) + "\n\n```bibtex\n" + "\n".join(blocks) + "```\n"


def _listed(people: list[dict[str, Any]]) -> str:
    return ", ".join(p.get("name") or f"{p['given-names']} {p['family-names']}" for p in people)


def _bibtex_names(people: list[dict[str, Any]]) -> str:
    return " and ".join(
        f"{{{p['name']}}}" if "name" in p else f"{p['family-names']}, {p['given-names']}" for p in people
    )


def _bibtex(kind: str, key: str, entry: dict[str, Any]) -> str:
    return f"@{kind}{{{key},\n" + "".join(f"  {name} = {{{value}}},\n" for name, value in entry.items()) + "}\n"
