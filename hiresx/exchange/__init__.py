"""Halo exchange: ghost nodes of the blocks of a rank receive the values of the nodes that they represent, on this rank
or another one.

The solver calls `halo`. `transport` is the interface of all methods of message transfer, and `choice` selects the one
that two ranks use.
"""
