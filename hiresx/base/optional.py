"""Optional libraries. A library whose import fails, with any exception, is treated as one that is not installed."""

import importlib
from types import ModuleType

from hiresx.errors import HiresxError


def install_command(extra: str) -> str:
    """Return the shell command by which a user installs the optional libraries called `extra`, a name such as "mpi"
    under [project.optional-dependencies] in pyproject.toml."""
    return f"pip install '.[{extra}]' in the clone of HiresX"


def import_or_none(name: str) -> ModuleType | None:
    """Import and return the module `name`; return None if it is not installed or cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception:
        return None


def import_required(name: str, what: str, hint: str) -> ModuleType:
    """Return the module `name`. Raises HiresxError if it cannot be imported. The error's message begins with `what`,
    such as "plotting needs matplotlib", and says whether the library is missing or broken. `hint`: the hint of the
    error, such as the command that installs the library."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise HiresxError(f"{what}, which {describe_import_error(name, error)}", hint) from None


def describe_import_error(name: str, error: Exception) -> str:
    """Return a description of `error`, which the import or the first use of the module `name` raised, as the end of a
    sentence: "is not installed", or "is installed but broken" with the reason."""
    package = name.partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and error.name == package:
        return "is not installed"
    words = " ".join(str(error).split())[:200]
    return f"is installed but broken ({type(error).__name__}{': ' if words else ''}{words})"
