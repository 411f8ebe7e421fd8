"""A folder for each language that its own tools read as a registry: what a release publishes.

    python -m deploy.release FOLDER              # all languages
    python -m deploy.release FOLDER go node      # some

Whoever has no registry serves these folders, or copies them: ``GOPROXY=file:///FOLDER/go``,
``npm install FOLDER/node/ldfi-fit-VERSION.tgz``, a Maven repository ``file:///FOLDER/java``,
``pip install --extra-index-url file:///FOLDER/python/simple``.
"""

from __future__ import annotations

import hashlib
import html
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from deploy.release.version import ROOT, version

GO = "github.com/ldfi-dev/ldfi/fit/go"
GO_MODULES = {GO: "fit/go", f"{GO}/proxy": "fit/go/proxy"}
"""The modules that are published, and their folders."""

DEPLOY = "org.apache.maven.plugins:maven-deploy-plugin:3.1.4:deploy-file"


def go(folder: Path) -> None:
    """Write both modules as a module proxy serves them (`go help goproxy`)."""
    release = f"v{version()}"
    words = ["git", "log", "-1", "--format=%cI"]
    when = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for module, source in GO_MODULES.items():
        versions = folder / module / "@v"
        versions.mkdir(parents=True, exist_ok=True)
        (versions / "list").write_text(f"{release}\n", encoding="utf-8")
        (versions / f"{release}.info").write_text(
            json.dumps({"Version": release, "Time": when.strip()}), encoding="utf-8"
        )
        gomod = (ROOT / source / "go.mod").read_bytes()
        (versions / f"{release}.mod").write_bytes(gomod)
        with ZipFile(versions / f"{release}.zip", "w", ZIP_DEFLATED) as archive:
            for path in _module_files(ROOT / source):
                archive.write(path, f"{module}@{release}/{path.relative_to(ROOT / source)}")
            archive.write(ROOT / "LICENSE", f"{module}@{release}/LICENSE")


def _module_files(folder: Path) -> list[Path]:
    """Return the files of a module in git, without those of modules inside it."""
    words = ["git", "ls-files", "-z"]
    said = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout
    files = [folder / name for name in said.split("\0") if name]
    inner = [each.parent for each in files if each.name == "go.mod" and each.parent != folder]
    return [each for each in files if not any(each.is_relative_to(other) for other in inner)]


def node(folder: Path) -> None:
    """Pack what npm would publish."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["npm", "pack", "--silent", "--pack-destination", str(folder.resolve())]
    subprocess.run(words, cwd=ROOT / "fit" / "js", check=True, stdout=subprocess.DEVNULL)


def java(folder: Path) -> None:
    """Build the extension and deploy it to a Maven repository in this folder."""
    maven, pom = ["mvn", "--batch-mode", "--quiet"], ROOT / "fit" / "java" / "pom.xml"
    words = ["--file", str(pom), "package", "-Dmaven.test.skip=true"]
    subprocess.run([*maven, *words], cwd=ROOT, check=True)
    words = [
        f"-Dfile={pom.parent / 'target' / 'ldfi-fit.jar'}",
        f"-DpomFile={pom}",
        f"-Durl={folder.resolve().as_uri()}",
    ]
    subprocess.run([*maven, DEPLOY, *words], cwd=ROOT, check=True)


def python(folder: Path) -> None:
    """Build the wheel and write a simple index of it (PEP 503)."""
    project = folder / "simple" / "ldfi"
    words = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(project), str(ROOT)]
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    links = []
    for wheel in sorted(project.glob("*.whl")):
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        name = html.escape(wheel.name)
        links.append(f'<a href="{name}#sha256={digest}">{name}</a>')
    page = "<!DOCTYPE html>\n" + "\n".join(links) + "\n"
    (project / "index.html").write_text(page, encoding="utf-8")


LANGUAGES: dict[str, Callable[[Path], None]] = {
    "go": go,
    "node": node,
    "java": java,
    "python": python,
}
