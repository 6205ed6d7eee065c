"""The page of a jet: one HTML file with its pictures inside."""

import base64
import html
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.post import jet_pictures
from hiresx.post.jet_points import MeasuredPoints

if TYPE_CHECKING:
    from hiresx.post.jet import Jet

_EXPANDED = {"planar": "height h<sub>j</sub>/h", "round": "diameter D<sub>j</sub>/D"}
_LOOK = """
body { font: 16px/1.5 Georgia, serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
h3 { font-size: 1.05rem; }
table { border-collapse: collapse; margin: .6rem 0; } td, th { padding: .15rem .9rem .15rem 0; text-align: left; }
th { font-weight: 600; border-bottom: 1px solid #bbb; } td:not(:first-child) { font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; } img { max-width: 100%; } figcaption { color: #555; font-size: .9rem; }
.missing { color: #8a3b12; }
"""


def write(path: Path, jets: Sequence["Jet"], known: Sequence[MeasuredPoints]) -> None:
    """Write the page of `jets` to `path`; `known` as `jet_pictures.against_theory` takes them."""
    path.write_text(text(jets, known), encoding="utf-8")


def text(jets: Sequence["Jet"], known: Sequence[MeasuredPoints]) -> str:
    """The page: all jets beside theory, then each by itself."""
    name = html.escape(jets[0].run.title) if len(jets) == 1 else f"Under-expanded {jets[0].state.shape} jets"
    parts = [f"<h1>{name}</h1>", _legend(jets[0]), _compared(jets), "<h2>Beside theory and other jets</h2>"]
    parts.append(
        _figure(
            lambda: jet_pictures.against_theory(jets, known),
            "Spacing of the shock cells and Strouhal number of the screech over the expanded Mach number; filled marks "
            "in grey are measurements.",
        )
    )
    parts.append(_sources(jets[0], known))
    for jet in jets:
        parts += _one(jet)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f"<style>{_LOOK}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _legend(jet: "Jet") -> str:
    if jet.state.shape == "round":
        return "<p>Lengths are over the diameter D, the Strouhal number is St = f D<sub>j</sub>/U<sub>j</sub>.</p>"
    return "<p>Lengths are over the nozzle's height h, the Strouhal number is St = f h/U<sub>j</sub>.</p>"


def _compared(jets: Sequence["Jet"]) -> str:
    """One line for each run."""
    rows = []
    for jet in jets:
        found = jet.summary
        tone = (found.get("screech") or {}).get("fundamental") or {}
        rows.append(
            {
                "run": jet_pictures.name_of(jet), "Mj": jet.state.mach, "ratio": jet.state.pressure_ratio,
                "count": len(found.get("cells") or ()), "Ls": found.get("cell_spacing"),
                "spread": found.get("cell_spacing_spread"), "over": found.get("cell_spacing_over_vortex_sheet"),
                "core": found.get("core_end"), "St": tone.get("strouhal", "none found"), "mode": tone.get("mode"),
                "uc": (found.get("convection") or {}).get("over_Uj"),
            }
        )  # fmt: skip
    names = {"run": "run", "Mj": "M<sub>j</sub>", "ratio": "p<sub>e</sub>/p", "count": "cells", "Ls": "L<sub>s</sub>",
             "spread": "&plusmn;", "over": "over vortex sheet", "core": "core", "St": "St", "mode": "mode",
             "uc": "u<sub>c</sub>/U<sub>j</sub>"}  # fmt: skip
    return _table(rows, names)


def _sources(jet: "Jet", known: Sequence[MeasuredPoints]) -> str:
    listed = "".join(f"<li>{html.escape(points.source)}</li>" for points in known)
    words = ""
    if jet.state.shape == "planar" and not any(points.measured for points in known):
        words = (
            " No measured points of planar jets are kept here; those that you have, for instance of Panda, Raman &amp; "
            "Zaman (AIAA 97-1623) and Raman &amp; Rice (Phys. Fluids 6, 1994), come in with "
            "<code>--points FILE.csv</code>."
        )
    curves = (
        "Curves: Tam, J. Sound Vib. 121 (1988) 135; wavelengths of Powell and Krothapalli, K sqrt(NPR - 1.893)."
        if jet.state.shape == "planar"
        else "Curves: vortex sheet of Prandtl and Pack; Tam, Seiner &amp; Yu, J. Sound Vib. 110 (1986) 309."
    )
    return f"<p>{curves}{words} Points:</p><ul>{listed}</ul>"


