"""The one kind of error a user is meant to read."""

from typing import Any


class HiresxError(Exception):
    """Something the user can mend: `message` names the place and the fault, `mend` what to do about it.

    The command line prints both and exits with status 2, without a traceback.

    `everywhere`: all ranks have it and end together. `placed`: the message says on which rank, or it is no matter.
    """

    everywhere = False
    placed = False

    def __init__(self, message: str, mend: str = ""):
        super().__init__(message)
        self.message = message
        self.mend = mend

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        return f"{self.message}\n  {self.mend}" if self.mend else self.message


def described(error: BaseException) -> str:
    """Kind and text of an error, whatever its own methods do."""
    said = text(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def text(error: BaseException) -> str:
    """The text of an error; empty where its own methods fail."""
    try:
        return str(error)
    except BaseException:  # they are a user's, and may do anything
        return ""


def _again(kind: type[HiresxError], args: tuple[Any, ...], attributes: dict[str, Any]) -> HiresxError:
    """An error that came from another process."""
    error = kind.__new__(kind, *args)
    error.__dict__ |= attributes
    return error
