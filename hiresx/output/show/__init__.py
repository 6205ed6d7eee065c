"""Display: progress and remaining time, pictures, contents of files, differences between results. Uses `saved`,
`fields` and `watch`; no package that computes uses it."""
