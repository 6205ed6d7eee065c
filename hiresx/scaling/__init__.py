"""How a case scales over ranks: measured, and predicted for machines that are not here."""
