"""Observation of a run: monitors, their histories, averages, integrals over blocks and faces, places in the grid. Uses
`saved` and `fields`."""
