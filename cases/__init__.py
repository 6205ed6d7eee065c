"""The bundled cases: one folder each, with case.toml and, where functions are needed, case.py."""
