"""What fields look like in files: derived variables, selections, netCDF and VTK, written while the run goes on.

Uses `saved`. `read` reads a field file: `from hiresx.output import fields`.
"""

from hiresx.output.fields.field_file import read

__all__ = ["read"]
