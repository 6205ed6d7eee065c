"""Analysis of runs: one verb a file, the same in Python as in `hiresx post`."""
