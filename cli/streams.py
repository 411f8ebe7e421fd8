"""``ldfi streams``: the topics of Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ldfi.cli.control import AsJson
from ldfi.cli.terminal import columns, console, show

if TYPE_CHECKING:
    from ldfi.experiments.streams.partition_growth import Growth

app = typer.Typer(help="The topics of Kafka: more partitions for them.", no_args_is_help=True)


@app.command()
def grow(
    partitions: Annotated[
        int, typer.Argument(min=1, max=10_000, help="How many each topic shall have.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would grow.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give spans, device metrics and observations more partitions, while nothing is in flight."""
    from ldfi.cli.extras import need
    from ldfi.errors import StreamError, Unreachable
    from ldfi.experiments.cluster.config import Config
    from ldfi.experiments.cluster.stream_from_config import stream_of
    from ldfi.experiments.streams import partition_growth
    from ldfi.experiments.streams.stream import Topics

    config = Config.load()
    need("kafka")
    from ldfi.experiments.streams.kafka_topics import KafkaTopics

    topics, keeper = Topics(config.kafka_prefix), KafkaTopics(stream_of(config, "ldfi-streams"))
    meanwhile = 0
    try:
        before = keeper.standing(topics)
        planned = partition_growth.plan(topics, before, partitions)
        if not dry_run:
            meanwhile = partition_growth.grow(keeper, topics, planned, before)
    except StreamError as error:
        raise Unreachable(str(error)) from error
    _show(planned, partitions, meanwhile, dry_run=dry_run, as_json=as_json)


def _show(
    planned: list[Growth], partitions: int, meanwhile: int, *, dry_run: bool, as_json: bool
) -> None:
    table = columns("topic", "partitions", "would have" if dry_run else "now")
    for each in planned:
        table.add_row(each.topic, str(each.before), str(each.after))
    document = {
        "dry_run": dry_run,
        "grown": [{"topic": e.topic, "before": e.before, "after": e.after} for e in planned],
        "written_meanwhile": meanwhile,
    }
    show(document, table if planned else "Nothing has to grow.", as_json=as_json)
    if meanwhile:
        console(stderr=True).print(
            f"{meanwhile} messages were written meanwhile; their requests may be cut in two."
        )
    if planned and not as_json and not dry_run:
        console(stderr=True).print(
            f"Set LDFI_KAFKA_PARTITIONS={partitions} for every process, and start them again."
        )
