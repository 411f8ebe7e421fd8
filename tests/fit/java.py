"""The extension of OpenTelemetry's Java agent, built for tests, and programs under both."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.kit import needs

JAVA = Path(__file__).parents[2] / "ldfi" / "fit" / "java"
OLDEST, NEWEST = "2.31.1", "2.33.1"
"""The agents that are tested (fit/java/pom.xml)."""


def built() -> Path:
    """Build it, and return where it is. Skip on a laptop without a JDK or Maven, fail in CI."""
    for needed in ("javac", "mvn"):
        needs.program(needed)
    target, jar = JAVA / "target", JAVA / "target" / "ldfi-fit-tests.jar"
    sources = [JAVA / "pom.xml", *(path for path in (JAVA / "src").rglob("*") if path.is_file())]
    if not jar.exists() or jar.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        words = ["mvn", "--batch-mode", "--quiet", "-DskipTests", "package"]
        subprocess.run(words, cwd=JAVA.resolve(), check=True, timeout=600)
    return target.resolve()


def host(client: str, *server: str) -> list[str]:
    """The words that start the host of the conformance test, whose calls are made by ``client``,
    and whose edges are a ``server`` each."""
    return program("Host", client, *server)


def program(name: str, *arguments: str, agent: str = NEWEST) -> list[str]:
    """The words that start a program of the conformance tests under the agent."""
    target = built()
    beside = os.pathsep.join(str(target / each) for each in ("classes", "test-classes", "beside/*"))
    extensions = ",".join(str(target / f"{each}.jar") for each in ("ldfi-fit", "ldfi-fit-tests"))
    return [
        *("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),  # it ends before more is worth it
        f"-javaagent:{target}/agents/opentelemetry-javaagent-{agent}.jar",
        f"-Dotel.javaagent.extensions={extensions}",
        *(f"-Dotel.{each}.exporter=none" for each in ("traces", "metrics", "logs")),
        *("-cp", beside, f"dev.ldfi.fit.conformance.{name}", *arguments),
    ]
