"""C-H-grid about half a swept wing: the block "wing".

Regions: "wing" (jmin, both nodes of the trailing edge and the edge of the tip included), "root" (kmin), "far-field"
(jmax and kmax) and "outflow" (imin and imax). The rest of jmin are the two sides of the cut, behind the trailing edge
and beyond the tip, connected to each other.

In planes of constant z the nodes are those of `hiresx.grid.parabolic`; near a cap these planes bulge. Beyond the tip
the section is a line, z0 its first point. There z - z0 = w^2/2 has a branch point, about which nodes turn by half a
revolution only: it lies in the middle between two nodes of j = 0, so that all coordinates and flows are smooth
functions of i and j over the cut, even in w, and the Jacobian |w|^2 is positive at all nodes. The face between these
two nodes has no area.
"""

from functools import partial

import numpy as np
from numpy.polynomial.chebyshev import chebval

from hiresx.case.wing import WingCH
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Range, Regions
from hiresx.grid.connections import Connection, Grid
from hiresx.grid.diffusion import diffuse
from hiresx.grid.parabolic import Outline, c_grid
from hiresx.grid.spacing import nodes_from_centre

# Half the thickness over s (1 - s^2), s = sqrt(x/c), as a sum of Chebyshev polynomials of 2 s - 1: a fit to the
# ordinates of the ONERA M6 wing along the stream (AGARD AR-138 (1979), B1), sheared by less than 0.00071 chords to a
# closed edge. The fit departs by 0.000065 chords at most, at x = 0.044.
SECTION = (
    0.140774,
    -0.02267,
    0.015243,
    -0.005924,
    -0.00393,
    0.003965,
    -0.00192,
    -0.000759,
    0.000639,
    -0.001462,
    0.000891,
    6e-05,
    -2.5e-05,
    0.000305,
)
# Distances from the middle of the chord, in root chords, between which the influence of planform and sweep decreases to
# zero.
NEAR, FAR = 0.7, 8.0
# Distance from the edge of the wing within which planes of nodes bulge, in root chords.
BULGE = 0.3
# Half thickness in chords at which the edge lies beyond the tip by the half thickness over the root of 2.
ROUND = 0.012
# Length over which a cap is smoothed along the span, over the distance from the section. With 0.5 planes of 1.1 million
# nodes fold at the edge.
SMOOTHING = 0.25


