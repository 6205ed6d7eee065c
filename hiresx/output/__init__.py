"""The output of a run, in four packages. Each imports only those before it: `saved`, `fields`, `watch`, `show`."""
