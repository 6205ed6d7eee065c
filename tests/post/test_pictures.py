"""Pictures of analyses: nothing is written over curves, levels and lengths are named as they are."""

from types import SimpleNamespace

import made_runs
import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")
pytest.importorskip("matplotlib", reason="pip install '.[post]'")

from drawn_texts import noisy, over_curves, texts

from hiresx.output.show import picture_file
from hiresx.post import azimuthal, correlate, jet, jet_pictures, spectrum

TONES = ((0.09, 4e-3), (0.113, 2e-3), (0.226, 1e-3), (0.9, 4e-3))
JET = made_runs.CASE | {"parameters": {"pressure_ratio": 2.09, "exit_mach": 1.0}, "length_symbol": "h"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A jet with tones at its lips, which a ring and a line hear too."""
    folder = made_runs.run(tmp_path_factory.mktemp("pictures"), JET)
    time, p = noisy(4000, TONES)
    made_runs.probe(folder, "lips", time, [[-0.1, 0.8, 0.0], [-0.1, -0.8, 0.0]], p=p)
    angle = np.arange(8) * np.pi / 4
    ring = np.stack([0 * angle, np.cos(angle), np.sin(angle)], axis=1)
    made_runs.probe(folder, "ring", time, ring, p=p[:, :1] * np.cos(angle) ** 2 + p[:, 1:])
    x = np.linspace(0.05, 11.95, 120)
    wave = 0.5 * np.exp(-x / 6) * np.cos(2 * np.pi * x / 2.6)
    places = np.stack([x, 0 * x, 0 * x], axis=1)
    u = 1.27 - 0.5 * wave - 0.04 * np.maximum(x - 4, 0)
    made_runs.probe(folder, "axis", time[:50], places, p=np.tile(1 / 1.4 + wave, (50, 1)), u=np.tile(u, (50, 1)))
    return folder


@pytest.mark.parametrize(
    "drawn",
    [
        lambda run: spectrum(run, "lips.p_0", segments=4),
        lambda run: spectrum(run, "lips.p", segments=2, ambient=101325.0),
        lambda run: spectrum(run, "lips.p_0", segments=1, length=2.0, others=[run]),
        lambda run: azimuthal(run, "ring.p", segments=4),
        lambda run: correlate(run, "axis.p"),
    ],
    ids=["one", "two", "others", "ring", "correlation"],
)
def test_no_text_lies_over_a_curve(run, drawn):
    figure, _ = drawn(run).plot()
    assert over_curves(figure) == []
    said = " ".join(texts(figure))
    assert "rho_ref" not in said and "re 1" not in said, "scales are symbols"
    assert "/L" not in said and "\\,L" not in said, "the case calls its length h"


@pytest.mark.parametrize("picture", ["axis", "lip_spectra", "against_theory"])
def test_no_text_lies_over_a_curve_of_a_jet(run, picture, monkeypatch):
    jet(run)
    limits, label = [], picture_file.label_points
    monkeypatch.setattr(picture_file, "label_points", lambda ax, of: limits.append(ax.get_ylim()) or label(ax, of))
    from hiresx.post.jet import analyse, expanded_jet
    from hiresx.results import open as open_run

    ours = analyse(open_run(run), expanded_jet(open_run(run)))
    with picture_file.style():
        figure = (
            jet_pictures.against_theory([ours], []) if picture[0:2] == "ag" else getattr(jet_pictures, picture)(ours)
        )
    assert over_curves(figure) == []
    if picture[0:2] == "ag":
        assert [ax.get_xlabel() for ax in figure.axes] == ["$M_j$"] * 2 and all(ax.get_legend() for ax in figure.axes)
    if picture == "lip_spectra":  # all levels are seen that lie within the frequencies shown, with room around them
        (ax,) = figure.axes
        curves = [line.get_xydata() for line in ax.lines if len(line.get_xdata()) > 10]
        seen = np.concatenate([curve[curve[:, 0] <= ax.get_xlim()[1], 1] for curve in curves])
        assert len(curves) == 2 and limits == [pytest.approx((seen.min() - 3, seen.max() + 3))]
        assert ax.get_ylim()[0] == limits[0][0] and ax.get_ylim()[1] >= limits[0][1], "room for labels is added"


def test_scales_of_the_flow_of_a_jet_are_even_about_zero(monkeypatch):
    """Vorticity to its 98.5 % quantile, dilatation to twice the 95 % quantile of where nothing turns."""
    y, x = np.meshgrid(np.linspace(-4, 4, 41), np.linspace(0, 10, 51), indexing="ij")
    turns = np.abs(y) < 1
    piece = {"x": x, "y": y, "vorticity_z": np.where(turns, 3.0, 0.0), "dilatation": np.where(turns, 9.0, -0.25)}
    fields = SimpleNamespace(
        hiresx=SimpleNamespace(pieces=lambda *names: [piece], dimensions=2), coords={"time": np.array(1.5)}
    )
    state = SimpleNamespace(shape="planar")
    ours = SimpleNamespace(run=SimpleNamespace(fields=lambda *given: fields, case={}), state=state)
    drawn = []
    monkeypatch.setattr(
        jet_pictures.colours, "draw", lambda *given, look: drawn.append((given, look)) or picture_file.figure(2.0)
    )
    jet_pictures.flow(ours)
    ((_, names, scales), look), *_ = drawn
    assert names == ["vorticity_z", "dilatation"] and look.zoom == (0, 10, -4, 4)
    assert [(scale.vmin, scale.vmax) for scale, *_ in scales.values()] == [(-3.0, 3.0), (-0.5, 0.5)]


@pytest.mark.parametrize(
    ("units", "shown"),
    [
        ("rho_ref c_ref^2", r"$\rho_\mathrm{ref}\,c_\mathrm{ref}^{2}$"),
        ("L / c_ref", r"$L/c_\mathrm{ref}$"),
        ("(rho_ref c_ref^2)^2 L / c_ref", r"$(\rho_\mathrm{ref}\,c_\mathrm{ref}^{2})^{2}\,L/c_\mathrm{ref}$"),
        ("Pa", r"$\mathrm{Pa}$"),
        ("per cent %", "per cent %"),
        ("1", "1"),
    ],
)
def test_units_are_set_as_symbols(units, shown):
    assert picture_file.unit(units) == shown


@pytest.mark.parametrize(
    ("words", "symbol", "shown"),
    [
        (r"$x/L$ of L_s", "h", r"$x/h$ of L_s"),
        (r"$t = 3\,L/c_\mathrm{ref}$", "D", r"$t = 3\,D/c_\mathrm{ref}$"),
        (r"$L_s/L$", "chord", r"$L_s/\mathrm{chord}$"),
        (r"$x/L$", None, r"$x/L$"),
    ],
)
def test_the_length_is_called_as_the_case_calls_it(words, symbol, shown):
    assert picture_file.with_length_symbol(words, {"length_symbol": symbol} if symbol else None) == shown


def test_names_of_close_places_lie_over_none_of_each_other():
    """The third name goes back to the first row; the fourth then needs a third one."""
    from matplotlib.figure import Figure

    from hiresx.output.show import picture_file

    ax = Figure(figsize=(8, 4)).subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    name = 10 * "n"
    picture_file.label_points(ax, [(x, 0.5, name) for x in (0.30, 0.36, 0.46, 0.47)])
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len({round(box.y0) for box in boxes}) == 3
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
