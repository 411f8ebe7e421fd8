"""``ldfi``, and ``python -m ldfi.cli`` for where scripts are not on the path."""

from __future__ import annotations

import sys

from ldfi.cli.exits import INTERRUPTED, USAGE
from ldfi.cli.extras import advice


def main() -> None:
    """Run the command line; where an extra is missing, say which in one line."""
    try:
        from ldfi.cli.main import main as run

        run()
    except ModuleNotFoundError as error:
        missing = advice(error.name)
        if missing is None:
            raise
        sys.stderr.write(f"ldfi: {missing}\n")
        sys.exit(USAGE)
    except KeyboardInterrupt:  # while modules are imported
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
