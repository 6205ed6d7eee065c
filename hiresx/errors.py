"""The exception for errors whose message is meant for the user."""

import errno
import os
import warnings
from typing import Any


class HiresxError(Exception):
    """An error that the user can correct. `message` names the place and the error, `hint` says what to do about it.

    The command line prints both and exits with status 2, without a traceback.

    `everywhere`: whether all ranks have raised the error, so that they end together. `placed`: whether the message need
    not name the rank, because it already does so or because the rank does not matter.
    """

    everywhere = False
    placed = False

    def __init__(self, message: str, hint: str = ""):
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def mend(self) -> str:
        """The former name of `hint`; it will be removed in the next version."""
        warnings.warn("HiresxError.mend is called hint now", DeprecationWarning, stacklevel=2)
        return self.hint

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


# The message for a process that may open no more files.
FILE_LIMIT, FILE_LIMIT_HINT = "too many files are open", "raise the limit on open files, e.g. ulimit -n 4096"


def is_file_limit(error: BaseException) -> bool:
    """True if the cause of an error, of a system call or of loading a library, is the limit on open files."""
    number = getattr(error, "errno", None)
    return number in (errno.EMFILE, errno.ENFILE) or os.strerror(errno.EMFILE) in error_text(error)


def describe(error: BaseException) -> str:
    """Return the type and the text of an error, even if its method __str__ fails."""
    said = error_text(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def error_text(error: BaseException) -> str:
    """Return the text of an error; "" if its method __str__ fails."""
    try:
        return str(error)
    except BaseException:  # these methods are a user's, and may raise any error
        return ""


def _again(kind: type[HiresxError], args: tuple[Any, ...], attributes: dict[str, Any]) -> HiresxError:
    """Recreate an error that another process has raised."""
    error = kind.__new__(kind, *args)
    error.__dict__ |= attributes
    return error
