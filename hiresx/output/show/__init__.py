"""Display of results: progress and remaining time of a run, pictures, contents of files, differences between results.
Uses `saved`, `fields` and `watch`; no package that computes uses it."""
