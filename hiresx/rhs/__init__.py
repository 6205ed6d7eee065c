"""The right-hand side of the equations on one block: metrics, boundary conditions, inviscid and viscous terms, sources.

Its classes choose kernels and arguments. What is computed at a point is in the headers of `kernels/`.
"""
