"""Field files as trees of xarray: one dataset for each block, over (time,) k, j, i. Values are only read when they are
used."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.device.averaging import MOMENTS
from hiresx.errors import HiresxError
from hiresx.output.fields import derived, field_file
from hiresx.output.fields.field_reader import AXES, attribute, open_file
from hiresx.output.fields.field_reader import variables as stored_variables
from hiresx.output.watch.averages import OVER
from hiresx.results import lasting_blocks, needs
from hiresx.results.block_tree import block_tree
from hiresx.results.stored import ComputedArray, StoredVariable, lazy

INDEXES = ("k", "j", "i")
_NUMBERS = {
    "time": {"long_name": "time", "units": "L / c_ref"},
    "step": {"long_name": "time steps taken", "units": "1"},
}


def fields(
    paths: Sequence[Path],
    variables: Iterable[str] | None = None,
    series: bool = False,
    blocks: Iterable[str] | None = None,
) -> Any:
    """Return the field files `paths` as an xarray.DataTree with a node for each block: `variables` (default: the stored
    ones) and the coordinates x, y, z over k, j, i. If `series` is true, variables have the first dimension time, and
    the coordinates are those of the first file; otherwise only the first file is read. `blocks`: names of the blocks to
    read from a series; default: all. With levels of refinement the node of a block has the attributes `level`, `of`
    (name of the unrefined block in which it lies), and `first` (indexes i, j, k of its first node in that block, if the
    nodes are counted with the spacing of `level`).

    `variables` may name any variable of `hiresx.output.fields.derived` that follows from stored ones. Raises
    HiresxError for other variables, and for files of different blocks."""
    xarray = needs.xarray()
    first = field_file.describe(paths[0])
    about = [field_file.describe(path) for path in paths] if series else [first]
    taken = lasting_blocks.choose_blocks(paths, about, first["case"], blocks) if series else list(first["blocks"])
    names = list(first["variables"] if variables is None else variables)
    field_file.check_variables(names, first, f"{paths[0]}: ")
    lacking = [name for name in derived.PRIMITIVE if name not in first["variables"]]
    if lacking and (following := [name for name in names if name not in first["variables"]]):
        raise HiresxError(
            f"{paths[0]}: {following[0]} follows from rho, u, v, w, p, of which {', '.join(lacking)} are not stored",
            f"there are {', '.join(first['variables'])}",
        )
    gamma, dimensions = first["case"]["gas"]["gamma"], (("time",) if series else ()) + INDEXES
    moments = {key: np.array([a[key] for a in about]) if series else first[key] for key in ("time", "step")}
    over = ("time",) if series else ()
    clock = {key: xarray.Variable(over, moments[key], _NUMBERS[key]) for key in moments}
    nodes = {}
    for block in taken:
        shape, held = first["blocks"][block], {}
        for name in names:
            kind = np.dtype("f4" if first["precision"] == "fp32" and name in first["variables"] else "f8")
            source = StoredVariable(tuple(paths), block, name, shape, kind, gamma, series)
            held[name] = xarray.Variable(dimensions, lazy(source), _about(name))
        attributes = dict(zip(("level", "of", "first"), first["levels"].get(block, ()), strict=False))
        nodes[f"/{block}"] = xarray.Dataset(held, {**_places(paths[0], block, shape, gamma), **clock}, attributes)
    root = {**_case_attributes(first), "part": first["part"], "gamma": gamma, "file": str(paths[0])}
    return block_tree().from_dict({"/": xarray.Dataset(coords=clock, attrs=root), **nodes})


def _case_attributes(about: dict[str, Any]) -> dict[str, str]:
    """Return title and symbol of the length in the case of a field file."""
    return {"title": about["case"].get("title", ""), "length_symbol": about["case"].get("length_symbol", "L")}


def averages(path: Path) -> Any:
    """Return the time averages in the file `path` (averages.nc) as an xarray.DataTree with a node for each block: the
    means, variables derived from the means (such as `mach`), root mean squares `rms_<name>`, second moments such as
    `u_v`, and `tke` = (u_u + v_v + w_w) / 2. The child nodes `reynolds` and `favre` have the stored averages. If the
    run has averaged over index directions (key `average.over`), arrays have one node along these directions, and the
    attribute `averaged_directions` of a block gives for each of them the step between the averaged nodes and their
    number. Raises HiresxError if the file is missing or damaged."""
    xarray = needs.xarray()
    about = field_file.describe(path)
    gamma = about["case"]["gas"]["gamma"]
    with open_file(path) as blocks:
        over = float(blocks.file["averaged_over"][()])
        lines = json.loads(attribute(blocks.file, OVER) or "{}")
        attributes = {
            (block, kind, name): {key: attribute(part[name], key) for key in ("long_name", "units")}
            for block in blocks.names
            for kind, part in blocks.file[block].items()
            if hasattr(part, "keys")
            for name in stored_variables(part)
        }
    clock = {key: xarray.Variable((), about[key], _NUMBERS[key]) for key in ("time", "step")}
    nodes: dict[str, Any] = {}
    for block, shape in about["blocks"].items():
        places = {**_places(path, block, shape, gamma), **clock}
        held = {}

        def source(name: str, block: str = block, shape: tuple[int, int, int] = shape) -> StoredVariable:
            return StoredVariable((path,), block, name, shape, np.dtype("f8"), gamma)

        for name in (name for name, entry in derived.VARIABLES.items() if entry.local):
            text = _about(name)
            text["long_name"] = f"{'mean ' if name in about['variables'] else 'of the means: '}{text['long_name']}"
            held[name] = xarray.Variable(INDEXES, lazy(source(name)), text)
        kinds = {kind for at, kind, _ in attributes if at == block}
        for kind in kinds:
            part = {
                name: xarray.Variable(INDEXES, lazy(source(f"{kind}/{name}")), text)
                for (at, of, name), text in attributes.items()
                if (at, of) == (block, kind)
            }
            nodes[f"/{block}/{kind}"] = xarray.Dataset(part, places)
        if first := next((kind for kind in MOMENTS if kind in kinds), None):
            held |= _moments(source, first, nodes[f"/{block}/{first}"])
        nodes[f"/{block}"] = xarray.Dataset(held, places, {"averaged_directions": lines.get(block, {})})
    root = {**_case_attributes(about), "part": "", "gamma": gamma, "file": str(path)}
    root["averaged_over"] = over
    return block_tree().from_dict({"/": xarray.Dataset(coords=clock, attrs=root), **nodes})


def _moments(source: Callable[[str], StoredVariable], kind: str, stored: Any) -> dict[str, Any]:
    """Return the second moments, root mean squares and the turbulent kinetic energy of a block. `source`: provides its
    variables. `stored`: its dataset of this `kind`."""
    xarray = needs.xarray()
    found = {}
    for name in MOMENTS[kind]:
        found[name] = stored[name].variable
        one, _, other = name.partition("_")
        if one == other:
            entry = derived.about(one)
            text = {"long_name": f"root mean square of the fluctuations of {entry.long_name} ({kind})"}
            # Round-off may make a variance of zero negative.
            rms = ComputedArray(lambda v: np.sqrt(np.maximum(v, 0.0)), (source(f"{kind}/{name}"),))
            found[f"rms_{one}"] = xarray.Variable(INDEXES, lazy(rms), text | {"units": entry.scale})
    energy = ComputedArray(lambda *v: 0.5 * sum(v), tuple(source(f"{kind}/{name}") for name in ("u_u", "v_v", "w_w")))
    text = {"long_name": f"kinetic energy of the fluctuations per mass ({kind})", "units": "c_ref^2"}
    found["tke"] = xarray.Variable(INDEXES, lazy(energy), text)
    return found


def _places(path: Path, block: str, shape: tuple[int, int, int], gamma: float) -> dict[str, Any]:
    xarray = needs.xarray()
    return {
        axis: xarray.Variable(
            INDEXES,
            lazy(StoredVariable((path,), block, axis, shape, np.dtype("f8"), gamma)),
            {"long_name": f"{axis} coordinate of the nodes", "units": "L"},
        )
        for axis in AXES
    }


def _about(name: str) -> dict[str, str]:
    entry = derived.about(name)
    return {"long_name": entry.long_name, "units": entry.scale, "symbol": entry.symbol}
