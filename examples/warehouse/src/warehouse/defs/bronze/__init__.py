"""The raw drops, typed and validated, otherwise as they came."""
