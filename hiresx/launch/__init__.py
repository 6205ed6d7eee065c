"""Starting a run on many ranks: on this machine under mpirun, or by a script for Slurm or PBS.

mpi_library: the MPI library that mpi4py uses and its mpirun. counts: the number of ranks. command: the command line.
job: running it. mpirun_messages: messages of mpirun. batch_script: the parts of a script. slurm, pbs: the scripts.
"""