def _one(ours: "Jet") -> list[str]:
    """What one run tells."""
    summary = ours.summary
    parts = [f"<h2>{html.escape(jet_pictures.name_of(ours))}</h2>", _how(ours), _jet(ours)]
    if summary["missing"]:
        listed = "".join(f"<li>{html.escape(entry)}</li>" for entry in summary["missing"])
        parts.append(f'<div class="missing">Not told by this run:<ul>{listed}</ul></div>')
    length = jet_pictures.unit(ours)
    names = {"formula": "", "spacing": f"L<sub>s</sub>/{length}", "strouhal": "St"}
    parts += ["<h3>Formulas</h3>", _table(summary["predictions"], names)]
    if ours.flow is not None:
        parts += ["<h3>Mean jet</h3>", _cells(ours)]
        caption = f"Mean flow on the axis and half-width, from: {html.escape(ours.flow.source)}."
        parts.append(_figure(lambda: jet_pictures.axis(ours), caption))
    if ours.screech is not None:
        parts += ["<h3>Screech</h3>", _screech(ours)]
        caption = "Pressure at both lips: half of the sum and half of the difference."
        parts.append(_figure(lambda: jet_pictures.lip_spectra(ours), caption))
    if summary.get("convection"):
        parts += ["<h3>Convection</h3>", _convection(summary["convection"])]
    parts.append("<h3>Flow and sound</h3>")
    caption = "Spanwise vorticity, and dilatation: shocks and sound, without the sponges behind and beside."
    try:
        parts.append(_figure(lambda: jet_pictures.flow(ours), caption))
    except HiresxError as error:
        parts.append(f'<p class="missing">{html.escape(f"{error.message}; {error.hint}")}</p>')
    return parts


def _figure(draw: Callable[[], Any], caption: str) -> str:
    with picture_file.style():
        stream = io.BytesIO()
        draw().savefig(stream, format="png", dpi=150, bbox_inches="tight", pad_inches=0.05)
    data = base64.b64encode(stream.getvalue()).decode()
    return f'<figure><img alt="" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'


def _how(ours: "Jet") -> str:
    record, length = ours.run.record, jet_pictures.unit(ours)
    words = [
        f"{record['points']:,} points" if record.get("points") else "",
        f"to t = {record['time']:.4g} {length}/c in {plural(record['steps'], 'step', ',')}"
        if record.get("steps")
        else "",
        f"on {record['backend']}" if record.get("backend") else "",
        f"status {record.get('status', 'unknown')}",
    ]
    told = ", ".join(word for word in words if word)
    return f"<p>{html.escape(ours.run.title)}. {html.escape(str(ours.run.path))}: {html.escape(told)}.</p>"


def _jet(ours: "Jet") -> str:
    state = ours.state
    rows = [
        ("fully expanded Mach number M<sub>j</sub>", f"{state.mach:.4f}"),
        ("nozzle pressure ratio", f"{state.npr:.4f}"),
        ("exit over ambient pressure", f"{state.pressure_ratio:.4g}"),
        ("velocity U<sub>j</sub>/c", f"{state.velocity:.4f}"),
        (_EXPANDED[state.shape], f"{state.height:.4f}"),
    ]
    return "<table>" + "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows) + "</table>"


def _cells(ours: "Jet") -> str:
    summary, unit = ours.summary, jet_pictures.unit(ours)
    left = _discarded(summary["no_cells"], unit)
    if not summary["cells"]:
        return f"<p>There are no shock cells on the axis.</p>{left}"
    spread = summary["cell_spacing_spread"]
    words = f"<p>Mean spacing L<sub>s</sub>/{unit} = {summary['cell_spacing']:.3f}"
    words += f", standard deviation over the {len(summary['cells'])} cells {spread:.3f}" if spread else ""
    words += f"; {summary['cell_spacing_over_vortex_sheet']:.3f} of the vortex sheet's."
    if summary["core_end"]:
        words += (
            f" The velocity on the axis falls below .95 U<sub>j</sub> for good at x/{unit} = {summary['core_end']:.2f}."
        )
    if summary["spreading"]:
        words += _spreading(summary["spreading"], unit)
    names = {"cell": "cell", "end": f"ends at x/{unit}", "length": f"length /{unit}",
             "over_vortex_sheet": "over vortex sheet", "pressure_rise": "pressure rise"}  # fmt: skip
    return words + "</p>" + _table(summary["cells"], names) + left


