"""Texts of figures, and what curves run through them."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Annotation, Text


def over_curves(figure) -> list[str]:
    """Texts and legends inside the axes through which a curve of more than two points runs."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    renderer, found = figure.canvas.get_renderer(), []
    for ax in figure.axes:
        curves = [line for line in ax.lines if len(line.get_xdata()) > 2 and line.get_linestyle() != "None"]
        paths = [line.get_transform().transform_path(line.get_path()).cleaned(remove_nans=True) for line in curves]
        frame = ax.get_window_extent(renderer)
        boxes = {text.get_text(): _box(text, renderer) for text in ax.texts if text.get_text().strip()}
        if ax.get_legend() is not None:
            boxes["legend"] = ax.get_legend().get_window_extent(renderer)
        for name, box in boxes.items():
            if box.overlaps(frame) and any(path.intersects_bbox(box, filled=False) for path in paths):
                found.append(name)
    return found


def _box(text, renderer):
    """Of the letters alone, without an arrow."""
    if isinstance(text, Annotation):
        text.update_positions(renderer)
    return Text.get_window_extent(text, renderer)


def texts(figure) -> list[str]:
    """All that is written in a figure."""
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def noisy(samples, tones, dt=0.1, seed=3):
    """Signals (time, place) of noise that falls off, with `tones` (frequency, amplitude)."""
    random = np.random.default_rng(seed)
    time = dt * np.arange(samples)
    noise = np.cumsum(random.standard_normal((samples, 2)), axis=0) * 2e-4
    return time, 1 / 1.4 + noise + sum(a * np.sin(2 * np.pi * f * time)[:, None] * [1.0, 0.7] for f, a in tones)
