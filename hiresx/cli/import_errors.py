"""Errors for required libraries that cannot be imported. They name the library, the reason and the command that repairs
the installation."""

import sys
from pathlib import Path

import hiresx
from hiresx.base import optional
from hiresx.base.shell import quote
from hiresx.errors import FILE_LIMIT, FILE_LIMIT_HINT, HiresxError, is_file_limit

HERE = str(Path(hiresx.__file__).parent)


def describe(error: Exception) -> HiresxError | None:
    """Return a HiresxError with a message for the user if `error` was raised by the import of a library that hiresx
    needs. Return None for any other error."""
    if is_file_limit(error):
        return HiresxError(FILE_LIMIT, FILE_LIMIT_HINT)
    name = _missing(error) or _importing(error)
    if name is None:
        return None
    return HiresxError(
        f"hiresx needs {name}, which {optional.describe_import_error(name, error)}",
        f"{quote(sys.executable)} -m pip install --force-reinstall {name}",
    )


def _missing(error: Exception) -> str | None:
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return name if name not in ("", "hiresx", "topology", "kernels") else None


def _importing(error: Exception) -> str | None:
    """Return the innermost package whose module was being executed when `error` was raised."""
    found, frame = None, error.__traceback__
    while frame is not None:
        code, names = frame.tb_frame.f_code, frame.tb_frame.f_globals
        if code.co_filename.startswith(HERE):
            found = None
        elif code.co_name == "<module>":
            found = str(names.get("__name__", "")).partition(".")[0] or None
        frame = frame.tb_next
    if found is None and isinstance(error, ImportError):  # a compiled module has no frame
        found = (error.name or "").partition(".")[0] or None
    return found if found not in ("__main__", "hiresx") else None
