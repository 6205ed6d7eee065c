"""Files that are either complete or absent, written by one process or by many ranks; directories of runs, checkpoints
and the record of a run. Uses nothing of the other packages of `hiresx.output`."""
