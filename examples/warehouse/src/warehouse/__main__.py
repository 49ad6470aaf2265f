"""`python -m warehouse` runs the main job from empty; `python -m warehouse serve` shows what it left."""

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m warehouse", description=__doc__)
    parser.add_argument("command", nargs="?", default="run", choices=["run", "serve"])
    parsed, others = parser.parse_known_args(arguments)
    if parsed.command == "serve":
        from warehouse.server import serve

        return serve(others)
    if others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    print("Loading Dagster and the definitions of the tables ...", flush=True)
    # Each import takes seconds.
    from rich.console import Console

    from warehouse.report import run

    return run(Console())


if __name__ == "__main__":
    sys.exit(main())
