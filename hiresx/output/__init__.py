"""What a run shows and leaves behind: progress, fields, derived variables, the run record, pictures."""
