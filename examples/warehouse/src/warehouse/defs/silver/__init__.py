"""The drops typed, validated and joined."""
