"""Field files: derived variables, selections of the grid, netCDF and VTK files that are written during the run.

`read` reads a field file: `from hiresx.output import fields`."""

from hiresx.output.fields.field_file import read

__all__ = ["read"]
