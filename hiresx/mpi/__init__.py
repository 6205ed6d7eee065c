"""The processes of a run: their ranks and hosts, from the environment of the launcher, and their communication."""
