"""What the figures of `docs/performance.md` are measured with: `nox -s bench`."""
