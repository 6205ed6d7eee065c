"""Field files: derived variables, selections, netCDF and VTK, written during the run. Uses `saved`.

`read` reads a field file: `from hiresx.output import fields`.
"""

from hiresx.output.fields.field_file import read

__all__ = ["read"]
