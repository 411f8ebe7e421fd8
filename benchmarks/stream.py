"""Spans through Kafka into observations: how fast with one ingest worker, and with two.

    python -m benchmarks.stream --json

Kafka is a real broker, started here. The workers join first and wait; then the traffic is written,
so that they are never short of it: export bodies of :mod:`benchmarks.ingest`, taken apart as the
Collector's Kafka exporter does it (one message for each trace and service, keyed by trace id), and
a device metric for each request. Then they read. Each is a process of its own; the time is that on
the wall, of the slower one, spent in steps in which it read or wrote anything: all but the wait for
the last traces to become quiet. What comes out is counted: every request once.

**Who gets which core.** Each worker is pinned to one, and the broker to those that are left. On two
cores none is left for it beside two workers, so it shares theirs: what it took is told, and the two
cannot be twice as fast as one that had a core to itself and a broker on the other. Rates for each
second of *worker* processor time show what is left of the ratio once that is taken out.

Two yardsticks stand beside that, of the same run. A consumer of kafka-python's that throws away
what it reads, on the core of the one worker: nobody who reads through that client can be faster.
And decoding by threads: two of one process, each handing over messages as a worker does, several
hundred at once, against one, on the wall; without the extension that is for reading only.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.ingest import Traffic
from benchmarks.outcome import Row, Target, at_least, say
from deploy.stack import kafka
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.streams.kafka import KafkaStream
from ldfi.experiments.streams.partition import Patience
from ldfi.experiments.streams.stream import Topics
from ldfi.experiments.streams.wire import write_outcome
from ldfi.experiments.streams.worker import Worker
from ldfi.lineage.machine_code import way
from ldfi.lineage.readers.formats import read_message
from ldfi.lineage.readers.otlp import decode_together

TARGETS = {"workers": 0.9, "threads": 1.6, "of the client": 0.8}
POLL = 500
"""Messages that are handed over at once."""

TIMES = 10
"""Each thread reads the messages so often: reading them once is over before it is measured."""

PARTITIONS = 8
QUIET = 1.0


def messages(spans: int) -> Iterator[tuple[str, bytes, bytes]]:
    """Make half, key and value of each message."""
    for body in Traffic(groups=10).bodies(spans):
        group = ExportTraceServiceRequest.FromString(body).resource_spans[0]
        by_trace: defaultdict[bytes, list[Any]] = defaultdict(list)
        for span in group.scope_spans[0].spans:
            by_trace[span.trace_id].append(span)
        for trace_id, found in by_trace.items():
            one = ExportTraceServiceRequest()
            part = one.resource_spans.add()
            part.resource.CopyFrom(group.resource)
            part.scope_spans.add().spans.extend(found)
            key = trace_id.hex()
            yield "spans", key.encode(), one.SerializeToString()
            if any(not span.parent_span_id for span in found):
                outcome = Outcome(key, "device", "member", True)
                yield "metrics", key.encode(), write_outcome(outcome)


def fill(stream: KafkaStream, topics: Topics, spans: int) -> dict[str, int]:
    """Write the traffic; how much it is."""
    producer = stream.producer()
    count: Counter[str] = Counter()
    for half, key, value in messages(spans):
        producer.send(topics.spans if half == "spans" else topics.metrics, key, value)
        count[half] += 1
        count["bytes"] += len(value)
        if sum(count.values()) % 5_000 == 0:
            producer.flush()
    producer.flush()
    producer.close()
    return dict(count)


def work(address: str, prefix: str, share: int) -> None:
    """Work as one worker, in a process of its own: join, wait to be told, read what there is."""
    gc.set_threshold(50_000, 20, 100)
    worker = Worker(
        KafkaStream([address]), Topics(prefix), Patience(quiet=QUIET, missing=2 * QUIET)
    )
    consumer = worker._consumer._consumer  # type: ignore[attr-defined]
    while len(consumer.assignment()) != 2 * share:
        worker.step(0.1)
    consumer.pause(*consumer.assignment())
    told = threading.Event()
    threading.Thread(target=_await_go, args=(told,), daemon=True).start()
    print("ready", flush=True)
    while not told.is_set():
        worker.step(0.1)
    consumer.resume(*consumer.paused())
    seen, busy, last = worker.seen, 0.0, time.monotonic()
    cpu_before = time.process_time()
    while last + 6 * QUIET > (begin := time.monotonic()):
        before = seen.messages + seen.observations
        worker.step(0.1)
        if seen.messages + seen.observations > before:
            last = time.monotonic()
            busy += last - begin
    result = {
        "busy": busy,
        "cpu": time.process_time() - cpu_before,
        "spans": seen.spans,
        "observations": seen.observations,
    }
    print(json.dumps(result), flush=True)
    worker.close()


def drain(address: str, prefix: str) -> None:
    """Read all messages of the topics that workers read, and throw them away."""
    gc.set_threshold(50_000, 20, 100)
    topics = Topics(prefix)
    consumer = KafkaConsumer(
        bootstrap_servers=[address],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=2_000,
        metrics_enabled=False,
    )
    names = (topics.spans, topics.metrics)
    places = [TopicPartition(name, number) for name in names for number in range(PARTITIONS)]
    consumer.assign(places)
    left = sum(consumer.end_offsets(places).values())
    begin, cpu = time.monotonic(), time.process_time()
    while left > 0:
        left -= sum(map(len, consumer.poll(timeout_ms=100).values()))
    result = {"seconds": time.monotonic() - begin, "cpu": time.process_time() - cpu}
    consumer.close()
    print(json.dumps(result), flush=True)


def decoding(spans: int, rounds: int) -> dict[str, Any]:
    """Decode messages by one thread and by two of this process, which read all of them each."""
    bodies = [value for half, _, value in messages(spans) if half == "spans"]
    polls = [bodies[at : at + POLL] for at in range(0, len(bodies), POLL)] * TIMES

    def read() -> None:
        for poll in polls:
            for body, batch in zip(poll, decode_together(poll), strict=True):
                if batch is None:
                    read_message(body)

    def rate(count: int) -> float:
        threads = [threading.Thread(target=read) for _ in range(count)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return count * TIMES * len(bodies) / (time.monotonic() - begin)

    read()  # what it says is known now, as it is to a running worker
    found = [(rate(1), rate(2)) for _ in range(rounds)]
    one, two = (max(rates) for rates in zip(*found, strict=True))
    return {
        "decoded_by": way(),
        "messages_per_second_one_thread": round(one),
        "messages_per_second_two_threads": round(two),
        "times": round(two / one, 2),
    }


def _await_go(told: threading.Event) -> None:
    sys.stdin.readline()
    told.set()


def measure(broker: kafka.Broker, spans: int, workers: int) -> dict[str, Any]:
    """Let a group of so many workers read so many spans, from topics of its own."""
    cores = sorted(os.sched_getaffinity(0))
    stream, topics = KafkaStream([broker.address]), Topics(broker.prefix())
    stream.ensure(topics.partitions(PARTITIONS))
    share = str(PARTITIONS // workers)
    command = [sys.executable, "-m", "benchmarks.stream", "--worker", broker.address]
    command += [topics.prefix, share]
    processes = [
        subprocess.Popen(
            [
                *("/usr/bin/env", "taskset", "-c", str(cores[number % len(cores)])),
                *command,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(workers)
    ]
    pipes = [(each.stdin, each.stdout) for each in processes if each.stdin and each.stdout]
    for _, out in pipes:
        assert out.readline() == "ready\n"
    written = fill(stream, topics, spans)
    others = _places_for(broker, cores, workers)
    before = _cpu(broker.pid)
    for into, _ in pipes:
        into.write("go\n")
        into.flush()
    results = [json.loads(out.readline()) for _, out in pipes]
    took = _cpu(broker.pid) - before
    for each in processes:
        each.wait(timeout=60)
    seconds = max(r["busy"] for r in results)
    total = sum(r["spans"] for r in results)
    drained = _drained(broker, topics, cores[0]) if workers == 1 else 0.0
    assert sum(r["observations"] for r in results) == written["metrics"], "each request once"
    return {
        "workers": workers,
        "seconds": round(seconds, 2),
        "spans": total,
        "messages": written["spans"] + written["metrics"],
        "spans_per_second": round(total / seconds),
        "spans_per_second_thrown_away": round(total / drained) if drained else None,
        "spans_per_worker_cpu_second": round(total / sum(r["cpu"] for r in results)),
        "worker_cpu_seconds": round(sum(r["cpu"] for r in results), 2),
        "broker_cpu_seconds": round(took, 2),
        "broker_on": others,
        "load_before": round(os.getloadavg()[0], 1),
    }


def _drained(broker: kafka.Broker, topics: Topics, core: int) -> float:
    command = ["/usr/bin/env", "taskset", "-c", str(core), sys.executable]
    command += ["-m", "benchmarks.stream", "--drain", broker.address, topics.prefix]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(json.loads(said)["seconds"])


def _places_for(broker: kafka.Broker, cores: list[int], workers: int) -> str:
    """Return the broker the cores that no worker has; all of them where there are none left."""
    left = cores[workers:] or cores
    for thread in Path(f"/proc/{broker.pid}/task").iterdir():
        with suppress(OSError):  # a thread that has just ended
            os.sched_setaffinity(int(thread.name), left)
    return ",".join(map(str, left)) + ("" if cores[workers:] else " (shared with the workers)")


def _cpu(pid: int) -> float:
    """Read the seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="spans through Kafka, one worker and two")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--spans", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=2, help="the best of so many is taken")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--drain", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        address, prefix, share = given.worker
        work(address, prefix, int(share))
        return
    if given.drain:
        drain(*given.drain)
        return
    threads = decoding(given.spans // 4, 3)
    with kafka.running() as broker:
        runs = [
            measure(broker, given.spans, workers) for _ in range(given.rounds) for workers in (1, 2)
        ]
    tables: dict[str, list[Row]] = {
        "runs": [*runs],
        "decoding by threads": [threads],
    }
    say(tables, targets(runs, threads), as_json=given.json)


def targets(runs: list[dict[str, Any]], threads: dict[str, Any]) -> dict[str, Target]:
    """Hold the best runs against what is wanted of them."""
    one = [run for run in runs if run["workers"] == 1]
    two = [run for run in runs if run["workers"] == 2]

    def best(of: list[dict[str, Any]], what: str) -> float:
        return float(max(run[what] for run in of))

    each = "spans_per_worker_cpu_second"
    thrown = best(one, "spans_per_second") / best(one, "spans_per_second_thrown_away")
    by_threads = {
        "times as fast with two threads": at_least(threads["times"], TARGETS["threads"]),
    }
    return {
        "spans per worker's CPU second with two of them, of those with one": at_least(
            round(best(two, each) / best(one, each), 2), TARGETS["workers"]
        ),
        **(by_threads if way() == "native" else {}),
        "of what a consumer reads that throws values away": at_least(
            round(thrown, 2), TARGETS["of the client"]
        ),
    }


if __name__ == "__main__":
    main()
