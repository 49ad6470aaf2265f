"""The raw drops, as they came."""
