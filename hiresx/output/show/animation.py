"""Animations: GIF files written by Pillow, and MP4 files written by the ffmpeg of imageio-ffmpeg or of the system."""

import itertools
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base import optional
from hiresx.errors import HiresxError
from hiresx.output.saved import files

# A page is then 910 pixels wide, which is enough for a GIF of some hundred pictures.
STYLE = {"figure.dpi": 130}
SUFFIXES = (".gif", ".mp4")
FASTEST = 60  # pictures per second


def check_target(target: Path, fps: float) -> None:
    """Raise HiresxError if no animation with `fps` frames per second can be written to the path `target`: its suffix
    must be .gif or .mp4, `fps` positive and at most 60, and ffmpeg is needed for .mp4."""
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise HiresxError(f'{target}: animations cannot be written as "{target.suffix}"', "use .gif or .mp4")
    if not 0 < fps <= FASTEST:
        raise HiresxError(f"{fps:g} pictures a second cannot be shown", f"give --fps between 0 and {FASTEST}")
    if suffix == ".mp4":
        _ffmpeg()


def _ffmpeg() -> str:
    """Return the path of ffmpeg. Raises HiresxError if there is none."""
    library = optional.import_or_none("imageio_ffmpeg")
    try:
        found = library.get_ffmpeg_exe() if library is not None else shutil.which("ffmpeg")
    except RuntimeError:  # the library is installed without ffmpeg
        found = shutil.which("ffmpeg")
    if found is None:
        raise HiresxError(
            "MP4 needs ffmpeg, which is not installed",
            f"{optional.install_command('post')}, or apt install ffmpeg, or write a GIF: --out FILE.gif",
        )
    return found


def write(pictures: Iterator[np.ndarray], target: Path, fps: float) -> Path:
    """Write pictures as an animation to the path `target`, .gif or .mp4, and return this path. `pictures`: red, green
    and blue as arrays uint8 (height, width, 3). `fps`: frames per second. Raises HiresxError if the file cannot be
    written; an earlier file is then unchanged."""
    first = next(pictures)
    with files.writing(target, parents=True) as temporary:
        encode = _write_gif if target.suffix.lower() == ".gif" else _write_mp4
        encode(temporary, itertools.chain([first], _same_size(pictures, first.shape)), first.shape, fps)
    return target


class MovingFigure:
    """A Matplotlib figure that is drawn many times, in which only the images and the title change from frame to frame.
    The rest of `figure` is drawn once."""

    def __init__(self, figure: Any):
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas: Any = FigureCanvasAgg(figure)
        self.figure, self._title, self._canvas = figure, figure._suptitle, canvas
        for artist in [image for ax in figure.axes for image in ax.images] + [self._title] * bool(self._title):
            artist.set_animated(True)
        self._canvas.draw()
        figure.set_layout_engine("none")
        self._still = self._canvas.copy_from_bbox(figure.bbox)

    def set_title(self, text: str) -> None:
        """Replace the title of the figure by `text`. Nothing is done if the figure has no title."""
        if self._title:
            self._title.set_text(text)

    def pixels(self) -> np.ndarray:
        """Return the drawn figure as red, green and blue, an array uint8 (height, width, 3)."""
        self._canvas.restore_region(self._still)
        for ax in self.figure.axes:
            # The frame of a panel covers its image.
            for artist in (*ax.images, *ax.spines.values()) if ax.images else ():
                ax.draw_artist(artist)
        if self._title:
            self.figure.draw_artist(self._title)
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()


def _same_size(pictures: Iterator[np.ndarray], shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Return the picture with the given size. If the grid moved or a part shrank, the height of a figure may differ: it
    is cut, or filled with white."""
    for picture in pictures:
        if picture.shape != shape:
            fitted = np.full(shape, 255, dtype=np.uint8)
            height, width = (min(a, b) for a, b in zip(shape[:2], picture.shape[:2], strict=True))
            fitted[:height, :width] = picture[:height, :width]
            picture = fitted
        yield picture


def _write_gif(path: Path, pictures: Iterator[np.ndarray], shape: tuple[int, ...], fps: float) -> None:
    from PIL import Image

    first = next(pictures)
    # All pictures have one palette, in which each colour of the first picture, including its colour bars, has the same
    # weight. Without dithering, areas that do not change are the same in all pictures and take no space.
    colours = np.unique(first.reshape(-1, 3), axis=0)
    found = Image.fromarray(colours[None]).quantize(254).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([*found[: 3 * 254], 0, 0, 0, 255, 255, 255])  # black on white remains unchanged

    def reduce(picture: np.ndarray) -> Any:
        made = Image.fromarray(picture).quantize(palette=palette, dither=Image.Dither.NONE)
        indexes = np.array(made)
        indexes[(picture == 255).all(axis=-1)] = 255  # Pillow searches for the nearest colour in steps of four
        made.putdata(indexes.ravel())
        return made

    reduced = map(reduce, itertools.chain([first], pictures))
    next(reduced).save(
        path, format="GIF", save_all=True, append_images=reduced, duration=round(1000 / fps), loop=0, disposal=1
    )


def _write_mp4(path: Path, pictures: Iterator[np.ndarray], shape: tuple[int, ...], fps: float) -> None:
    """Write an H.264 film, with a quality at which slow gradients show no bands."""
    height, width = (n - n % 2 for n in shape[:2])  # H.264 with colours at half resolution needs even sizes
    command = [_ffmpeg(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
    command += ["-r", f"{fps:g}", "-i", "-", "-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "14"]
    command += ["-preset", "fast", "-tune", "animation", "-movflags", "+faststart", "-f", "mp4", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        try:
            for picture in pictures:
                process.stdin.write(np.ascontiguousarray(picture[:height, :width]).data)
            process.stdin.close()
        except BrokenPipeError:
            pass  # the reason why ffmpeg stopped is read below
        fault = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise HiresxError(
            f"ffmpeg could not write the animation: {fault.splitlines()[-1] if fault else 'it does not say why'}",
            "install one with libx264 (apt install ffmpeg), or write a GIF: --out FILE.gif",
        )
