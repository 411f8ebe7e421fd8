"""The version number. ``pyproject.toml`` has it; every other place repeats it and is listed here.

python -m deploy.release.version          # print it
python -m deploy.release.version 0.3.0    # write it everywhere
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

SHAPE = r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?"

PLACES = {
    "pyproject.toml": (r'^version = "{}"', r"\"ldfi-native=={}\""),
    "lineage/native/Cargo.toml": (r'^version = "{}"',),
    "lineage/native/Cargo.lock": (r'^name = "ldfi-native"\nversion = "{}"',),
    "fit/js/package.json": (r'^  "version": "{}"',),
    "fit/js/package-lock.json": (r'"name": "ldfi-fit",\n +"version": "{}"',),
    "fit/js/reach.js": (r"VERSION = '{}'",),
    "fit/go/reach.go": (r'^const Version = "{}"',),
    "fit/go/proxy/go.mod": (r"ldfi/fit/go v{}$",),
    "fit/java/pom.xml": (r"<artifactId>ldfi-fit</artifactId>\n +<version>{}<",),
    "fit/java/src/main/java/io/opentelemetry/javaagent/ldfi/Reach.java": (r'VERSION = "{}"',),
    "fit/java/src/test/java/dev/ldfi/fit/callers/CallersIT.java": (r"1 java/{} ",),
    "fit/java/src/test/java/dev/ldfi/fit/callers/MethodsIT.java": (r"1 java/{} ",),
    "deploy/helm/ldfi/Chart.yaml": (r"^version: {}$", r"^appVersion: {}$"),
    "deploy/kubernetes/kustomization.yaml": (r"newTag: {}$",),
}
"""File → what stands around the number there, for all that is no history and no example."""


def version() -> str:
    """Return the version of this checkout."""
    return next(found for name, found in named() if name == "pyproject.toml")


def named(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yield each place and the number that stands there. Raises ValueError where none does."""
    for name, patterns in PLACES.items():
        text = (root / name).read_text(encoding="utf-8")
        for pattern in patterns:
            found = re.findall(pattern.format(f"({SHAPE})"), text, re.MULTILINE)
            if not found:
                raise ValueError(f"{name} has no version where {pattern!r} says it is")
            yield from ((name, each) for each in found)


def write(new: str, root: Path = ROOT) -> None:
    """Write this number in every place. Raises ValueError for what is no version."""
    if re.fullmatch(SHAPE, new) is None:
        raise ValueError(
            f"a version is MAJOR.MINOR.PATCH, with a, b or rc and a number: got {new!r}"
        )
    for name, patterns in PLACES.items():
        text = (root / name).read_text(encoding="utf-8")
        for pattern in patterns:
            before, _, after = pattern.partition("{}")
            text = re.sub(
                f"({before})({SHAPE})({after})", rf"\g<1>{new}\g<3>", text, flags=re.MULTILINE
            )
        (root / name).write_text(text, encoding="utf-8")


def main() -> int:
    """Print or write the version. The exit status."""
    parser = argparse.ArgumentParser(prog="python -m deploy.release.version", description=__doc__)
    parser.add_argument("new", nargs="?")
    given = parser.parse_args()
    if given.new is None:
        sys.stdout.write(f"{version()}\n")
        return 0
    try:
        write(given.new)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
