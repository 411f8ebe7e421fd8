"""A minimal Debian as an image, made by debootstrap from where the machine itself gets Debian."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from deploy.containers.engine import Engine
from deploy.stack.missing import Missing

AUTHORITIES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_ASK: Final = ("indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)")
_ONLY: Final = ("Created-By: Packages", "Origin: Debian")


def image(engine: Engine) -> str:
    """Make it, or find it made; its name, which tells what it is made of. Raises Missing."""
    sources = _sources()
    key = hashlib.sha256("\n".join(sources).encode()).hexdigest()[:12]
    name = f"localhost/ldfi-debian:{key}"
    if not engine.has(name):
        mirror, release, _ = min(sources, key=len).split()  # no suite of updates has a shorter name
        folder = Path(tempfile.mkdtemp(prefix="ldfi-debian-"))
        try:
            _bootstrap(folder, release, mirror, sources)
            archive = folder / "root.tar"
            _run("tar", "-C", str(folder / "root"), "-cf", str(archive), ".")
            engine.do("import", archive, name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return name


def _sources() -> list[str]:
    asked = subprocess.run(["apt-get", *_ASK, *_ONLY], capture_output=True, text=True, check=False)
    found = sorted(set(asked.stdout.split("\n")) - {""})
    if not found:
        raise Missing(
            "no base image: apt-get knows of no packages of Debian's here (apt-get update)"
        )
    return found


def _bootstrap(folder: Path, release: str, mirror: str, sources: list[str]) -> None:
    root = folder / "root"
    _run(
        "debootstrap", "--variant=minbase", "--include=ca-certificates", release, str(root), mirror
    )
    lines = [f"deb {each}\n" for each in sources]
    (root / "etc/apt/sources.list").write_text("".join(lines))
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr)[-2000:]
        raise Missing(f"no base image: {words[0]} failed: {said}")
