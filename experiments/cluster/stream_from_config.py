"""From the configuration to the stream."""

from __future__ import annotations

from ldfi.errors import InvalidConfig
from ldfi.experiments.cluster.config import Config
from ldfi.experiments.streams.kafka import KafkaStream, Security
from ldfi.experiments.streams.stream import Topics


def stream_of(config: Config, client: str = "ldfi") -> KafkaStream:
    """Open the stream that a configuration names. Raises InvalidConfig where it names none."""
    if not config.kafka:
        raise InvalidConfig("there are no brokers: set LDFI_KAFKA to HOST:PORT")
    password = config.kafka_password
    security = Security(
        config.kafka_protocol,
        config.kafka_mechanism,
        config.kafka_username,
        password.get_secret_value() if password else None,
        config.kafka_ca_file,
        config.kafka_cert_file,
        config.kafka_key_file,
    )
    replicas = config.kafka_replicas or -1
    retention = Topics(config.kafka_prefix).retention(
        traffic=config.kafka_keep_traffic_hours * 3_600.0,
        events=config.kafka_keep_events_days * 86_400.0,
        dead_letters=config.kafka_keep_dead_letters_days * 86_400.0,
    )
    return KafkaStream(
        config.kafka, security, client=client, replicas=replicas, retention=retention
    )
