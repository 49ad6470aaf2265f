"""Bound what the streaming engine has in memory at a time."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """How many rows, hashes or bytes are in memory together."""

    bucket_rows: int = 8_000_000
    """How many rows' keys are compared at a time."""
    hashes: int = 25_000_000
    """How many hashes of keys are sorted at a time: 200 MB."""
    most_repeated: int = 1_000_000
    """Up to how many repeated hashes the other rows are left out before keys are compared."""
    failed_bytes: int = 64_000_000
    """How many bytes of rows that fail a rule about one row are written at a time."""
    merged_rows: int = 1_000_000
    """How many error rows are put in order at a time, where some failed later than others."""


LIMITS = Limits()
