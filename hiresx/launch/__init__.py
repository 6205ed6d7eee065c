"""Starts a run on many ranks: on this machine with mpirun, or with a batch script for Slurm or PBS.

mpi_library: the MPI library that mpi4py uses and its mpirun. counts: the number of ranks. command: the command line.
job: its execution. mpirun_messages: messages of mpirun. batch_script: the parts of a script. slurm, pbs: the scripts.
"""
