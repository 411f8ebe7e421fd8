"""``ldfi``, and ``python -m ldfi.cli`` for where scripts are not on the path."""

from __future__ import annotations

import sys
from traceback import print_exc
from typing import NoReturn

from ldfi.cli.exits import DEFECT, INTERRUPTED, USAGE
from ldfi.cli.extras import advice


def main() -> None:
    """Run the command line; where an extra is missing, say which in one line."""
    try:
        from ldfi.cli.main import main as run

        run()
    except ModuleNotFoundError as error:
        missing = advice(error.name)
        if missing is None:
            _defect()
        sys.stderr.write(f"ldfi: {missing}\n")
        sys.exit(USAGE)
    except KeyboardInterrupt:  # while modules are imported
        sys.exit(INTERRUPTED)
    except Exception:  # noqa: BLE001 - else Python's exit code says that a failure was found
        _defect()


def _defect() -> NoReturn:
    print_exc()
    sys.stderr.write(
        "ldfi: this is a defect of ldfi and says nothing about your system: please report it with"
        " the lines above\n"
    )
    sys.exit(DEFECT)


if __name__ == "__main__":
    main()
