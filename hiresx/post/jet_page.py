"""The page of a jet: one HTML file with its pictures inside."""

import base64
import html
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiresx.output.show import page
from hiresx.post import jet_pictures

if TYPE_CHECKING:
    from hiresx.post.jet import Jet

_LOOK = """
body { font: 16px/1.5 Georgia, serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: .6rem 0; } td, th { padding: .15rem .9rem .15rem 0; text-align: left; }
th { font-weight: 600; border-bottom: 1px solid #bbb; } td:not(:first-child) { font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; } img { max-width: 100%; } figcaption { color: #555; font-size: .9rem; }
.missing { color: #8a3b12; }
"""


def write(path: Path, ours: "Jet", others: Sequence["Jet"], measured: jet_pictures.Measured) -> None:
    """Write the page of `ours` to `path`; `others` and `measured` as `jet_pictures.against_theory` takes them."""
    path.write_text(text(ours, others, measured), encoding="utf-8")


def text(ours: "Jet", others: Sequence["Jet"], measured: jet_pictures.Measured) -> str:
    """The page."""
    summary = ours.summary
    parts = [f"<h1>{html.escape(ours.run.title)}</h1>", _how(ours), _jet(ours)]
    if summary["missing"]:
        listed = "".join(f"<li>{html.escape(entry)}</li>" for entry in summary["missing"])
        parts.append(f'<div class="missing">Not told by this run:<ul>{listed}</ul></div>')
    parts.append("<h2>Beside theory and measurements</h2>")
    shown = "" if measured else " No measured points were given (<code>--points FILE.csv</code>)."
    parts.append(
        _figure(
            lambda: jet_pictures.against_theory(ours, others, measured),
            f"Spacing of the shock cells and Strouhal number of the screech over the expanded Mach number.{shown}",
        )
    )
    parts.append(_table(summary["predictions"], {"formula": "", "spacing": "L<sub>s</sub>/h", "strouhal": "St"}))
    if ours.flow is not None:
        parts += ["<h2>Mean jet</h2>", _cells(ours)]
        caption = f"Mean flow on the axis and half-width, from: {html.escape(ours.flow.source)}."
        parts.append(_figure(lambda: jet_pictures.axis(ours), caption))
    if ours.screech is not None:
        parts += ["<h2>Screech</h2>", _screech(ours)]
        caption = "Pressure at both lips: half of the sum and half of the difference."
        parts.append(_figure(lambda: jet_pictures.lip_spectra(ours), caption))
    if summary.get("convection"):
        parts += ["<h2>Convection</h2>", _convection(summary["convection"])]
    parts.append("<h2>Flow and sound</h2>")
    caption = (
        "Spanwise vorticity in colours, dilatation in grey: shocks and sound, without the sponges behind and beside."
    )
    parts.append(_figure(lambda: jet_pictures.flow(ours), caption))
    name = html.escape(ours.run.title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f"<style>{_LOOK}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _figure(draw: Callable[[], Any], caption: str) -> str:
    with page.style():
        stream = io.BytesIO()
        draw().savefig(stream, format="png", dpi=150, bbox_inches="tight", pad_inches=0.05)
    data = base64.b64encode(stream.getvalue()).decode()
    return f'<figure><img alt="" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'


def _how(ours: "Jet") -> str:
    record = ours.run.record
    words = [
        f"{record['points']:,} points" if record.get("points") else "",
        f"to t = {record['time']:.4g} h/c in {record['steps']:,} steps" if record.get("steps") else "",
        f"on {record['backend']}" if record.get("backend") else "",
        f"status {record.get('status', 'unknown')}",
    ]
    return f"<p>{html.escape(str(ours.run.path))}: {html.escape(', '.join(word for word in words if word))}.</p>"


def _jet(ours: "Jet") -> str:
    state = ours.state
    rows = [
        ("fully expanded Mach number M<sub>j</sub>", f"{state.mach:.4f}"),
        ("nozzle pressure ratio", f"{state.npr:.4f}"),
        ("exit over ambient pressure", f"{state.pressure_ratio:.4g}"),
        ("velocity U<sub>j</sub>/c", f"{state.velocity:.4f}"),
        ("height h<sub>j</sub>/h", f"{state.height:.4f}"),
    ]
    return "<table>" + "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows) + "</table>"


def _cells(ours: "Jet") -> str:
    summary = ours.summary
    if not summary["cells"]:
        return "<p>There are no shock cells on the axis.</p>"
    spread = summary["cell_spacing_spread"]
    words = f"<p>Mean spacing L<sub>s</sub>/h = {summary['cell_spacing']:.3f}"
    words += f", standard deviation over the {len(summary['cells'])} cells {spread:.3f}" if spread else ""
    words += f"; {summary['cell_spacing_over_vortex_sheet']:.3f} of the vortex sheet's."
    if summary["core_end"]:
        words += f" The velocity on the axis falls below .95 U<sub>j</sub> for good at x/h = {summary['core_end']:.2f}."
    if summary["spreading"]:
        grown = summary["spreading"]
        words += f" From there to {grown['to']:.1f} the half-width grows by {grown['rate']:.3f} per length."
    names = {"cell": "cell", "end": "ends at x/h", "length": "length /h", "over_vortex_sheet": "over vortex sheet",
             "pressure_rise": "pressure rise"}  # fmt: skip
    return words + "</p>" + _table(summary["cells"], names)


def _screech(ours: "Jet") -> str:
    found = ours.screech.summary
    words = (
        f"<p>{html.escape(found['signals'])}, t = {found['from']:.4g} to {found['to']:.4g}: {found['segments']} "
        f"segment(s), resolution {found['resolution']:.3g} c/h; {found['expected_periods']:.1f} periods of the tone "
        f"that correlations give. {100 * found['antisymmetric_part']:.0f} % of the variance is antisymmetric."
    )
    tone = found["fundamental"]
    if tone is None:
        words += f" Near that, no tone stands {found['threshold_db']:.1f} dB or more above the rest."
    rows = [{**tone, "order": "fundamental"}] if tone else []
    rows += [{**line, "order": f"{line['order']} f"} for line in found["harmonics"]]
    rows += [{**line, "order": "other"} for line in found["other_tones"]]
    if not rows:
        return words + "</p>"
    names = {"order": "tone", "strouhal": "f h/U<sub>j</sub>", "frequency": "f h/c", "amplitude": "amplitude p",
             "above_background_db": "dB above the rest", "mode": "mode"}  # fmt: skip
    return words + "</p>" + _table(rows, names)


def _convection(found: dict[str, Any]) -> str:
    low, high = found["quartiles_over_Uj"]
    return (
        f"<p>Along {html.escape(found['signals'])}: u<sub>c</sub> = {found['velocity']:.3f} c = "
        f"{found['over_Uj']:.3f} U<sub>j</sub>, quartiles over {found['places']} places {low:.3f} and {high:.3f}.</p>"
    )


def _table(rows: Sequence[dict[str, Any]], names: dict[str, str]) -> str:
    def cell(value: Any) -> str:
        if value is None:
            return ""
        return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))

    head = "".join(f"<th>{name}</th>" for name in names.values())
    body = "".join("<tr>" + "".join(f"<td>{cell(row.get(key))}</td>" for key in names) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
