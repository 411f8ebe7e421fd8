"""The petstore: four Spring Boot services in processes of their own under OpenTelemetry's Java
agent, with PostgreSQL behind two of them, and where each finds the others.

``python petstore.py`` builds what is to be built and runs them until it is interrupted, in this
environment: ``ldfi explore env``. No line of their code knows of ldfi.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from ldfi.explore.external.services import Service, Services

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
sys.path.append(str(HERE.parent))  # together.py
FIT = CHECKOUT / "fit" / "java"
AGENT: Final = "2.33.1"
FIRST_PORT = int(os.environ.get("PETSTORE_PORT", "8780"))
NAMES = ("gateway", "catalogue", "orders", "prices")
LISTENING = (*NAMES, "postgres")
"""Who listens, in the order of their ports."""
PETS: Final = 40
"""Numbered from one, and as many orders."""
KEPT_SECONDS, OPEN_SECONDS, WINDOW = 3.0, 5.0, 10
"""For how long a name is kept in the cache, the breaker stays open, and how many calls it counts:
what ``application.properties`` says."""

PLANTED: Final[dict[str, dict[str, list[str]]]] = json.loads(
    (HERE / "planted.json").read_text(encoding="utf-8")
)

UNASKED: Final = "-Dcom.zaxxer.hikari.aliveBypassWindowMs=3600000"
"""HikariCP asks the database something empty before it gives out a connection that has rested, and
the agent writes a span for it: a call that some requests make and others do not."""

SMALL: Final = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""Four of them start on two cores: little is compiled, and one thread collects."""


def missing() -> str:
    """Return what without which nothing of it runs; empty where all of that is there."""
    without = [name for name in ("javac", "mvn") if shutil.which(name) is None]
    if without:
        return f"the petstore needs a JDK and Maven: there is no {' and no '.join(without)}"
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))  # `deploy` is a part of it, and of no wheel
    from deploy.stack.missing import Missing
    from deploy.stack.postgresql import installed

    try:
        installed()
    except Missing as error:
        return str(error)
    return ""


def build() -> None:
    """Build the extension and the services, unless that was done since they were changed. Raises
    CalledProcessError."""
    for folder, built in ((FIT, "ldfi-fit.jar"), (HERE, "petstore-0.2.0.jar")):
        changed = [folder / "pom.xml", *(folder / "src" / "main").rglob("*.*")]
        jar = folder / "target" / built
        if jar.exists() and jar.stat().st_mtime > max(each.stat().st_mtime for each in changed):
            continue
        words = ["mvn", "--batch-mode", "--quiet", "package", "-Dmaven.test.skip=true"]
        subprocess.run(words, cwd=folder, check=True)


def services(first_port: int = FIRST_PORT) -> list[Service]:
    """Return all services, and PostgreSQL; the gateway is the first."""
    ports = {name: first_port + i for i, name in enumerate(LISTENING)}
    places = {name.upper(): f"http://127.0.0.1:{ports[name]}" for name in NAMES}
    places["POSTGRES"] = f"jdbc:postgresql://127.0.0.1:{ports['postgres']}/postgres"
    words = [sys.executable, "../bookshop/services/postgres.py", "schema.sql"]
    return [
        *(Service(name, command(name), ports[name], "/health", places, HERE) for name in NAMES),
        Service("postgres", words, ports["postgres"], folder=HERE),
    ]


def command(name: str) -> list[str]:
    """Return how a service is started: all that ldfi needs is said to Java."""
    agent = FIT / "target" / "agents" / f"opentelemetry-javaagent-{AGENT}.jar"
    under = [f"-javaagent:{agent}", f"-Dotel.javaagent.extensions={FIT / 'target/ldfi-fit.jar'}"]
    edge = ["-Dldfi.edge=true"] if name == "gateway" else []
    started = f"dev.ldfi.petstore.{name}.{name.capitalize()}"
    everything = ["-cp", "target/classes:target/beside/*"]
    return ["java", *under, *edge, *SMALL, UNASKED, *everything, started]


def broken(first_port: int, fault: str) -> str:
    """Name the service that a fault is about, by the address that its caller dials."""
    point = fault.partition("@")[2]
    if ">db:" in point:
        return "postgres"
    port = point.rpartition(":")[2].partition("/")[0]
    return LISTENING[int(port) - first_port]


def main() -> None:
    from together import until_interrupted

    build()
    every = services()
    running = Services({}, HERE / ".ldfi" / "logs", seconds=180)
    until_interrupted(running, every, f"a pet: {every[0].url}/pets/17")


if __name__ == "__main__":
    main()
