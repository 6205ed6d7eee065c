"""A picture of a machine: GPUs under their switches and NUMA nodes, the placement of ranks, and the load of each link
as its width."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiresx.base import optional
from hiresx.base.whole_files import replacing
from hiresx.errors import HiresxError
from hiresx.topology.connection_levels import nvlinks
from hiresx.topology.cost import Estimate
from hiresx.topology.cpus import format_list
from hiresx.topology.groups import groups
from hiresx.topology.machine import Machine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDEST, THINNEST = 9.0, 0.8
HEIGHTS = {"GPU": 0.0, "PIX": 1.2, "PXB": 2.2, "NODE": 3.2}
COLOURS = {"PCIe": "#4477aa", "shared": "#cc6677", "NVLink": "#228833"}
NAMES = {"PCIe": "PCIe of one GPU", "shared": "PCIe uplink, or between sockets: shared", "NVLink": "NVLink"}
STYLE = {"font.size": 9, "mathtext.fontset": "dejavuserif", "legend.frameon": False, "svg.hashsalt": "hiresx"}


def draw(
    machine: Machine,
    path: Path,
    placement: Sequence[int] | None = None,
    estimate: Estimate | None = None,
    title: str = "",
) -> None:
    """Draw a picture of a machine, its GPUs and their links, and write it to the file `path` (.png, .svg or .pdf).
    `placement`: the index of the GPU of each rank. `estimate`: the estimate of an exchange with this placement; the
    width of a link then shows its load in bytes. `title`: the title of the picture. Raises HiresxError if matplotlib is
    missing, for a machine without GPUs, for another file ending, and if the file cannot be written."""
    for name in ("matplotlib.backends.backend_agg", "matplotlib.figure", "matplotlib.patches"):
        optional.import_required(name, "pictures are drawn with matplotlib", optional.install_command("plot"))
    import matplotlib as mpl

    if not machine.gpus:
        raise HiresxError("there is no GPU to draw", "draw a recording with --from FILE")
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise HiresxError(
            f'{path}: pictures cannot be written as "{path.suffix}"', "name a file that ends in .png, .svg or .pdf"
        )
    style: dict[Any, Any] = dict(STYLE)
    with mpl.rc_context(style):
        figure = _figure(machine, placement, estimate, title)
        try:
            with replacing(path) as temporary:
                kind = path.suffix[1:].lower()
                figure.savefig(temporary, format=kind, dpi=200, bbox_inches="tight", pad_inches=0.05)
        except (OSError, ValueError) as error:
            raise HiresxError(f"{path}: cannot be written: {error}", "name a file that ends in .png") from error


def _figure(machine: Machine, placement: Sequence[int] | None, estimate: Estimate | None, title: str) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    count = len(machine.gpus)
    figure = Figure(figsize=(max(6.0, 0.95 * count + 2), 6.0))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    x, parents = _layout(machine)
    loads = estimate.loads if estimate else {}
    most = max(loads.values(), default=0.0)

    def width(*names: str) -> float:
        load = max((loads.get(name, 0.0) for name in names), default=0.0)
        return THINNEST + (WIDEST - THINNEST) * load / most if most else 1.5

    for gpu in range(count):
        chain = parents[gpu]
        below, name = (x[gpu], HEIGHTS["GPU"]), f"GPU {gpu} PCIe"
        for level, members in chain:
            above = (sum(x[g] for g in members) / len(members), HEIGHTS[level])
            colour = COLOURS["shared"] if name.startswith("uplink") else COLOURS["PCIe"]
            axes.plot(*zip(below, above, strict=True), color=colour, lw=width(f"{name} out", f"{name} in"), zorder=1)
            below, name = above, f"uplink of {level} {{{format_list(members)}}}"
    drawn = {(level, members) for chain in parents for level, members in chain}
    for level, members in drawn:
        at = (sum(x[g] for g in members) / len(members), HEIGHTS[level])
        label = {"PIX": "switch", "PXB": "switches", "NODE": _node_label(machine, members)}[level]
        axes.annotate(
            label, at, ha="center", va="center", fontsize=8, bbox={"boxstyle": "round", "fc": "white", "ec": "grey"}
        )
    for name in loads:
        if name.startswith("interconnect"):
            tops = sorted((sum(x[g] for g in m) / len(m) for level, m in drawn if level == "NODE"))
            if len(tops) > 1:
                axes.plot([tops[0], tops[-1]], [HEIGHTS["NODE"]] * 2, color=COLOURS["shared"], lw=width(name), zorder=0)
    _nvlink(axes, machine, x, loads, width)
    ranks: dict[int, list[int]] = {}
    for rank, gpu in enumerate(placement if placement is not None else ()):
        ranks.setdefault(gpu, []).append(rank)
    for gpu in range(count):
        on = ranks.get(gpu)
        face = "#ffdd88" if on else "#eeeeee"
        axes.add_patch(
            FancyBboxPatch((x[gpu] - 0.34, -0.28), 0.68, 0.56, boxstyle="round,pad=0.04", fc=face, ec="black", zorder=2)
        )
        text = f"GPU {gpu}" + (f"\nrank {format_list(on)}" if on else "")
        axes.text(x[gpu], 0, text, ha="center", va="center", fontsize=8, zorder=3)
    heading = title or machine.host or machine.product or machine.source.rpartition("/")[2]
    if estimate is not None:
        heading += f"\n{estimate.seconds * 1e3:.4g} ms, busiest link: {estimate.busiest}"
    axes.set_title(heading, fontsize=10)
    axes.set_xlim(min(x) - 0.8, max(x) + 0.8)
    axes.set_ylim(-1.6, HEIGHTS["NODE"] + 0.6)
    axes.axis("off")
    _legend(axes, most, bool(ranks))
    return figure


def _legend(axes: "Axes", most: float, ranks: bool) -> None:
    """Draw the legend below the machine: the meaning of the colours, and of the widths if there are loads (`most`:
    bytes or messages of the busiest link)."""
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    used = {line.get_color() for line in axes.lines} | {patch.get_edgecolor() for patch in axes.patches}
    seen = {to_rgba(colour) for colour in used}
    keys: list[Line2D | Patch] = [
        Line2D([], [], color=colour, lw=3, label=NAMES[name])
        for name, colour in COLOURS.items()
        if to_rgba(colour) in seen
    ]
    if ranks:
        keys.append(Patch(fc="#ffdd88", ec="black", label="GPU with ranks"))
    if most:
        keys.append(Line2D([], [], color="0.4", lw=WIDEST, label="width: load, this wide the busiest"))
    axes.legend(handles=keys, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2)


def _layout(machine: Machine) -> tuple[list[float], list[list[tuple[str, tuple[int, ...]]]]]:
    """Return (x of each GPU, the chain of groups above each from the inside out)."""
    partitions = groups(machine)
    member = {level: {g: part for part in partitions[level] for g in part} for level in ("PIX", "PXB", "NODE")}
    nested = ("NODE", "PXB", "PIX")
    order = sorted(range(len(machine.gpus)), key=lambda g: (*(member[level][g] for level in nested), g))
    x = [0.0] * len(order)
    at = 0.0
    for n, gpu in enumerate(order):
        if n:
            at += 1.0 + sum(
                0.25 for level in ("PIX", "PXB", "NODE") if member[level][gpu] != member[level][order[n - 1]]
            )
        x[gpu] = at
    parents = []
    for gpu in range(len(order)):
        chain: list[tuple[str, tuple[int, ...]]] = []
        inner: tuple[int, ...] = (gpu,)
        for level in ("PIX", "PXB"):
            if len(member[level][gpu]) > len(inner):
                inner = member[level][gpu]
                chain.append((level, inner))
        chain.append(("NODE", member["NODE"][gpu]))
        parents.append(chain)
    return x, parents


def _node_label(machine: Machine, members: tuple[int, ...]) -> str:
    nodes = {machine.gpus[g].numa for g in members}
    return f"NUMA {next(iter(nodes))}" if len(nodes) == 1 and None not in nodes else "CPU"


def _nvlink(
    axes: "Axes", machine: Machine, x: list[float], loads: dict[str, float], width: Callable[..., float]
) -> None:
    """Draw arcs below the GPUs, or one bar if all have NVLink through a switch."""
    from matplotlib.patches import Arc

    count = len(machine.gpus)
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count) if nvlinks(machine.levels[a][b])]
    if any(name.endswith(("NVLink out", "NVLink in")) for name in loads) or len(pairs) > 3 * count:
        linked = sorted({g for pair in pairs for g in pair})
        axes.plot([x[g] for g in linked], [-1.0] * len(linked), color=COLOURS["NVLink"], lw=5, solid_capstyle="round")
        for g in linked:
            names = f"GPU {g} NVLink out", f"GPU {g} NVLink in"
            axes.plot([x[g]] * 2, [-1.0, 0], color=COLOURS["NVLink"], lw=width(*names), zorder=1)
        axes.text(sum(x) / count, -1.25, "NVLink switch", ha="center", fontsize=8, color=COLOURS["NVLink"])
        return
    for a, b in pairs:
        names = f"NVLink GPU {a} to GPU {b}", f"NVLink GPU {b} to GPU {a}"
        span = abs(x[b] - x[a])
        arc = Arc(
            ((x[a] + x[b]) / 2, -0.3), span, min(2.2, 0.5 + 0.25 * span), theta1=180, theta2=360,
            color=COLOURS["NVLink"], lw=width(*names), zorder=1,
        )  # fmt: skip
        axes.add_patch(arc)
