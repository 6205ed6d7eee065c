"""Tools that know nothing of flows: array types, signals, threads, notes to the user, optional libraries, texts."""
