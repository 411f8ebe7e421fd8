"""Holds what is installed against the advisories on PyPI (pip-audit).

Exit status 1 where a package has a known vulnerability; 0 where none has, and also where the
advisories cannot be reached, which is said: then nothing was audited.
"""

from __future__ import annotations

import json
import subprocess
import sys


def main() -> int:
    """Audit the environment that runs this."""
    words = ["--format", "json", "--progress-spinner", "off", "--skip-editable", "--timeout", "10"]
    run = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "pip_audit", *words], capture_output=True, text=True, check=False
    )
    try:
        packages = json.loads(run.stdout)["dependencies"]
    except (ValueError, KeyError):
        return _say(f"NOT AUDITED: no advisories could be had. {run.stderr.strip()[-300:]}", 0)
    audited = [package for package in packages if "vulns" in package]
    known = [
        f"{package['name']} {package['version']}: {vulnerability['id']}, fixed in "
        f"{', '.join(vulnerability['fix_versions']) or 'no version'}"
        for package in audited
        for vulnerability in package["vulns"]
    ]
    if not audited:
        return _say(f"NOT AUDITED: no advisories on any of {len(packages)} packages", 0)
    counted = f"{len(audited)} of {len(packages)} packages audited"
    return _say("\n".join([*known, f"{counted}, {len(known)} known vulnerabilities"]), bool(known))


def _say(text: str, status: int) -> int:
    print(text)  # noqa: T201
    return status


if __name__ == "__main__":
    sys.exit(main())
