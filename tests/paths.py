"""Where the project lies, and the reference solutions beside it, which a user's clone does not have."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
