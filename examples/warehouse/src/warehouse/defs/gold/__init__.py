"""Tables that answer questions."""
