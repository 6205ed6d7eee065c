"""The groups of checks of `hiresx verify`. The name of a file, with hyphens, is the name of its group."""
