"""Starting a run on many ranks: on this machine under mpirun, or by a script for Slurm or PBS.

mpi: the MPI library that mpi4py uses and the mpirun that belongs to it. counts: how many ranks. command: the command
line. job: running it. slurm, pbs: the scripts, from what `batch` gathers.
"""
