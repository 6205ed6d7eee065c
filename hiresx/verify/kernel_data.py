"""Arguments for every kernel: smooth states with a jump, metrics of a nearly uniform grid, one block with ghosts."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from hiresx.device.arguments import is_pointer
from hiresx.equations.stencil import stencil
from hiresx.kernels import Signature, choices

# A block of 17 x 7 x 7 nodes with the ghost layers of the widest interpolation on all sides, index order [k, j, i]. It
# has as many nodes along j as along k, since some kernels take columns along j, others along k.
SIZE, HALO = (17, 7, 7), max(stencil(name).halo for name in choices("interpolation"))
SHAPE = tuple(n + 2 * HALO for n in reversed(SIZE))
STRIDES = (1, SHAPE[2], SHAPE[1] * SHAPE[2])
ORIGIN = HALO * sum(STRIDES)
VARIABLES = 40  # more than any padded array of a kernel, and enough for the averages of nodes without ghosts
FACE = (SIZE[0], SIZE[1], 1)  # face kmin: s1, s2 along i, j, and sn along k

INTEGERS = {
    **dict.fromkeys(("o", "c"), ORIGIN),
    **dict.fromkeys(("sd", "di", "s1"), STRIDES[0]),
    **dict.fromkeys(("sj", "cj", "dj", "s2"), STRIDES[1]),
    **dict.fromkeys(("sk", "ck", "dk", "sn"), STRIDES[2]),
    **dict.fromkeys(("sv", "source_sv", "target_sv"), SHAPE[0] * STRIDES[2]),
    **dict.fromkeys(("n", "n1", "width"), SIZE[0]),
    **dict.fromkeys(("wi", "wj"), 6),
    "rows": 3,
    **dict.fromkeys(("n2", "height", "nodes"), SIZE[1]),
    **{
        "columns": SIZE[0] * max(SIZE[1:]),
        "count": SIZE[0] * SIZE[1] * SIZE[2],
        "threads": 5,
        "directions": 3,
        "active": 7,
    },
    "variables": 4,
    **dict(zip(("nodes_i", "nodes_j", "nodes_k"), SIZE, strict=True)),
}
# Kernels that process lines in chunks: along k those across i.
LINES = {
    "sweep_along": {"n": SIZE[0], "rows": SIZE[1], "chunk": 50},
    "sweep_across": {"n": SIZE[2], "chunk": 3, "s2": STRIDES[1], "sd": STRIDES[2]},
    # along i and k in 4 x 2 lanes
    "average_lines": {
        "width": 4, "height": SIZE[1], "depth": 2, "end_i": SIZE[0], "end_j": SIZE[1], "end_k": SIZE[2],
        "count": 8 * SIZE[1],
    },
    "merge_averages": {
        "width": 1, "height": SIZE[1], "count": SIZE[1], "lane_width": 4, "lane_height": SIZE[1],
        "lane_count": 8 * SIZE[1], "across_i": 4, "across_k": 2,
    },
}  # fmt: skip
# Kernels of segments for all three directions, or along k: segments that are listed, or all lines if they are more than
# the limit.
NODES = SIZE[0] * SIZE[1] * SIZE[2]
SEGMENTS = {
    "list_segments": {
        "share": 2, "directions": 0b111, "corner": ORIGIN, "n0": SIZE[0], "n1": SIZE[1], "n2": SIZE[2],
        "counts": np.zeros(3, np.int32), "segments": np.zeros((3 * NODES, 2), np.int32), "start_0": 0,
        "start_1": NODES, "start_2": 2 * NODES,
    },
    "sweep_segments": {
        "corner": ORIGIN, "lines": SIZE[0] * SIZE[1], "n": SIZE[2], "chunk": 3, "sd": STRIDES[2],
        "count": np.array([2], np.int32), "segments": np.array([ORIGIN, SIZE[2], ORIGIN + 1, 3], np.int32),
    },
    "sweep_all_along": {
        "warps": 3, "corner": ORIGIN, "rows": SIZE[1], "planes": SIZE[2], "chunk": 50, "count": np.array([2], np.int32),
    },
}  # fmt: skip
# Arguments of the exchange by signals.
SIGNALLED = {
    "offer_radii": {"few": np.array([5], np.int32), "blocks": 1},
    "offer_sums": {
        "rows": 2, "quantities": 3, "terms": 5, "group_of_row": np.array([0, 1], np.int32), "values": 6
    },
}  # fmt: skip
# Waves on a face: the results of the points are independent.
SUMMED = {"points": SIZE[0], "terms": 3, "waving": 0b10111, "apart": SHAPE[0] * STRIDES[2]}
WAVES = {"wave_weights": {"frequencies": SIZE[0]}, "gas_waves": SUMMED, "scalar_waves": SUMMED}
# Points between the lattice planes 0 and 2 along each axis, and the eddies around them.
BOX = {"n": SIZE[0], "planes": 6, "rows": 4, "columns": 4, "first1": -1, "first2": -1}
EDDIES = {"place_eddies": BOX, "synthetic_eddies": BOX}
# Chains of multiply-adds: round-off of one iteration decays over a thousand iterations, so that more iterations sum up
# more of it.
CHAINS = {"multiply_adds": {"count": 10}}
# One box of two facets, and nodes near them that are displaced a little.
BOXES = {
    "wall_distance": {
        "points": SIZE[0] * SIZE[1] * SIZE[2],
        "skip": np.array([1], np.int32),
        "leaves": np.array([0, 2], np.int32),
        "motion": np.append(np.eye(3), [0.1, -0.1, 0.2]),
    }
}
# A box of ghosts of a tile: two layers along i, of two by four ghosts that read six by seven nodes.
LEVELS: dict[str, dict[str, Any]] = {
    f"level_{kind}shares": {
        "n": 2 * 6 * 7,
        "columns": 4,
        "start": np.array([0, 0, 1, 1], np.int32),
        "box": np.array([0, 0, *STRIDES, ORIGIN, 0, 1, 0, 4, 2, 0, 0, 7, 6, 0, 0], np.int32),
    }
    for kind in ("", "flux_", "field_")
}
# Faces in three dimensions: a node, the four behind it and seven along each tangent. Numbers of the nodes of a wall, in
# the list of all nodes and in the wall.
_PLACES = np.int32(ORIGIN) + np.random.default_rng(3).permutation(19 * SIZE[0]).astype(np.int32)
_OF_WALL = {
    name: np.random.default_rng(seed).permutation(SIZE[0]).astype(np.int32)
    for seed, name in enumerate(("mine", "of_wall"))
}
WATCHED: dict[str, dict[str, Any]] = {
    "face_flow": {
        "start": 0, "count": SIZE[0], "tangents": 2, "viscous": 1, "mirror": np.arange(SIZE[0], dtype=np.int32) % 2,
        "places": _PLACES,
    },
    "face_flux_sums": {"chunks": SIZE[0]},
    "face_force_sums": {"chunks": SIZE[0]},
    "face_velocity": {"count": SIZE[0], "places": _PLACES, **_OF_WALL},
    "face_of_wall": {"count": SIZE[0], "own": SIZE[0], **_OF_WALL},
}  # fmt: skip
# Two boxes, of 4 x 5 x 2 and 3 x 2 x 2 nodes: rows of `list_box` in kernels/level_ghosts.h. The first one fills every
# second of 80 places, the other one the next 12. A point sets 32 entries.
FILLED = {
    "fill_lists": {
        "boxes": 2, "entries": 40 + 12,
        "box": np.array([0, 0, 2, ORIGIN, 4, 5, *STRIDES, 40, 80, 1, ORIGIN + 2, 3, 2, *STRIDES], np.int32),
    }
}  # fmt: skip
# Columns in two pieces, and the remainder of them.
TWO: dict[str, Any] = {"height": 4, "rows": SIZE[2], "columns": 2 * SIZE[0] * SIZE[2]}
PIECES = dict.fromkeys(("column_totals", "column_energy", "column_extrema", "column_places"), TWO) | {
    "extreme_bounds": {"parts": 2, "counts": np.array([32, 5], np.int32)},
    "least_numbers": {"columns": TWO["columns"], "rows": SIZE[2], "nowhere": 1e6},
}
COUNTS = (3, 2, 1)
NUMBERS = {"direction": 1.0, "sign": -1.0}
EXTENTS = {
    **dict.fromkeys(("column_norms", "column_radii", "axisymmetric_radii", "least_jacobian"), (SIZE[0], SIZE[1], 1)),
    **dict.fromkeys(PIECES, (SIZE[0], 2, SIZE[2])),
    **{"extreme_bounds": (7, 1, 1), "least_numbers": (5, 14, 1)},
    **dict.fromkeys(("copy_halo", "pack_halo", "unpack_halo", "rotate_vectors"), (SIZE[0], 1, 1)),
    **dict.fromkeys(("pack_signalled_halo", "unpack_signalled_halo", "rotate_signalled_vectors"), (SIZE[0], 1, 1)),
    # every row writes to the same places
    **dict.fromkeys(("multiply_adds", "wave_weights", "gas_waves", "scalar_waves", "wall_edge"), (SIZE[0], 1, 1)),
    **{"place_eddies": (4, 4, 6), "synthetic_eddies": (SIZE[0], 1, 1)},
    **{"offer_radii": (1, 1, 1), "offer_sums": (6, 1, 1)},
    **{
        "column_mass_flow": (SIZE[0], 1, SIZE[2]),
        "sum_columns": (5, 2, 1),
        "keep_mass_flow": (1, 1, 1),
    },
    **{"choose_step": (1, 1, 1), "sum_reals": (5, 2, 1)},
    **{"outflow_rates": (SIZE[0], 1, 1), "outflow_sums": (5, 2, 1), "outflow_means": (10, 3, 1)},
    **dict.fromkeys(("patched_state", "patched_flux", "patched_field"), (SIZE[0], 1, 1)),
    "interpolated_values": (SIZE[0], 5, 1),  # of the gas variables
    **dict.fromkeys(LEVELS, (2 * 2 * 4, 1, 1)),
    **dict.fromkeys(("level_sums", "level_parts", "level_ends", "level_states"), (SIZE[0], 1, 1)),
    "scalar_held": FACE,
    # three places for each of the second ones
    **{"mirrored_ghosts": (SIZE[0], 1, 1), "curved_ghosts": (SIZE[0] // 3, 1, 1)},
    **dict.fromkeys(("filter_state", "filter_sample", "filter_rest"), (SIZE[0], 1, 1)),
    **dict.fromkeys(WATCHED, (SIZE[0], 1, 1)),
    "reduce": (5, 7, 1),
    **{"list_segments": (5, 1, 1), "sweep_segments": (5, 1, 1), "sweep_all_along": (3, 1, 1)},
    "fill_lists": (2, 1, 1),
    **{"average_lines": (4, SIZE[1], 2), "merge_averages": (1, SIZE[1], 1)},
    **{"sweep_along": (4, 1, SIZE[2]), "sweep_across": (*SIZE[:2], 3)},
}
# Arguments that switch between variants of a kernel: all their values are tested.
SWITCHES = {
    "first": (0, 1),
    "how": (0, 1, 2),
    "degree": (1, 2, 3),
    "dt_stride": (0, 1),
    "reference_stride": (0, 1),
    "rated": (0, 1),
    "keep": (0, 1),
    "leaning": (0, 1),
    "mirrored": (0, 1),
    "walls": (0, 3),
    "weighted": (0, 1),
    "wk": (1, 6),
    "temperature": (0.0, 0.9),
    "curved": (0, 1),
    "takers": (1, 3),
    "kinds": (3, 7, 11),
    "criterion": (0, 1, 2),
    "before": (0.0, 3.0),
    "limit": (0, 2),
}
# Optional arrays that another argument requires: they are always present.
ASKED_FOR = {"sums", "left", "w", "factors", "slopes"}
# Lists of an outflow: two patches of 17 nodes together, on two sides; three patches of two faces.
LISTS = {"ends": (0, 9, SIZE[0]), "sides": (5, 0), "face_of_row": (0, 1, 1), "face_of_patch": (0, 1, 1)}
STATES = {"q", "q0", "minus", "plus", "state", "target", "reference"}
# Kernels whose states have no jump: they interpolate, and not every set of choices keeps states positive.
SMOOTH = {"wall_edge"}


def extent(signature: Signature) -> tuple[int, int, int]:
    """Return the numbers of points (ni, nj, nk) over which the kernel of `signature` is launched in the comparison of
    backends."""
    on_face = any(name == "sn" for _, name in signature.arguments)
    return EXTENTS.get(signature.name, FACE if on_face else SIZE)


def variants(signature: Signature, real: str) -> Iterator[dict[str, Any]]:
    """Yield test arguments of the kernel with this `signature`, as dictionaries from the name of the parameter to a
    number or an array: one for each combination of the values of its integer switches, with and without each optional
    array. The numbers are the same at every call. Kernels that read memory of other processes have no variants. `real`:
    NumPy's name of the floating-point type."""
    if any(kind == "const long long *" and name != "count" for kind, name in signature.arguments):
        return
    switches = [name for kind, name in signature.arguments if name in SWITCHES and not is_pointer(kind)]
    optional = sorted(signature.optional - ASKED_FOR)
    for values, left_out in product(product(*(SWITCHES[name] for name in switches)), _subsets(optional)):
        tables: Sequence[Mapping[str, Mapping[str, Any]]] = (
            LINES, SEGMENTS, SIGNALLED, WAVES, EDDIES, CHAINS, BOXES, LEVELS, WATCHED, FILLED, PIECES,
        )  # fmt: skip
        given = next((dict(some[signature.name]) for some in tables if signature.name in some), dict[str, Any]())
        chosen = given | dict(zip(switches, values, strict=True)) | dict.fromkeys(left_out)
        rng = np.random.default_rng(7)
        yield {
            name: chosen[name] if name in chosen else _argument(kind, name, rng, real, signature.name not in SMOOTH)
            for kind, name in signature.arguments
        }


