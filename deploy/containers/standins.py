"""Stand-ins for every image that the Dockerfile and compose.yaml name but Grafana's, out of what
the machine has, under the same names. What one is made of is its key; it is made again when that
has changed, and taken from the store else.

What they prove is what runs in them: the servers themselves, users, volumes, read-only file
systems, limits, names on the network. That a registry's image has them in the same places is not
proved, nor anything of Jaeger, in whose place spans are thrown away.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from deploy.containers import debian
from deploy.containers.engine import Engine
from deploy.stack import collector, kafka, postgresql_17
from deploy.stack.missing import Missing

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(__file__).parent
PYTHON: Final = "python:3.11-slim"
"""Debian 12 has no newer one; the Dockerfile is told so."""

LEFT_OUT: Final = frozenset({"grafana"})
TOOLS: Final = f"org.apache.kafka:kafka-tools:{kafka.VERSION}"
Fill = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class StandIn:
    """``folder``: of its Dockerfile. ``image``: the name it gets. ``of``: versions of what ``fill``
    puts beside the Dockerfile."""

    folder: str
    image: str
    of: str = ""
    fill: Fill = lambda _folder: None

    def key(self, base: str) -> str:
        """Return what it is made of, in twelve characters."""
        seen = hashlib.sha256(f"{base} {self.of}".encode())
        for file in sorted((FOLDER / self.folder).iterdir()):
            seen.update(file.name.encode() + file.read_bytes())
        return seen.hexdigest()[:12]


def named() -> Mapping[str, str]:
    """Read the image of each service in compose.yaml that is not built."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return {
        name: what["image"]
        for name, what in services.items()
        if "build" not in what and name not in LEFT_OUT
    }


def rust() -> str:
    """Read the image of the Dockerfile's stage in Rust."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    (found,) = [line.removeprefix("ARG RUST=") for line in lines if line.startswith("ARG RUST=")]
    return found


def all_of_them() -> list[StandIn]:
    """List them. Raises Missing."""
    images = named()
    otelcol = collector.installed()

    def copied(to: Path) -> None:
        shutil.copy(otelcol, to / "otelcol")

    return [
        StandIn("python", PYTHON),
        StandIn("rust", rust()),
        StandIn("kafka", images["kafka"], kafka.VERSION, _kafka),
        StandIn("postgres", images["postgres"], postgresql_17.VERSION, _postgresql),
        StandIn("prometheus", images["prometheus"]),
        StandIn("collector", images["collector"], otelcol.name, copied),
        StandIn("jaeger", images["jaeger"], otelcol.name, copied),
    ]


def make(engine: Engine, say: Callable[[str], None]) -> None:
    """Make those that are not there, and give all their names. Raises Missing."""
    base = debian.image(engine)
    for each in all_of_them():
        made = f"localhost/ldfi-stand-in-{each.folder}:{each.key(base)}"
        if not engine.has(made):
            say(f"making {each.image} …")
            _build(engine, each, base, made)
        engine.do("tag", made, f"localhost/{each.image}")


def _build(engine: Engine, wanted: StandIn, base: str, name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="ldfi-image-") as context:
        shutil.copytree(FOLDER / wanted.folder, context, dirs_exist_ok=True)
        wanted.fill(Path(context))
        arguments = ("--build-arg", f"DEBIAN={base}", "--network", "host", "--pull-never")
        engine.do("build", *arguments, "--tag", name, context)


def _kafka(context: Path) -> None:
    """Its jars, and its command-line tools, with which compose.yaml asks for its health."""
    jars = kafka.installed()
    shutil.copytree(jars, context / "libs")
    copy = ["dependency:copy", f"-Dartifact={TOOLS}", f"-DoutputDirectory={context / 'libs'}"]
    done = subprocess.run(["mvn", "-q", "-B", *copy], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"Maven cannot fetch {TOOLS}: {(done.stdout or done.stderr)[-1000:]}")


def _postgresql(context: Path) -> None:
    postgresql_17.unpack(context / "server")
