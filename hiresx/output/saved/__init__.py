"""Files that are either complete or absent, written by one process or by many ranks, and their directories; containers,
checkpoints, the record of a run.

Uses nothing of the other packages of `hiresx.output`.
"""
