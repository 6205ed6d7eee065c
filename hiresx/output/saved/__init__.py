"""What is saved: files that are whole or not there, alone or by many ranks; containers, checkpoints, the run's record.

Uses nothing of the other rooms of `hiresx.output`.
"""
