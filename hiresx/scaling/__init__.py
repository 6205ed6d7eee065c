"""Scaling of a case over ranks: measured, and predicted for other machines."""
