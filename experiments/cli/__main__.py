"""``python -m ldfi.experiments.cli`` is ``ldfi``, for where scripts are not on the path."""

from ldfi.experiments.cli.main import main

if __name__ == "__main__":
    main()
