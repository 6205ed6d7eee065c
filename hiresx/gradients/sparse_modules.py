"""The modules of SciPy that the adjoint method needs."""

from typing import Any

from hiresx.base import optional


def scipy(part: str) -> Any:
    """Return the module of SciPy called scipy.<part>. Raises HiresxError if SciPy is missing or broken."""
    return optional.import_required(f"scipy.{part}", "adjoint derivatives need SciPy", "pip install 'hiresx[post]'")