def _spreading(grown: Mapping[str, Any], unit: str) -> str:
    if grown["rate"] is None:
        return f" How the half-width grows is not known: {html.escape(grown['why'])}."
    words = (
        f" From x/{unit} = {grown['from']:.1f} to {grown['to']:.1f} the half-width grows by "
        f"{grown['rate']:.3f} &plusmn; {grown['rate_uncertainty']:.3f} per length"
    )
    if grown["virtual_origin"] is None:
        return f"{words}; {html.escape(grown['why'])}."
    origin = f"{grown['virtual_origin']:.1f} &plusmn; {grown['virtual_origin_uncertainty']:.1f}"
    return f"{words}, from a virtual origin at x/{unit} = {origin}."


def _discarded(found: Sequence[Mapping[str, Any]], unit: str) -> str:
    """Maxima that were not taken for cells, with the reason."""
    if not found:
        return ""
    said = "; ".join(f"at x/{unit} = {one['at']:.2f}: {html.escape(one['why'])}" for one in found)
    return f"<p>Maxima of the pressure that are not taken for ends of cells: {said}.</p>"


def _screech(ours: "Jet") -> str:
    assert ours.screech is not None
    found, unit = ours.screech.summary, jet_pictures.unit(ours)
    words = (
        f"<p>{html.escape(found['signals'])}, t = {found['from']:.4g} to {found['to']:.4g}: {found['segments']} "
        f"segment(s), resolution {found['resolution']:.3g} c/{unit}; {found['expected_periods']:.1f} periods of the "
        f"tone that correlations give. {100 * found['antisymmetric_part']:.0f} % of the variance is antisymmetric."
    )
    tone = found["fundamental"]
    if tone is None:
        words += f" Near that, no tone stands {found['threshold_db']:.1f} dB or more above the rest."
    if found["stronger"] is not None:
        words += (
            f" There is a louder tone at St = {found['stronger']:.4g}: what is called the fundamental is the loudest "
            "near the frequency that formulas give."
        )
    if found["cutoff"] is not None:
        words += (
            f" The grid carries sound at the lips up to f = {found['cutoff']:.3g} c/{unit}, with "
            f"{found['points_per_wave']:g} points per wavelength: tones beyond are the grid's as much as the jet's."
        )
    rows = [{**tone, "order": "fundamental"}] if tone else []
    rows += [{**line, "order": f"{line['order']} f"} for line in found["harmonics"]]
    rows += [{**line, "order": "other"} for line in found["other_tones"]]
    if not rows:
        return words + "</p>"
    for row in rows:
        row["said"] = {True: "yes", False: "no", None: "not known"}[row["carried"]]
    names = {"order": "tone", "strouhal": "St", "frequency": f"f {unit}/c", "amplitude": "amplitude p",
             "above_background_db": "dB above the rest", "mode": "mode",
             "said": "the grid carries it"}  # fmt: skip
    return words + "</p>" + _table(rows, names)


def _convection(found: dict[str, Any]) -> str:
    low, high = found["quartiles_over_Uj"]
    return (
        f"<p>Along {html.escape(found['signals'])}: u<sub>c</sub> = {found['velocity']:.3f} c = "
        f"{found['over_Uj']:.3f} U<sub>j</sub>, quartiles over {plural(found['places'], 'place')} "
        f"{low:.3f} and {high:.3f}.</p>"
    )


def _table(rows: Sequence[dict[str, Any]], names: dict[str, str]) -> str:
    def cell(value: Any) -> str:
        if value is None:
            return ""
        return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))

    head = "".join(f"<th>{name}</th>" for name in names.values())
    body = "".join("<tr>" + "".join(f"<td>{cell(row.get(key))}</td>" for key in names) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"
