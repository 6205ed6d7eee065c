"""CGNS files for tests, written node by node as the HDF5 file mapping has it; nothing of the reader is used."""

import h5py
import numpy as np

TYPES = {"float32": "R4", "float64": "R8", "int32": "I4", "int64": "I8", "int8": "C1"}


def text(value: str, length: int) -> np.bytes_:
    return np.array(value.encode(), dtype=f"S{length}")


def characters(value: str) -> np.ndarray:
    return np.frombuffer(value.encode(), dtype=np.int8)


def node(parent, name: str, label: str, data=None):
    """A node below `parent`; `data` as h5py shows it, that is with the dimensions of Fortran reversed."""
    group = parent.create_group(name, track_order=True)
    if isinstance(data, str):
        data = characters(data)
    kind = "MT" if data is None else TYPES[np.asarray(data).dtype.name]
    for key, value, length in (("name", name, 33), ("label", label, 33), ("type", kind, 3)):
        group.attrs.create(key, text(value, length))
    group.attrs.create("flags", np.array([1], np.int32))
    if data is not None:
        group.create_dataset(" data", data=data)
    return group


def begin(path):
    """An empty file with its root."""
    file = h5py.File(path, "w", track_order=True)
    for key, value, length in (
        ("name", "HDF5 MotherNode", 33), ("label", "Root Node of HDF5 File", 33), ("type", "MT", 3)
    ):  # fmt: skip
        file.attrs.create(key, text(value, length))
    file.create_dataset(" format", data=characters("IEEE_LITTLE_32"))
    file.create_dataset(" hdf5version", data=characters("HDF5 Version 1.10.0".ljust(33, "\0")))
    node(file, "CGNSLibraryVersion", "CGNSLibraryVersion_t", np.array([4.2], np.float32))
    return file


def base(file, dimensions: int, physical: int = 3):
    return node(file, "Base", "CGNSBase_t", np.array([dimensions, physical], np.int32))


def zone(parent, block, name: str, dimensions: int, physical: int = 3, real="f8"):
    """A zone of the nodes of `block`."""
    size = np.array(block.size[:dimensions])
    sizes = np.stack([size, size - 1, 0 * size]).astype(np.int32)
    made = node(parent, name, "Zone_t", sizes)
    node(made, "ZoneType", "ZoneType_t", "Structured")
    grid = node(made, "GridCoordinates", "GridCoordinates_t")
    for axis in "XYZ"[:physical]:
        array = getattr(block, axis.lower()).astype(real)
        node(grid, f"Coordinate{axis}", "DataArray_t", array[0] if dimensions == 2 else array)
    return made


def units(parent, length: str | None = None, kind: str | None = None):
    """DimensionalUnits_t with a unit of length, and DataClass_t, below a node."""
    if length is not None:
        names = "".join(name.ljust(32) for name in ("Kilogram", length, "Second", "Kelvin", "Radian"))
        node(parent, "DimensionalUnits", "DimensionalUnits_t", characters(names).reshape(5, 32))
    if kind is not None:
        node(parent, "DataClass", "DataClass_t", kind)


def holder(parent, name: str, label: str):
    return parent[name] if name in parent else node(parent, name, label)


def index_range(parent, name: str, begin, end):
    node(parent, name, "IndexRange_t", np.array([begin, end], np.int32))


def one_to_one(made, name: str, donor: str, own, other, transform=None, periodic=None):
    """A GridConnectivity1to1_t; `own` and `other`: (begin, end), which count from 1."""
    joins = holder(made, "ZoneGridConnectivity", "ZoneGridConnectivity_t")
    join = node(joins, name, "GridConnectivity1to1_t", donor)
    index_range(join, "PointRange", *own)
    index_range(join, "PointRangeDonor", *other)
    if transform is not None:
        node(join, "Transform", '"int[IndexDimension]"', np.array(transform, np.int32))
    if periodic is not None:
        properties = node(join, "GridConnectivityProperty", "GridConnectivityProperty_t")
        held = node(properties, "Periodic", "Periodic_t")
        for key, value in periodic.items():
            node(held, key, "DataArray_t", np.asarray(value))
    return join


def condition(made, name: str, kind: str, begin, end, family: str | None = None, location: str | None = None):
    """A BC_t given by a PointRange."""
    patch = node(holder(made, "ZoneBC", "ZoneBC_t"), name, "BC_t", kind)
    index_range(patch, "PointRange", begin, end)
    if family is not None:
        node(patch, "FamilyName", "FamilyName_t", family)
    if location is not None:
        node(patch, "GridLocation", "GridLocation_t", location)
    return patch
