"""Whole reports of `hiresx topo`: every word, figure and unit, of recordings of each kind."""

import pytest
import reported
from described_machines import *  # noqa: F403
