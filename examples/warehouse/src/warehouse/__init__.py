"""A Dagster project on the flights that left New York City in 2013."""
