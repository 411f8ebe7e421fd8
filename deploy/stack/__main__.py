"""``make stack``: the demo's campaign on the topology of compose.yaml, as plain processes.

    python -m deploy.stack --json          # --full: the streaming service

The same campaign as ``ldfi demo``, but spans go through the Collector and Kafka, device metrics
through the API and Kafka, and the record is PostgreSQL's. Exit status 0 where the findings are the
planted weaknesses, 1 where they are not, 2 where a server is missing, 3 where the time was over
before all was decided. No process is left behind.
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from deploy.stack import kafka
from deploy.stack.missing import Missing
from deploy.stack.topology import Stack, missing, running
from ldfi.cli import demo, exits
from ldfi.cli.client import Client
from ldfi.cli.demo_run import run
from ldfi.cli.demo_worlds import SHOP, STREAMING, DemoWorld
from ldfi.cli.terminal import console as screen
from ldfi.errors import ExperimentsError
from ldfi.experiments.streams.kafka import KafkaStream

SMALL: Final = replace(
    SHOP,
    limit=600.0,
    # What a device saw takes seconds to arrive, so classes are tried side by side.
    campaign={**SHOP.campaign, "concurrency": 2, "treatment": 0.25},
)
LARGE: Final = replace(
    STREAMING,
    rate=STREAMING.rate / 2,  # ten more processes share the machine with it
    limit=1500.0,
    campaign={
        **STREAMING.campaign,
        "window": 90.0,  # as many requests as there
        "settle": 8.0,  # the Collector judges a trace after a second, then it is to become quiet
    },
)

OPTIONS: Final = {
    # The Collector holds a trace for a second, and then sends all of it at once.
    "LDFI_EXPORT_INTERVAL": "0.2",
    "LDFI_QUIET": "0.4",
    "LDFI_MEMBERS_PER_HOUR": "100000",
    "LDFI_MEMBERS_PER_DAY": "100000",
}


def main() -> int:
    """Start everything, run the campaign, compare. The exit status."""
    options = _options()
    console = screen(stderr=options.json)
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    console.print("Looking for Kafka, PostgreSQL and the Collector …", highlight=False)
    if absent := missing():
        for each in absent:
            console.print(f"Missing: {each}", highlight=False, soft_wrap=True)
        return exits.USAGE
    try:
        result = _demonstrate(LARGE if options.full else SMALL, options.seed, console)
    except KeyboardInterrupt:
        console.print("Stopped, and every process with it.")
        return exits.INTERRUPTED
    except (Missing, ExperimentsError) as error:
        console.print(str(error), highlight=False, soft_wrap=True)
        return exits.UNREACHABLE
    if options.json:
        sys.stdout.write(json.dumps(result) + "\n")
    return demo.exit_status(result)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deploy.stack")
    parser.add_argument("--full", action="store_true", help="the streaming service, not the shop")
    parser.add_argument("--seed", type=int, default=0, help="of the traffic and the exploration")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args()


def _demonstrate(world: DemoWorld, seed: int, console: Console) -> dict[str, Any]:
    started = time.monotonic()
    secret = demo.Secrets.make()
    options = {
        **OPTIONS,
        "LDFI_TOKENS": secret.tokens(),
        "LDFI_MEMBER_KEY": secrets.token_urlsafe(24),
    }

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    with (
        tempfile.TemporaryDirectory(prefix="ldfi-stack-") as folder,
        running(Path(folder), options, say) as stack,
    ):
        spans = {"OTEL_EXPORTER_OTLP_ENDPOINT": stack.collector.url}
        share = demo.start_application(stack.processes, secret, stack.url, spans, world, seed)
        client = Client(stack.url, secret.operator)
        wanted = {**world.fitted(share), "seed": seed}
        ran = run(client, stack.processes, wanted, world.limit, console)
        result = demo.compared(client, world, ran, time.monotonic() - started)
        demo.report(console, ran, result)
        result["messages"] = _messages(stack)
        result["kafka"] = kafka.VERSION
    written = ", ".join(f"{count} in {topic}" for topic, count in result["messages"].items())
    say(f"Messages: {written}.")
    return result


def _messages(stack: Stack) -> dict[str, int]:
    """Count what each topic holds: what went this way."""
    stream, topics = KafkaStream([stack.broker.address]), stack.topics
    counts = {}
    for topic in (topics.spans, topics.metrics, topics.observations, topics.dead_letters):
        reader = stream.reader(topic, {})
        counts[topic] = sum(reader.ends().values())
        reader.close()
    return counts


if __name__ == "__main__":
    sys.exit(main())
