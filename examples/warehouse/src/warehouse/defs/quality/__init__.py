"""What became of the rows that are no good, when there are too many of them, and what rows refer to."""
