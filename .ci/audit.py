"""Holds what is installed against the advisories on PyPI (pip-audit).

Exit status 0: looked, nothing known. 1: a package has a known vulnerability. 3: NOT AUDITED, it
could not look. ``--allow-unreachable`` makes 0 of the 3 and says so, for machines that are known to
reach no advisories; it forgives no vulnerability.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

FINE, VULNERABLE, NOT_AUDITED = 0, 1, 3


def main(words: list[str]) -> int:
    """Audit the environment that runs this."""
    parser = argparse.ArgumentParser(description="Holds what is installed against advisories.")
    parser.add_argument("--allow-unreachable", action="store_true", help="0 where 3 would be")
    allowed = parser.parse_args(words).allow_unreachable
    status, said = audit()
    print(said)  # noqa: T201
    if status == NOT_AUDITED and allowed:
        print("nothing was audited, and --allow-unreachable lets that pass")  # noqa: T201
        return FINE
    return status


def audit() -> tuple[int, str]:
    """Look, and return the exit status with what is to be said."""
    words = ["--format", "json", "--progress-spinner", "off", "--skip-editable", "--timeout", "10"]
    run = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "pip_audit", *words], capture_output=True, text=True, check=False
    )
    try:
        packages = json.loads(run.stdout)["dependencies"]
    except (ValueError, KeyError):
        return NOT_AUDITED, f"NOT AUDITED: no advisories could be had. {run.stderr.strip()[-300:]}"
    return judged(packages)


def judged(packages: list[dict[str, Any]]) -> tuple[int, str]:
    """Judge pip-audit's list of packages."""
    audited = [package for package in packages if "vulns" in package]
    if not audited:
        return NOT_AUDITED, f"NOT AUDITED: no advisories on any of {len(packages)} packages"
    known = [
        f"{package['name']} {package['version']}: {vulnerability['id']}, fixed in "
        f"{', '.join(vulnerability['fix_versions']) or 'no version'}"
        for package in audited
        for vulnerability in package["vulns"]
    ]
    skipped = [f"not audited: {package['name']}" for package in packages if "vulns" not in package]
    counted = f"{len(audited)} of {len(packages)} packages audited, {len(known)} known"
    return bool(known), "\n".join([*skipped, *known, f"{counted} vulnerabilities"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
