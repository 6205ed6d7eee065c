"""Tools that do not depend on fluid dynamics: array types, signals, threads, notes to the user, optional libraries,
texts."""
