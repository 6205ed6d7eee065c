"""Methods of xarray objects of a run under the name `.hiresx`: `tree.hiresx.plot("mach")`, `tree.hiresx.line("y=0")`,
`history.hiresx.plot()`."""

from typing import Any

import numpy as np
import xarray

from hiresx.base.argument_types import check_types
from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.output.fields.derived import VARIABLES
from hiresx.output.show import colours, lines, picture_file

# xarray has no types for registered accessors.
_xarray: Any = xarray
# Largest number of distinguishable curves in one panel.
_CURVES = 10


@_xarray.register_datatree_accessor("hiresx")
class OfTree:
    """The accessor `.hiresx` of an xarray.DataTree with a node for each block (`Run.fields`, `Run.averages`, one time
    of `Run.series`), for pictures and values along lines. `tree`: the tree."""

    def __init__(self, tree: Any):
        self._tree = tree

    @property
    def blocks(self) -> dict[str, Any]:
        """The xarray.Dataset of each block of the grid, by the block's name."""
        return {name: node.to_dataset() for name, node in self._tree.children.items()}

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the flow: index directions in which some block has more than one node."""
        shapes = [tuple(block.sizes[n] for n in "kji") for block in self.blocks.values()]
        return max(sum(n > 1 for n in shape) for shape in shapes)

    def pieces(self, *names: str) -> list[cut.Piece]:
        """Return a list with one dictionary for each block, which maps the coordinates "x", "y", "z" and the variables
        `names` to arrays `[k, j, i]`. Raises HiresxError for a variable that does not exist, and for a tree that holds
        several times, of which the caller must first select one."""
        found = []
        for block in self.blocks.values():
            for name in names:
                if name not in block:
                    there = ", ".join(map(str, block.data_vars))
                    raise HiresxError(f'there is no variable "{name}"', f"there are {there}")
            if "time" in block.dims:
                raise HiresxError("this is a series of times", "select one: tree.isel(time=-1)")
            found.append({name: np.asarray(block[name].values, dtype=float) for name in ("x", "y", "z", *names)})
        return found

    @check_types
    def line(self, where: str, *names: str) -> Any:
        """Return the variables `names` along the straight line `where`, a text such as "y=0" (in three dimensions
        "y=0,z=0", in units of L), as an xarray.Dataset over the coordinate that varies. Values are interpolated
        linearly along grid lines. If the line leaves the grid and enters it again, a NaN separates the two segments. If
        the tree holds averages over index directions (key `average.over`) that vary in one direction only, this profile
        is returned for any line across the averaged directions. Raises HiresxError if the line does not pass through
        the grid."""
        pieces = self.pieces(*names)
        averaged = any(block.attrs.get("averaged_directions") for block in self.blocks.values())
        if averaged and self.dimensions == 1:
            profile = _one_dimension(pieces)
            if not any(f"{along}=" in where.replace(" ", "") for along in profile.sizes):
                return profile
        drawn = lines._along(pieces, self.dimensions, where, self._tree.attrs.get("part", ""))
        along = drawn.along
        block = next(iter(self.blocks.values()))
        text = {"long_name": f"{along} coordinate", "units": "L"}
        held = {name: (along, drawn.values[name], dict(block[name].attrs)) for name in names}
        others = {
            axis: (along, drawn.values[axis], {"units": "L"})
            for axis in "xyz"
            if axis in drawn.values and axis != along
        }
        made = xarray.Dataset(held, {along: (along, drawn.values[along], text), **others}, {"where": where})
        return made.assign_attrs(gaps=[int(n) for n in drawn.gaps])

    @check_types
    def plot(self, *names: str, plane: str | None = None, line: str | None = None) -> tuple[Any, Any]:
        """Plot the variables `names` (default: the first variable) in colours on a plane, or as curves along a line. A
        three-dimensional flow is drawn on `plane`, a text such as "z=0", or on its three mid-planes if `plane` is None.
        If `line` ("y=0") is given, or the flow has one dimension, curves are drawn. Returns a Matplotlib figure and its
        Axes, or an array of Axes if there are several. Raises HiresxError for a variable, plane or line that does not
        exist."""
        picture_file.require_matplotlib()
        names = names or (str(next(iter(next(iter(self.blocks.values())).data_vars))),)
        if line is not None or self.dimensions == 1:
            return _curves(self.line(line, *names) if line else _one_dimension(self.pieces(*names)), names)
        views = colours.views(self.pieces(*names), self.dimensions, plane, self._tree.attrs.get("part", ""))
        with picture_file.style():
            figure = colours.draw(views, list(names))
            time = float(np.asarray(self._tree.coords["time"])) if "time" in self._tree.coords else np.nan
            over = self._tree.attrs.get("averaged_over")
            when = f"averaged over {over:.4g}" if over is not None else f"$t = {time:.4g}\\,L/c_\\mathrm{{ref}}$"
            figure.suptitle(f"{self._tree.attrs.get('title', '')}\n{when}", fontsize=10)
            picture_file.use_length_symbol(figure, self._tree.attrs)
        axes = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
        return figure, axes[0] if len(axes) == 1 else np.array(axes)


@_xarray.register_dataset_accessor("hiresx")
class OfDataset:
    """The accessor `.hiresx` of a dataset, for pictures of a history, of variables along a line, or of one block.
    `held`: the dataset."""

    def __init__(self, held: Any):
        self._held = held

    @check_types
    def plot(self, *names: str) -> tuple[Any, Any]:
        """Plot the variables `names` (default: all). A dataset of one block, with the dimensions k, j, i, is drawn in
        colours; any other one as curves over time or along a line. Returns a Matplotlib figure and its axes."""
        picture_file.require_matplotlib()
        if {"k", "j", "i"} & set(self._held.dims):
            return xarray.DataTree.from_dict({"/block": self._held}).hiresx.plot(*names)
        return _curves(self._held, names or tuple(map(str, self._held.data_vars)))


@_xarray.register_dataarray_accessor("hiresx")
class OfArray:
    """The accessor `.hiresx` of a data array, for the picture of one variable. `values`: the array."""

    def __init__(self, values: Any):
        self._values = values

    def plot(self) -> tuple[Any, Any]:
        """Plot this variable in colours if it is a field over k, j, i, otherwise as curves over time or along a line.
        Returns a Matplotlib figure and its axes."""
        name = str(self._values.name or "values")
        return self._values.to_dataset(name=name).hiresx.plot(name)


def _curves(held: Any, names: tuple[str, ...]) -> tuple[Any, Any]:
    for name in names:
        if name not in held:
            raise HiresxError(f'there is no variable "{name}"', f"there are {', '.join(map(str, held.data_vars))}")
    with picture_file.style():
        figure = picture_file.figure(0.7 + 1.75 * len(names))
        axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for ax, name in zip(axes, names, strict=True):
            values = held[name]
            along = str(values.dims[0])
            over = held[along] if along in held.coords else values[along]
            columns = values.values.reshape(values.shape[0], -1)
            # If there are many places, some at equal distances are drawn; the legend names them.
            chosen = np.unique(np.linspace(0, columns.shape[1] - 1, min(_CURVES, columns.shape[1])).astype(int))
            for n in chosen:
                ax.plot(over, columns[:, n], label=f"place {n}" if columns.shape[1] > 1 else None)
            if columns.shape[1] > 1:
                title = f"{len(chosen)} of {columns.shape[1]} places" if len(chosen) < columns.shape[1] else None
                picture_file.legend_beside(ax, title=title)
            units = values.attrs.get("units", "")
            known = name in VARIABLES or units in ("", "1")
            ax.set_ylabel(picture_file.symbol(name) if known else f"{name} [{picture_file.unit(units)}]")
            ax.margins(x=0)
            ax.grid(lw=0.3, color="0.85")
        axes[-1].set_xlabel(picture_file.TIME if along == "time" else f"${along}/L$" if along in "xyz" else along)
        if held.attrs.get("title"):
            figure.suptitle(f"{held.attrs['title']}\n{held.attrs.get('name', '')}", fontsize=10)
        picture_file.use_length_symbol(figure, held.attrs)
    return figure, axes[0] if len(axes) == 1 else axes


def _one_dimension(pieces: list[cut.Piece]) -> Any:
    joined = {name: np.concatenate([piece[name].ravel() for piece in pieces]) for name in pieces[0]}
    along = max("xyz", key=lambda axis: float(np.ptp(joined[axis])))
    order = np.argsort(joined[along], kind="stable")
    held = {name: (along, values[order]) for name, values in joined.items() if name not in "xyz"}
    return xarray.Dataset(held, {along: (along, joined[along][order])})
