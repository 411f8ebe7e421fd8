"""``make stack``: the demo's campaign on the topology of compose.yaml, as plain processes.

    python -m deploy.stack --json

The same campaign as ``ldfi demo``, but spans go through the Collector and Kafka, device metrics
through the API and Kafka, and the record is PostgreSQL's. Exit status 0 where the findings are the
planted weaknesses, 1 where they are not, 2 where a server is missing. No process is left behind.
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from deploy.stack import kafka
from deploy.stack.missing import Missing
from deploy.stack.topology import Stack, missing, running
from ldfi.experiments.cli import demo, exits
from ldfi.experiments.cli.client import Client
from ldfi.experiments.cli.demo_view import report
from ldfi.experiments.cli.terminal import console as screen
from ldfi.experiments.errors import ExperimentsError
from ldfi.experiments.streams.kafka import KafkaStream

LIMIT_SECONDS: Final = 1500.0
RATES: Final = "boot=24,play=12,search=12"
"""Requests a second: less than half of what ``ldfi demo`` sends, for here ten more processes share
the machine with it."""

CAMPAIGN: Final = {
    **demo.CAMPAIGN,
    "window": 50.0,  # as many requests as there
    "settle": 8.0,  # the Collector judges a trace after a second, then it is to become quiet
}
OPTIONS: Final = {
    "LDFI_EXPORT_INTERVAL": "0.7",
    "LDFI_QUIET": "1",
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
        result = _demonstrate(options.seed, console)
    except KeyboardInterrupt:
        console.print("Stopped, and every process with it.")
        return exits.INTERRUPTED
    except (Missing, ExperimentsError) as error:
        console.print(str(error), highlight=False, soft_wrap=True)
        return exits.UNREACHABLE
    if options.json:
        sys.stdout.write(json.dumps(result) + "\n")
    return exits.FINE if result["matched"] else exits.FOUND


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deploy.stack")
    parser.add_argument("--seed", type=int, default=0, help="of the traffic and the exploration")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args()


def _demonstrate(seed: int, console: Console) -> dict[str, Any]:
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
        demo.start_application(stack.processes, secret, stack.url, spans, seed, RATES, console)
        client = Client(stack.url, secret.operator)
        wanted = {**CAMPAIGN, "seed": seed}
        campaign = demo.run(client, stack.processes, wanted, LIMIT_SECONDS, console)
        result = demo.compared(client, campaign, time.monotonic() - started)
        report(console, campaign, result)
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
