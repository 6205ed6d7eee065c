"""`python -m hiresx` is `hiresx`."""

from hiresx.cli import main

main()
