"""What the site holds beside docs/*.md: the pages of pages/, what the project says of itself on its top level and in
.github/, and a tutorial and a gallery whose pictures are computed when the site is built. Links that lead out of docs/
on a code host lead to these pages here, and equations become MathML, which browsers draw without a script."""

import os
import posixpath
import re
import sys
from pathlib import Path

import latex2mathml.converter
from mkdocs.structure.files import File

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import gallery  # noqa: E402
import tutorial  # noqa: E402
from citation import citation_page  # noqa: E402

# Files of the project, relative to its top folder, and the pages made from them.
ELSEWHERE = {
    "README.md": "project.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "licence.md",
    "CITATION.cff": "citation.md",
    ".github/CONTRIBUTING.md": "contributing.md",
    ".github/CODE_OF_CONDUCT.md": "conduct.md",
}
_LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
# Text that is not changed: fenced blocks (equations are fenced blocks of the kind math), and code within a line.
_KEPT = re.compile(
    r"^```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```$|(?P<inline>\$`[^`\n]+`\$)|``[^\n]*?``|`[^`\n]*`",
    re.MULTILINE | re.DOTALL,
)


def on_files(files, config):
    for path in sorted((HERE / "pages").glob("*.md")):
        files.append(File.generated(config, path.name, content=path.read_text()))
    for name, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=_page_of(name)))
    files.append(File.generated(config, "site.css", content=(HERE / "site.css").read_text()))
    computed = os.environ.get("HIRESX_GALLERY", "yes") != "no"
    lesson, beside = tutorial.built(computed)
    files.remove(files.get_file_from_path(tutorial.PAGE.name))
    files.append(File.generated(config, tutorial.PAGE.name, content=lesson))
    text, pictures = gallery.page(computed, beside)
    files.append(File.generated(config, "gallery.md", content=text))
    for name, data in (beside | pictures).items():
        files.append(File.generated(config, name, content=data))
    return files


def on_page_markdown(markdown, page, **_):
    kept = []

    def keep(match):
        text = match[0]
        if match["kind"] == "math":
            text = f'<div class="equation">{mathml(match["text"], "block")}</div>'
        elif match["inline"]:
            text = mathml(match["inline"][2:-2], "inline")
        kept.append(text)
        return f"\0{len(kept) - 1}\0"

    text = _KEPT.sub(keep, markdown)
    text = text.replace("<details>", '<details markdown="1">')  # or what is in it stays as it is written
    if page.file.src_uri not in ELSEWHERE.values():
        text = _LINK.sub(_here, text)
    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], text)


def mathml(latex: str, display: str) -> str:
    """One line of MathML. Raises ValueError for what the converter leaves as it stands."""
    found = latex2mathml.converter.convert(latex.strip(), display=display).replace("\n", " ")
    left = re.search(r">[^<]*(\\[^<]*|&)<", found)
    if left:
        raise ValueError(f"{left[1]!r} is not understood in: {latex}")
    return found


def _here(match) -> str:
    """A link of a page in docs/ to a file beside that folder."""
    target = posixpath.normpath(posixpath.join("docs", match["target"]))
    return f"{match['before']}{ELSEWHERE.get(target, match['target'])}{match['anchor'] or ''})"


def _page_of(name: str) -> str:
    """The page of a file that lies outside docs/, with its links as seen from there."""
    text = (ROOT / name).read_text()
    if name == "LICENSE":
        return f"# Licence\n\n```text\n{text}```\n"
    if name == "CITATION.cff":
        return citation_page(text)
    folder = posixpath.dirname(name)

    def moved(match) -> str:
        if re.match(r"\w+:", match["target"]):
            return match[0]
        target = posixpath.normpath(posixpath.join(folder, match["target"]))
        found = ELSEWHERE.get(target) or posixpath.relpath(target, "docs")
        return f"{match['before']}{found}{match['anchor'] or ''})"

    return _LINK.sub(moved, text)