def _subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [some for count in range(len(names) + 1) for some in combinations(names, count)]


def _argument(kind: str, name: str, rng: np.random.Generator, real: str, jump: bool) -> Any:
    if kind in ("int", "long long"):
        return INTEGERS.get(name, 1)
    if not kind.endswith("*"):
        return NUMBERS.get(name, 0.3)
    if name == "faces":  # of 17 nodes: up to three faces of patch 0 each
        return np.where(rng.random((3, SIZE[0])) < 0.7, [[0], [3], [4]], -1).astype(np.int32)
    if name == "begin":  # two rows for each of 17 ghosts
        return np.arange(0, 2 * SIZE[0] + 1, 2, dtype=np.int32)
    if name == "exchange":  # nodes before those of the wall
        return rng.integers(1, 4, SIZE[0] * SIZE[1]).astype(np.int32)
    if name == "inward":  # from the face to the next layer, along the normal or also along i
        return rng.choice([STRIDES[2], STRIDES[2] + STRIDES[0]], SIZE[0] * SIZE[1]).astype(np.int32)
    if name == "which":  # of three matrices, or none
        return rng.integers(-1, 3, SIZE[0] * SIZE[1]).astype(np.int32)
    if "mark" in kind:
        return (rng.random(SHAPE) < 0.3).astype(np.int8)
    if "long long" in kind:
        return np.array(COUNTS, np.int64)
    if name in LISTS:
        return np.array(LISTS[name], np.int32)
    if "int" in kind:
        return (ORIGIN + rng.permutation(SIZE[0] * SIZE[1])).astype(np.int32)
    k, j, i = np.indices(SHAPE)
    phase = rng.uniform(0, 2 * np.pi, (VARIABLES, 1, 1, 1))
    variation = 0.1 * np.sin(0.5 * i + 0.4 * j + 0.3 * k + phase) + rng.uniform(-0.02, 0.02, (VARIABLES, *SHAPE))
    if name in "xyz":
        values = np.stack([{"x": i, "y": j, "z": k}[name]] * VARIABLES) + variation
    elif name == "reach":  # of a filter
        values = rng.integers(-2, 4, (VARIABLES, *SHAPE))
    elif name == "m":
        values = np.resize(np.eye(3).ravel(), VARIABLES)[:, None, None, None] + variation
    elif name in STATES:
        # A shock that crosses the lines of all three directions: density times 3, energy times 8.
        behind = (2 * i + 3 * j + 2 * k > 40) & jump
        state = np.resize([1.0, 0.2, 0.3, -0.1, 2.5], VARIABLES)[:, None, None, None] * (1 + variation)
        values = np.where(behind, np.resize([3.0, 3.0, 3.0, 3.0, 8.0], VARIABLES)[:, None, None, None], 1.0) * state
    else:
        values = (2 if name == "geometry" else 1) + variation
    plain = {"double": "float64", "float": "float32"}.get(kind.removeprefix("const ").removesuffix(" *"), real)
    return np.ascontiguousarray(values.astype(plain))
