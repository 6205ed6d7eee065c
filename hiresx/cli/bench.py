"""`hiresx bench`: what the kernels and the right-hand side cost here."""

from hiresx.cli import options, terminal


def bench(backend: options.Backend = "auto", json: options.Json = False) -> int:
    """Time the kernels and the right-hand side on this machine."""
    with terminal.only_json(json):
        from hiresx import bench as measurements

        result = measurements.run(backend=backend)
    if json:
        terminal.print_json(result)
    else:
        terminal.mapping("Measured", result)
    return 0
