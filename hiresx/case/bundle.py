"""The cases that come with the package: `cases/<name>/case.toml`, with `case.py` where functions are needed."""

import os
import shutil
from pathlib import Path

from hiresx.errors import HiresxError


def root() -> Path:
    """Return the folder that contains the folders of the cases that come with the package."""
    import hiresx.cases

    return Path(hiresx.cases.__file__).parent


def bundled_cases() -> list[str]:
    """Return the names of the cases that come with the package, sorted."""
    return sorted(path.parent.name for path in root().glob("*/case.toml"))


def is_bundled(name: str) -> bool:
    """Return whether a case `name` comes with the package."""
    return os.path.basename(name) == name and os.path.isfile(root() / name / "case.toml")


def bundled_directory(name: str) -> Path:
    """Return the folder of the case `name` that comes with the package. Raises HiresxError if there is no such case;
    the error's hint has the most similar name."""
    if not is_bundled(name):
        from hiresx.case.error_messages import did_you_mean

        raise HiresxError(f'no bundled case "{name}"', did_you_mean(name, bundled_cases(), "bundled cases"))
    return root() / name


def copy_bundled(name: str, target: str | Path) -> Path:
    """Copy the case `name` that comes with the package into the new folder `target`, and return `target`. Raises
    HiresxError if there is no such case, or if the folder exists and is not empty, or cannot be written."""
    source, target = bundled_directory(name), Path(target)
    if os.path.exists(target) and (not target.is_dir() or any(target.iterdir())):
        raise HiresxError(f"{target}: exists already", "name a folder that does not, or remove this one")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path in sorted(source.iterdir()):
            if path.is_file():
                # Only the contents are copied, not the permissions: an installed package may be read-only, and the copy
                # is made to be edited.
                shutil.copyfile(path, target / path.name)
    except OSError as error:
        raise HiresxError(f"{target}: cannot be written: {error.strerror}", "choose another folder") from None
    return target
