"""Runs the command line as `python -m hiresx`, the same as `hiresx`."""

from hiresx.cli import main

main()
