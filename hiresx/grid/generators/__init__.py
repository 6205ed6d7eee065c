"""Grid generators: one file each, `<name>.py` for `generator = "<name>"` (with `-` for `_`)."""
