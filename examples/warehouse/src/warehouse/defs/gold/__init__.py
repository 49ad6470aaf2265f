"""Tables that answer questions, in one DuckDB file."""
