"""The project's image, built from its Dockerfile on stand-ins for its bases.

What the machine's pip and cargo are told of indexes and authorities is mounted for as long as the
build lasts; nothing of it is in the image.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy.containers.debian import AUTHORITIES
from deploy.containers.engine import Engine
from deploy.containers.standins import PYTHON, ROOT

IMAGE: Final = "localhost/ldfi"
_TOLD: Final = ("index-url", "extra-index-url", "trusted-host", "timeout")
_CARGO: Final = Path.home() / ".cargo" / "config.toml"
_KEPT: Final = "until=168h"


def build(engine: Engine) -> None:
    """Build it; layers that have not changed are taken from the store. Raises Missing."""
    with tempfile.TemporaryDirectory(prefix="ldfi-pip-") as folder:
        pip = Path(folder) / "pip.conf"
        pip.write_text("".join(pip_told()))
        mounts = [(pip, "/etc/pip.conf"), (AUTHORITIES, str(AUTHORITIES))]
        if _CARGO.exists():
            mounts.append((_CARGO, "/root/.cargo/config.toml"))
        mounted = [word for source, to in mounts for word in ("--volume", f"{source}:{to}:ro")]
        chosen = ("--network", "host", "--pull-never", "--build-arg", f"PYTHON={PYTHON}")
        engine.do("build", *chosen, *mounted, "--tag", IMAGE, ROOT)
    engine.do("image", "prune", "--force", "--filter", _KEPT)


def pip_told() -> Iterator[str]:
    """Write down what this machine's pip is told."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    told = {}
    for line in asked.stdout.splitlines():
        name, _, value = line.partition("=")
        told[name.rpartition(".")[2]] = value.strip("'")
    yield f"[global]\ncert = {AUTHORITIES}\n"
    yield from (f"{name} = {told[name]}\n" for name in _TOLD if name in told)
