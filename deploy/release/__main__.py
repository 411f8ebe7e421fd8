"""Write what a release publishes into a folder: ``python -m deploy.release FOLDER [LANGUAGE…]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from deploy.release import registries
from deploy.release.version import version


def main() -> None:
    """Write the registries that were asked for, and say where each is."""
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=__doc__)
    parser.add_argument("folder", type=Path)
    languages = registries.LANGUAGES
    parser.add_argument("language", nargs="*", choices=[*languages, []], metavar="LANGUAGE")
    given = parser.parse_args()
    for language in given.language or languages:
        languages[language](given.folder / language)
        sys.stdout.write(f"{version()} for {language}: {given.folder / language}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
