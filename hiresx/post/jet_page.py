"""The HTML page of the analysis of jets: one file that contains its pictures, made of the template data/jet.html."""

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiresx.base import optional
from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.post import jet_pictures
from hiresx.post.jet_points import MeasuredPoints
from hiresx.results import needs

if TYPE_CHECKING:
    from hiresx.post.jet import Jet


def write(path: Path, jets: Sequence["Jet"], known: Sequence[MeasuredPoints]) -> None:
    """Write the HTML page of the analysis of `jets` to the file `path`. `known`: measured values that the pictures show
    for comparison. Raises HiresxError if Jinja2 is missing."""
    path.write_text(text(jets, known), encoding="utf-8")


def text(jets: Sequence["Jet"], known: Sequence[MeasuredPoints]) -> str:
    """Return the HTML page of the analysis of `jets`: a comparison of all jets with theory, then a section for each
    jet. `known`: measured values that the pictures show for comparison. Raises HiresxError if Jinja2 is missing."""
    markup = optional.import_required("markupsafe", "the page of a jet needs Jinja2", needs.INSTALL)

    def figure(kind: str, jet: "Jet | None", caption: str) -> Any:
        """The picture `kind` of `jet_pictures`, or the reason why there is none."""
        try:
            with picture_file.style():
                drawn = jet_pictures.against_theory(jets, known) if jet is None else getattr(jet_pictures, kind)(jet)
                stream = io.BytesIO()
                drawn.savefig(stream, format="png", dpi=150, bbox_inches="tight", pad_inches=0.05)
        except HiresxError as error:
            return markup.Markup('<p class="missing">{}</p>').format(f"{error.message}; {error.hint}")
        data = base64.b64encode(stream.getvalue()).decode()
        return markup.Markup(
            '<figure><img alt="" src="data:image/png;base64,{}"><figcaption>{}</figcaption></figure>'
        ).format(data, caption)

    return (
        str(template("jet.html").render(jets=jets, known=known, compared=[_row(jet) for jet in jets], figure=figure))
        + "\n"
    )


def template(name: str) -> Any:
    """Return the Jinja2 template in the file `name` of the package's folder data. Raises HiresxError if Jinja2 is
    missing."""
    jinja2 = optional.import_required("jinja2", "the page of a jet needs Jinja2", needs.INSTALL)
    loader = jinja2.FileSystemLoader(Path(__file__).parent / "data")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["cell"] = lambda v: "" if v is None else f"{v:.4g}" if isinstance(v, float) else v
    environment.globals |= {
        "run_name": jet_pictures.run_name, "unit_of": jet_pictures.unit, "plural": plural, "progress": _progress,
    }  # fmt: skip
    return environment.get_template(name)


def _row(jet: "Jet") -> dict[str, Any]:
    """Return the jet's row of the table of all jets."""
    found = jet.summary
    tone = (found.get("screech") or {}).get("fundamental") or {}
    keys = ("Mj", "pressure_ratio", "cell_spacing", "cell_spacing_spread", "cell_spacing_over_vortex_sheet", "core_end")
    return {
        **{key: found.get(key) for key in keys}, "run": jet_pictures.run_name(jet),
        "count": len(found.get("cells") or ()), "St": tone.get("strouhal", "none found"), "mode": tone.get("mode"),
        "uc": (found.get("convection") or {}).get("over_Uj"),
    }  # fmt: skip


def _progress(record: Mapping[str, Any], unit: str) -> str:
    """Return progress, backend and status of a run."""
    words = [
        f"{record['points']:,} points" if record.get("points") else "",
        f"to t = {record['time']:.4g} {unit}/c in {plural(record['steps'], 'step', ',')}"
        if record.get("steps")
        else "",
        f"on {record['backend']}" if record.get("backend") else "",
        f"status {record.get('status', 'unknown')}",
    ]
    return ", ".join(filter(None, words))