def generate(spec: WingCH) -> Grid:
    """Return a C-H-grid about half a swept wing, one block, with the parameters `spec`, the table [grid] of a case
    file. Lengths are in root chords.

    The index i runs clockwise around the wing as seen from the tip. The index j runs outwards from the wing and the
    wake cut, and the index k along +z from the root. Raises HiresxError for spacings that do not fit the numbers of
    nodes."""
    span = _span(spec)
    whole_section, line = (_planes(spec, span, WingSection(share)) for share in (1.0, 0.0))
    z, share = _tip(spec, span, whole_section[0])
    local = line + share * (whole_section - line)
    leading, chord = _planform(spec, z)
    # 1 near the wing, 0 far away from it
    faded = _decrease(np.log(abs(local - 0.5) / NEAR) / np.log(FAR / NEAR))
    x = leading * faded + (1 + (chord - 1) * faded) * local.real
    y = (1 + (chord - 1) * faded) * local.imag
    nk, nj, ni = x.shape
    along, tip, wake = (0, ni), sum(spec.cells[:2]) + 1, spec.n_wake
    regions: Regions = {
        "wing": (("jmin", ((wake, ni - wake), (0, 1), (0, tip))),),
        "root": (("kmin", (along, (0, nj), (0, 1))),),
        "far-field": (("jmax", (along, (nj - 1, nj), (0, nk))), ("kmax", (along, (0, nj), (nk - 1, nk)))),
        "outflow": (("imin", ((0, 1), (0, nj), (0, nk))), ("imax", ((ni - 1, ni), (0, nj), (0, nk)))),
    }
    # Both sides contain the nodes of the cut, and the layers behind one side are those of the other in reverse order.
    opposite = partial(Connection, matrix=((-1, 0, 0), (0, -1, 0), (0, 0, 1)), offset=(ni - 1, 0, 0))
    sides: list[Range] = [
        ((0, wake), (0, 1), (0, tip)),
        ((ni - wake, ni), (0, 1), (0, tip)),
        ((0, ni // 2), (0, 1), (tip, nk)),
        ((ni // 2, ni), (0, 1), (tip, nk)),
    ]
    cut = [opposite(0, "jmin", side, 0) for side in sides]
    return Grid((Block("wing", x, y, z, regions),), tuple(cut))


class WingSection(Outline):
    """The section of the wing with its thickness multiplied by `share`, from 0 to 1. If `share` is 0, the section is
    the line y = 0 from x = 0 on."""

    def __init__(self, share: float):
        self.share = share
        # The radius of the nose is half the square of the first coefficient of the thickness in s.
        self.focus = complex(0.25 * (share * chebval(-1.0, SECTION)) ** 2)
        self.trailing_edge = float(self.unfold(1 + 0j, 1.0).real)

    def outline(self, s: np.ndarray) -> np.ndarray:
        """Return points x + i y of the wing section and the wake cut, in chords, of the shape of `s`. The parameter s
        is the signed square root of x: s > 0 on the upper side, s < 0 on the lower side, |s| > 1 on the cut."""
        r = np.minimum(np.abs(s), 1.0)
        half = self.share * r * (1 - r * r) * chebval(2 * r - 1, SECTION)
        return np.asarray(s, float) ** 2 + 1j * np.where(np.asarray(s) > 0, half, -half)


def _planes(spec: WingCH, span: np.ndarray, section: WingSection) -> np.ndarray:
    """Return the nodes (nk, nj, ni) about the same section in each plane, in chords."""
    # No wall is there: the first distances from the cut grow as the spacings along the span do.
    beyond = np.maximum(span - _edge(spec), 0) if spec.first_spacing_doubles else np.zeros_like(span)
    distances, which = np.unique(beyond * spec.cells[1] / spec.tip, return_inverse=True)
    found = np.array([_symmetric(c_grid(spec, section, beside)) for beside in distances])
    return found[which]


def _symmetric(nodes: np.ndarray) -> np.ndarray:
    """Return the upper half of the nodes (nj, ni) and its mirror image."""
    half = nodes.shape[1] // 2
    return np.concatenate([nodes[:, : half - 1 : -1].conj(), nodes[:, half:]], axis=1)


def _decrease(s: np.ndarray) -> np.ndarray:
    """Return a smooth decrease from 1 at s = 0 to 0 at s = 1, of the shape of `s`."""
    s = np.clip(s, 0.0, 1.0)
    return np.asarray(1 - s**3 * (10 - 15 * s + 6 * s * s))


def _tip(spec: WingCH, span: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return z and the weight of the nodes about the whole section, both (nk, nj, ni), from the `nodes` (nj, ni) about
    it. The thickness decreases as that of an ellipse where the cap is long, and smoothly where it is short or missing.
    Planes of nodes bulge by the length of the cap near the tip. The weight at other distances from the section is
    smoothed along the span, over a length that is proportional to the distance."""
    on = slice(spec.n_wake, -spec.n_wake)
    distance = abs(nodes - nodes[0])[:, on].mean(axis=1)
    half = abs(nodes[0].imag) * spec.taper
    # Even about the leading edge, where the half thickness has a kink as a function of i, and without slope at the
    # trailing edge.
    cap = spec.cap * half**2 / np.hypot(half, ROUND * spec.taper)
    bulge = _decrease(abs(span - _edge(spec)) / BULGE)[:, None, None] * _decrease(distance / BULGE)[:, None]
    z = span[:, None, None] + cap * bulge
    length = np.hypot(cap, spec.tip)
    inside = np.clip(1 - (_edge(spec) + cap - z[:, 0]) / length, 0, 1)
    sharp = (1 - inside**4) ** 2 if spec.cap else _decrease(inside)
    ends = sharp + cap / length * (np.sqrt(1 - inside**2) - sharp)
    smoothing = SMOOTHING if spec.cap else 1.0
    widths = np.broadcast_to(smoothing * distance[:, None], (len(distance), len(span)))
    return z, np.stack([diffuse(span, column, widths).T for column in ends.T], axis=-1)


def _edge(spec: WingCH) -> float:
    """Return z of the edge of the wing at the trailing edge."""
    return spec.semi_span if spec.cap else spec.semi_span + spec.tip


def _planform(spec: WingCH, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x of the leading edge, and the chord. Both become constant: with a cap over the length `tip` on each side
    of the edge, otherwise over a semi-span beyond it."""
    start, reach = (_edge(spec) - spec.tip, 2 * spec.tip) if spec.cap else (_edge(spec), spec.semi_span)
    s = np.clip((z - start) / reach, 0.0, 1.0)
    # The integral of 1 - s^3 (10 - 15 s + 6 s^2).
    beyond = reach * (s - s**4 * (2.5 - 3 * s + s * s))
    along = np.minimum(z, start) + beyond
    return np.tan(np.radians(spec.sweep)) * along, 1 - (1 - spec.taper) / spec.semi_span * along


def _span(spec: WingCH) -> np.ndarray:
    """Return z (nk,): uniform over the tip, growing from there to both sides, inwards up to a largest spacing."""
    on, over, beyond = spec.cells
    first, inner = spec.tip / over, _edge(spec) - spec.tip
    if first * on >= inner:
        raise HiresxError(
            f"grid.tip = {spec.tip:g} in {over} cells makes spacings of {first:g}, of which {on} are longer than "
            f"grid.semi_span = {spec.semi_span:g}",
            "give more cells over the tip, or fewer on the wing",
        )
    distance = np.linspace(0, inner, 4001)
    free = np.hypot(first, np.log(spec.stretching) * distance)

    def cell_numbers(largest: float) -> np.ndarray:
        rate = (free**-4.0 + largest**-4.0) ** 0.25
        return np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(distance))])

    if cell_numbers(1e9)[-1] > on:
        raise HiresxError(
            f"{on} cells are too few on the wing for spacings that grow by {spec.stretching:g} from {first:g}",
            f"give {int(cell_numbers(1e9)[-1]) + 1} or more as the first of grid.cells, or a larger grid.stretching",
        )
    low, high = 0.5 * inner / on, 1e3 * inner
    for _ in range(100):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if cell_numbers(middle)[-1] > on else (low, middle)
    inwards = np.interp(np.arange(1, on + 1), cell_numbers(high), distance)
    inwards[-1] = inner
    inside = inner - inwards[::-1]
    outwards = nodes_from_centre(beyond, spec.far_field, first, "grid.tip over its cells", "the last of grid.cells")
    over_tip = inner + first * np.arange(over)
    return np.concatenate([inside, over_tip, _edge(spec) + outwards])
