"""``python -m experiments.cli`` is ``ldfi``, for where scripts are not on the path."""

from experiments.cli.main import main

if __name__ == "__main__":
    main()
