"""What became of the rows that are no good, and what rows refer to."""
