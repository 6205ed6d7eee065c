"""Files that appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hiresx.errors import HiresxError


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """A file to write into, which becomes `path` when the block ends well. Raises HiresxError where it cannot."""
    name = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            name = file.name
            yield file
            file.flush()
            os.fsync(file.fileno())
            # Temporary files are private; the result gets the permissions of any new file.
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise HiresxError(
                f"{path}: cannot be written: {error.strerror or error}", "choose a directory that can be written to"
            ) from error
        raise
