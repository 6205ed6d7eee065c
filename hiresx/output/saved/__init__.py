"""What is saved: files that are whole or not there, written alone or by many ranks, and their directories; containers,
checkpoints, the run's record.

Uses nothing of the other rooms of `hiresx.output`.
"""
