"""Halo exchange: the ghost nodes of a rank's blocks are filled from those to which they belong, on this rank or others.

`halo` is what the solver calls, `transport` the interface of all ways in which messages are moved, and `choice` decides
which of them serves two ranks.
"""
