"""Observation of a run: monitors, their histories, averages, integrals over blocks and faces, positions of probes in
the grid. Uses `saved` and `fields`."""
