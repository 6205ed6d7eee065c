"""Scaling of a case with the number of ranks: measured on this machine, and predicted for other machines."""
