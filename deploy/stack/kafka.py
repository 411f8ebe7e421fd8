"""A Kafka broker: one node, in a folder of its own, gone afterwards. For tests and trials.

Its jars come from Maven Central, once, into the user's cache. Nothing is installed, and no
container engine is needed; Java 17 and Maven are.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from deploy.stack.missing import Missing
from ldfi.cli.ports import free_port

VERSION = "4.3.1"
START_SECONDS = 180.0
"""It is up in five seconds, and has been seen to take two minutes on a busy machine."""

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>ldfi</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
      <version>2.25.4</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId>
      <version>2.25.4</version>
    </dependency>
  </dependencies>
</project>
"""
_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
num.partitions=4
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
"""
_QUIET = """<Configuration status="error"><Appenders><Console name="out"/></Appenders>
<Loggers><Root level="warn"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""


@dataclass
class Broker:
    """One node. It can be killed, and started again on what it had written to its disk.

    ``cpus``: the processors that it may use; all where there are none given.
    """

    jars: Path
    folder: Path
    cpus: Sequence[int] = ()
    port: int = field(default_factory=free_port)
    _controller: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def address(self) -> str:
        """Return where it listens."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of its process, which must be running."""
        assert self._process is not None
        return self._process.pid

    def prefix(self) -> str:
        """Make a prefix of topics that nobody else uses."""
        return f"test{next(self._names)}"

    def prepare(self) -> None:
        """Write its configuration, and make its log ready. Raises Missing."""
        properties = _PROPERTIES.format(
            port=self.port, controller=self._controller, logs=self.folder / "logs"
        )
        (self.folder / "server.properties").write_text(properties)
        (self.folder / "log4j2.xml").write_text(_QUIET)
        random_uuid = self._java("kafka.tools.StorageTool", "random-uuid").strip()
        config = str(self.folder / "server.properties")
        self._java("kafka.tools.StorageTool", "format", "-t", random_uuid, "-c", config)

    def start(self) -> None:
        """Start it; :meth:`ready` waits for it."""
        with (self.folder / "kafka.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command(), "kafka.Kafka", str(self.folder / "server.properties")],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for whoever started it, who stops it when done
            )

    def ready(self) -> None:
        """Wait until it answers. Raises Missing."""
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError

        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._process is None or self._process.poll() is not None:
                raise Missing(f"Kafka ended by itself: {self.log[-2000:]}")
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    pass
                admin = KafkaAdminClient(
                    bootstrap_servers=self.address,
                    bootstrap_timeout_ms=3000,
                    request_timeout_ms=5000,
                )
                try:
                    admin.list_topics()
                finally:
                    admin.close()
            except (OSError, KafkaError):
                time.sleep(0.2)
            else:
                return
        raise Missing(f"Kafka is not up after {START_SECONDS:.0f} s: {self.log[-2000:]}")

    @property
    def log(self) -> str:
        """Return the log of all its lives."""
        return (self.folder / "kafka.log").read_text(errors="replace")

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _command(self) -> list[str]:
        pinned = ["taskset", "-c", ",".join(map(str, self.cpus))] if self.cpus else []
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.xml'}"
        memory = ["-Xms256m", "-Xmx512m", "-XX:+UseSerialGC"]
        return [*pinned, "java", *memory, logging, "-cp", f"{self.jars}/*"]

    def _java(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command(), *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Missing(f"{arguments[0]} failed: {done.stderr or done.stdout}")
        return done.stdout


def installed() -> Path:
    """Find the folder of Kafka's jars, which are fetched if they are not there. Raises Missing."""
    if shutil.which("java") is None:
        raise Missing(
            "no Kafka: Java 17 or newer is not installed; install your system's package "
            "(default-jre-headless)"
        )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "ldfi" / f"kafka-{VERSION}"
    jars = home / "libs"
    if not (home / "complete").exists():
        maven = shutil.which("mvn")
        if maven is None:
            raise Missing(
                "no Kafka: Maven (mvn) is not installed, which fetches it once; install your "
                "system's package (maven)"
            )
        home.mkdir(parents=True, exist_ok=True)
        (home / "pom.xml").write_text(_POM)
        fetch = [
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={jars}",
        ]
        done = subprocess.run(
            [maven, "-q", "-B", *fetch], cwd=home, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Missing(f"Maven cannot fetch Kafka: {(done.stdout or done.stderr)[-1000:]}")
        (home / "complete").touch()
    return jars


@contextmanager
def running(cpus: Sequence[int] = ()) -> Iterator[Broker]:
    """Run a broker for as long as the block lasts. Raises Missing."""
    jars = installed()
    folder = Path(tempfile.mkdtemp(prefix="ldfi-kafka-"))
    broker = Broker(jars, folder, cpus)
    try:
        broker.prepare()
        broker.start()
        broker.ready()
        yield broker
    finally:
        broker.kill()
        shutil.rmtree(folder, ignore_errors=True)
