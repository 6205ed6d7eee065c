"""Time integration: explicit and implicit schemes, the size of a step, and the solvers of equations that they use.

Each file of `integrators` is a choice of `time.integrator`.
"""
