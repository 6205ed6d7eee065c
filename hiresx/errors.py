"""The one kind of error a user is meant to read."""


class HiresxError(Exception):
    """Something the user can mend: `message` names the place and the fault, `mend` what to do about it.

    The command line prints both and exits with status 2, without a traceback.
    """

    def __init__(self, message: str, mend: str = ""):
        super().__init__(message)
        self.message = message
        self.mend = mend

    def __str__(self) -> str:
        return f"{self.message}\n  {self.mend}" if self.mend else self.message
