"""What became of the rows that are no good, and when there are too many of them."""
