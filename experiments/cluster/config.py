"""The configuration of the service: environment variables, a file, defaults; first wins.

Every option is a variable ``LDFI_NAME`` and a key ``name`` in a TOML file, which ``LDFI_CONFIG``
names and which else is ``ldfi.toml`` in the working directory, if it is there. A secret may also
stand in a file of its own, as containers have it: ``LDFI_NAME_FILE`` is the path. What is unknown
or out of range is an error, never ignored.

A list is a TOML array; as a variable it is a JSON array, or one item per line.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from ldfi.analysis.repairs.owners import Owners
from ldfi.analysis.repairs.request_names import Called
from ldfi.error_words import fault, value
from ldfi.errors import InvalidConfig, InvalidGuardrail
from ldfi.experiments.cluster.published_secrets import ADVICE, is_example
from ldfi.experiments.cluster.tokens import Tokens
from ldfi.experiments.domain.settings import Limits
from ldfi.experiments.domain.traffic.waiting_times import EXPORT, Waiting, quiet_for
from ldfi.experiments.scheduler.engine import OutcomeSource
from ldfi.experiments.telemetry.logs import LogFormat, LogLevel
from ldfi.experiments.telemetry.prometheus import check_guardrail

PREFIX: Final = "LDFI_"
FILE_VARIABLE: Final = "LDFI_CONFIG"
DEFAULT_FILE: Final = "ldfi.toml"
_OTHERS: Final = frozenset(
    {
        *(FILE_VARIABLE, "LDFI_URL", "LDFI_HALT_URL", "LDFI_TOKEN", "LDFI_DEVICE_TOKEN"),
        *("LDFI_ATTACHED", "LDFI_TRACES_TOKEN", "LDFI_TOKEN_FILE", "LDFI_TRACES_TOKEN_FILE"),
    }
)
"""Variables that are not options of the service: of the command line, the edges, the devices."""
_MAX_MEMBER_KEY: Final = 64
"""What BLAKE2b takes as a key, in bytes."""


def _lines(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
    return [line.strip() for line in value.splitlines() if line.strip()]


def _http(url: str | None) -> str | None:
    if url is not None and not url.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")
    return url.rstrip("/") if url is not None else None


def _trace_url(url: str | None) -> str | None:
    if url is not None and "{trace_id}" not in url:
        raise ValueError("must have {trace_id} where the id of a trace goes")
    return _http(url)


def _secret_http(url: SecretStr | None) -> SecretStr | None:
    if url is not None:
        _http(url.get_secret_value())
    return url


def _known_database(url: SecretStr) -> SecretStr:
    try:
        driver = make_url(url.get_secret_value()).drivername
    except ArgumentError:
        driver = ""
    if not (driver.partition("+")[0] == "sqlite" or driver == "postgresql+psycopg"):
        raise ValueError("must begin with sqlite:/// or postgresql+psycopg://")
    return url


def _short_enough(key: SecretStr | None) -> SecretStr | None:
    if key is not None and len(key.get_secret_value().encode()) > _MAX_MEMBER_KEY:
        raise ValueError(f"must have {_MAX_MEMBER_KEY} bytes at most")
    return key


def _readable_tokens(tokens: SecretStr) -> SecretStr:
    Tokens(tokens.get_secret_value())
    return tokens


def _readable_owners(path: str | None) -> str | None:
    if path is not None:
        owners_in(path)
    return path


def owners_in(path: str | None) -> Owners:
    """Read who owns which service; empty without a file. Raises ValueError."""
    if path is None:
        return Owners()
    try:
        return Owners.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot be read: {error}") from error


def _readable_names(path: str | None) -> str | None:
    if path is not None:
        called_in(path)
    return path


def called_in(path: str | None) -> Called:
    """Read how people call requests; by their own names where there is no file. Raises
    ValueError."""
    if path is None:
        return Called()
    try:
        return Called.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot be read: {error}") from error


def _conditions(guardrails: tuple[str, ...]) -> tuple[str, ...]:
    for promql in guardrails:
        try:
            check_guardrail(promql)
        except InvalidGuardrail as error:
            raise ValueError(str(error)) from error
    return guardrails


def _grpc_port(value: object) -> object:
    if value is None or (isinstance(value, str) and value.lower() == "off"):
        return None if value is None else "off"
    port = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(port, int) and not isinstance(port, bool) and 0 <= port <= 65535:
        return port
    raise ValueError("give a port, 0 to 65535, or off")


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


Lines = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_lines)]
Url = Annotated[str | None, AfterValidator(_http)]
TraceUrl = Annotated[str | None, AfterValidator(_trace_url)]
SecretUrl = Annotated[SecretStr | None, AfterValidator(_secret_http)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_known_database)]
MemberKey = Annotated[SecretStr | None, AfterValidator(_short_enough)]
OwnersFile = Annotated[str | None, AfterValidator(_readable_owners)]
NamesFile = Annotated[str | None, AfterValidator(_readable_names)]
GrpcPort = Annotated[int | Literal["off"] | None, BeforeValidator(_grpc_port)]
TokenList = Annotated[SecretStr, AfterValidator(_readable_tokens)]
Conditions = Annotated[Lines, AfterValidator(_conditions)]


class Config(BaseSettings):
    """Every option of the service. Times in seconds. :meth:`load` reads them."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        env_ignore_empty=True,
        validate_default=False,
    )

    database_url: DatabaseUrl = Field(
        SecretStr("sqlite:///ldfi.sqlite3"),
        description="Where the state is kept: `sqlite:///FILE` or "
        "`postgresql+psycopg://USER:PASSWORD@HOST/DATABASE` (the extra `ldfi[postgresql]`).",
    )
    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(8600, ge=0, le=65535, description="Port to listen on; 0: any free one.")
    halt_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="Port of a door for `ldfi halt` alone (`LDFI_HALT_URL`), which nothing that "
        "goes on at `port` can close (docs/safety.md); none: halting goes through `port`.",
    )
    grpc_port: GrpcPort = Field(
        None,
        description="Port for OTLP over gRPC (the extra `ldfi[grpc]`), 0: any free one; or `off`. "
        "By default 4317, where grpcio is installed and the port is free. Processes of the role "
        "`ingest` take none: they read Kafka.",
    )
    advertise_url: Url = Field(
        None,
        description="Where the other processes reach this one while it leads. By default "
        "`http://HOST:PORT`, with the name of the machine for a host of `0.0.0.0`.",
    )
    public_url: Url = Field(
        None, description="Where people reach the service; links in notifications begin with it."
    )
    trace_url: TraceUrl = Field(
        None,
        description="Where a trace can be looked at, with `{trace_id}` where its id goes; for "
        "Jaeger `https://jaeger.example.com/trace/{trace_id}`. Pages then link to it.",
    )
    owners_file: OwnersFile = Field(
        None, description="File like CODEOWNERS: who owns which service (docs/findings.md)."
    )
    names_file: NamesFile = Field(
        None, description="File in TOML: how people call requests (docs/findings.md)."
    )
    tokens: TokenList = Field(
        SecretStr(""),
        description="Bearer tokens, `ROLE:TOKEN` or `NAME@ROLE:TOKEN`, separated by commas; roles "
        "viewer, operator, admin, ingest, devices, edge, metrics. More can be made with "
        "`ldfi token`.",
    )
    member_key: MemberKey = Field(
        None,
        min_length=16,
        description="Key with which members and devices are hashed at the door. Without one a new "
        "key is made at each start: then nobody is recognised after a restart, and several "
        "processes do not recognise each other's devices.",
    )
    signing_key: SecretStr | None = Field(
        None,
        description="Private key of Ed25519 in PEM with which the head of the chain of runs is "
        "signed (docs/certificates.md); while one key takes over from another, both. Needs "
        "`ldfi[signing]`. Without one, certificates are unsigned.",
    )
    log_format: Annotated[LogFormat, BeforeValidator(_lower)] = Field(
        "text",
        description="Lines of the log: `text` for people, `json` for programs (docs/metrics.md).",
    )
    log_level: Annotated[LogLevel, BeforeValidator(_lower)] = Field(
        "info", description="From where on is logged: `debug`, `info`, `warning` or `error`."
    )
    lease: float = Field(
        10.0, ge=3, le=60, description="Seconds for which an edge may inject without news from us."
    )
    export_interval: float = Field(
        EXPORT,
        ge=0.05,
        le=60,
        description="Seconds after which services export their spans at the latest: the longest "
        "`OTEL_BSP_SCHEDULE_DELAY` there is, five by default, and a Collector's batches besides.",
    )
    quiet: float | None = Field(
        None,
        ge=0.1,
        le=90,
        description="Seconds without a span after which a trace is whole that misses nothing. By "
        "default `export_interval` and two fifths of it more.",
    )
    patience: float | None = Field(
        None,
        ge=0.1,
        le=600,
        description="Seconds without a span after which a trace is given up that misses something. "
        "By default twice `quiet`, and 10 at least.",
    )
    outcomes: OutcomeSource = Field(
        "devices",
        description="Who says how a request went: `devices` (device metrics), or `root`, the "
        "status of its root span, where an answer of 200 may hide an error.",
    )
    max_concurrent: int = Field(
        Limits().max_concurrent, ge=1, le=1000, description="Experiments that may run at once."
    )
    members_per_hour: int = Field(
        Limits().members_per_hour, ge=0, description="Devices exposed within any 60 minutes."
    )
    members_per_day: int = Field(
        Limits().members_per_day, ge=0, description="Devices exposed within any 24 hours."
    )
    protected_points: Lines = Field(
        (), description="Patterns with `*` of injection points that are never injected into."
    )
    protected_classes: Lines = Field(
        (), description="Patterns with `*` of request classes that are never experimented on."
    )
    keep_audit_days: int = Field(
        400,
        ge=2,
        description="Days for which `ldfi prune` keeps who did what, maintenance windows that are "
        "over, results of replays, and tokens that open nothing any more (revoked ones since they "
        "were made, however lately they were revoked).",
    )
    keep_details_days: int = Field(
        30,
        ge=1,
        description="Days for which `ldfi prune` keeps notifications, and what only people look at "
        "of an experiment.",
    )
    keep_lessons_days: int = Field(
        30,
        ge=1,
        description="Days for which `ldfi prune` keeps the results of experiments one by one; what "
        "older ones came to is kept for good.",
    )
    keep_runs_days: int = Field(
        90,
        ge=1,
        description="Days for which `ldfi prune` keeps the records of runs that no certificate "
        "rests on; of older ones their hashes and what they came to stay, which is signed.",
    )
    keep_experiments_days: int = Field(
        90,
        ge=2,
        description="Days for which `ldfi prune` keeps experiments that nothing rests on in lists "
        "and pages; older ones stay counted, and their runs in the chain.",
    )
    prometheus_url: Url = Field(
        None, description="Prometheus, which guardrails and outcomes counted elsewhere ask."
    )
    prometheus_token: SecretStr | None = Field(None, description="Bearer token for Prometheus.")
    guardrails: Conditions = Field(
        (),
        description="PromQL conditions that must hold; a breach disarms everything. "
        "Needs `prometheus_url`.",
    )
    webhook_url: SecretUrl = Field(None, description="Where notifications are posted, signed.")
    webhook_secret: SecretStr | None = Field(
        None, min_length=16, description="Key that signs them. Needed with `webhook_url`."
    )
    slack_url: SecretUrl = Field(
        None, description="Incoming webhook of Slack, or of what understands the same."
    )
    kafka: Lines = Field(
        (), description="Brokers, `HOST:PORT`. Without any, streams are in memory, in one process."
    )
    kafka_prefix: str = Field(
        "ldfi", pattern=r"^[A-Za-z0-9._-]{1,100}$", description="What all our topics begin with."
    )
    kafka_partitions: int = Field(
        12,
        ge=1,
        le=10_000,
        description="Partitions of the topics, when they are made: as many "
        "ingest workers can share the work at most. All processes must say the same.",
    )
    kafka_replicas: int = Field(
        0,
        ge=0,
        le=9,
        description="Replicas of the topics, when they are made; 0: as the brokers do.",
    )
    kafka_keep_traffic_hours: int = Field(
        24,
        ge=1,
        le=8_760,
        description="Hours for which the topics of spans, device metrics and observations keep "
        "what is written to them, when they are made: longer than workers or schedulers are ever "
        "down.",
    )
    kafka_keep_events_days: int = Field(
        30, ge=1, le=3_650, description="Days, the same for the topic of events."
    )
    kafka_keep_dead_letters_days: int = Field(
        14, ge=1, le=3_650, description="Days, the same for the topic of dead letters."
    )
    kafka_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="How to speak with the brokers; use `SASL_SSL` over any network."
    )
    kafka_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        None, description="SASL: `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`."
    )
    kafka_username: str | None = Field(None, description="SASL: who we are.")
    kafka_password: SecretStr | None = Field(None, description="SASL: how we prove it.")
    kafka_ca_file: str | None = Field(
        None, description="PEM file of the authorities that sign the brokers' certificates."
    )
    kafka_cert_file: str | None = Field(None, description="PEM file of our own certificate.")
    kafka_key_file: str | None = Field(None, description="PEM file of its key.")

    @model_validator(mode="after")
    def _together(self) -> Self:
        self.waiting()
        if self.halt_port is not None and self.halt_port == self.port:
            raise ValueError(f"halt_port must differ from port, got {self.port} for both")
        if self.grpc_port in {self.port, self.halt_port} - {0, None}:
            raise ValueError(f"grpc_port must differ from port and halt_port, got {self.grpc_port}")
        if self.halt_port is not None and self._in_memory():
            raise ValueError("halt_port requires a persistent database, not in-memory SQLite")
        if self.guardrails and self.prometheus_url is None:
            raise ValueError("guardrails need prometheus_url")
        if self.webhook_url is not None and self.webhook_secret is None:
            raise ValueError("webhook_url needs webhook_secret: receivers must be able to check")
        sasl = self.kafka_protocol.startswith("SASL")
        if sasl and not (self.kafka_mechanism and self.kafka_username and self.kafka_password):
            raise ValueError(
                f"kafka_protocol {self.kafka_protocol} needs kafka_mechanism, kafka_username and "
                "kafka_password"
            )
        return self

    def _in_memory(self) -> bool:
        url = make_url(self.database_url.get_secret_value())
        nameless = url.database in {None, "", ":memory:"} or url.query.get("mode") == "memory"
        return url.get_backend_name() == "sqlite" and nameless

    @classmethod
    def load(cls, **given: Any) -> Config:
        """Read environment and file; ``given``, where not None, goes first (options of a command).

        Raises InvalidConfig, with every fault found. No secret is in its message.
        """
        faults = list(_unknown_variables(os.environ))
        try:
            config = cls(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            faults += [_fault(item) for item in error.errors()]
        else:
            if not faults:
                return config
        raise InvalidConfig("\n".join(faults))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: a command's options, variables, secrets in files of their own, last
        the file."""
        return (
            init_settings,
            env_settings,
            _Read(settings_cls, _secret_files),
            _Read(settings_cls, _config_file),
        )

    def waiting(self) -> Waiting:
        """Return how long is waited for what belongs to one request. Raises ValueError."""
        quiet = quiet_for(self.export_interval) if self.quiet is None else self.quiet
        if quiet < self.export_interval and "export_interval" in self.model_fields_set:
            raise ValueError(
                f"quiet ({quiet:g}) is shorter than export_interval ({self.export_interval:g}): a "
                "trace would be taken as whole before all services have exported. Leave quiet out, "
                "or have services export more often (OTEL_BSP_SCHEDULE_DELAY) and say so"
            )
        return Waiting.of(quiet, self.patience)

    def hasty(self) -> bool:
        """Return whether ``quiet`` is too short for services that export at the default
        interval, and no interval was set."""
        return self.quiet is not None and self.quiet < self.export_interval

    def limits(self) -> Limits:
        """Return the limits that hold for all campaigns together."""
        return Limits(
            self.max_concurrent,
            self.members_per_hour,
            self.members_per_day,
            self.protected_points,
            self.protected_classes,
        )

    def examples(self) -> list[str]:
        """Name the options whose secret, or a part of it, everybody can read."""
        tokens = self.tokens.get_secret_value().split(",")
        password = make_url(self.database_url.get_secret_value()).password
        parts = {
            "database_url": [str(password or "")],
            "tokens": [each.rpartition(":")[2] for each in tokens],
        }
        for name in ("member_key", "webhook_secret", "prometheus_token", "kafka_password"):
            value: SecretStr | None = getattr(self, name)
            parts[name] = [] if value is None else [value.get_secret_value()]
        return [name for name, secrets in parts.items() if any(map(is_example, secrets))]

    def refuse_examples(self) -> None:
        """Raise InvalidConfig for a secret that everybody can read."""
        found = [variable(name) for name in self.examples()]
        if found:
            raise InvalidConfig(
                f"{', '.join(found)}: an example that is published, so it opens the door to "
                f"everybody; put a secret of your own there ({ADVICE})"
            )

    def shown(self) -> dict[str, Any]:
        """Show every option as it may be shown: secrets masked, of the database's only the
        password."""
        values = self.model_dump(mode="json")
        url = make_url(self.database_url.get_secret_value())
        return {**values, "database_url": url.render_as_string(hide_password=True)}


class _Read(PydanticBaseSettingsSource):
    """A source that is a plain function."""

    def __init__(self, settings: type[BaseSettings], read: Callable[[], dict[str, Any]]) -> None:
        super().__init__(settings)
        self._values = read

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Refuse: this is never asked, for all values are given at once."""
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        return self._values()


def variable(name: str) -> str:
    """Name the environment variable of an option."""
    return PREFIX + name.upper()


def is_secret(name: str) -> bool:
    """Return whether an option is never shown."""
    return "SecretStr" in str(Config.model_fields[name].annotation)


def origins(environ: Mapping[str, str]) -> dict[str, str]:
    """Return where each option that is set comes from: a variable's name, or a file's."""
    file = _file(environ)
    found = dict.fromkeys(_config_file(), str(file))
    for name in Config.model_fields:
        for each in (variable(name) + "_FILE", variable(name)):
            if environ.get(each):
                found[name] = each
    return found


def _file(environ: Mapping[str, str]) -> Path | None:
    named = environ.get(FILE_VARIABLE)
    if named:
        return Path(named)
    return Path(DEFAULT_FILE) if Path(DEFAULT_FILE).exists() else None


def _config_file() -> dict[str, Any]:
    file = _file(os.environ)
    if file is None:
        return {}
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidConfig(f"{file} cannot be read: {error}") from error
    unknown = [
        f"{file}: there is no option {name!r}{_nearest(name, Config.model_fields)}"
        for name in values
        if name not in Config.model_fields
    ]
    if unknown:
        raise InvalidConfig("\n".join(unknown))
    return values


def _secret_files() -> dict[str, Any]:
    values = {}
    for name in filter(is_secret, Config.model_fields):
        path = os.environ.get(variable(name) + "_FILE")
        if not path:
            continue
        if os.environ.get(variable(name)):
            raise InvalidConfig(f"{variable(name)} and {variable(name)}_FILE are both set: use one")
        try:
            values[name] = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise InvalidConfig(f"{variable(name)}_FILE cannot be read: {error}") from error
    return values


def _unknown_variables(environ: Mapping[str, str]) -> Iterator[str]:
    options = {variable(name) for name in Config.model_fields}
    files = {variable(name) + "_FILE" for name in Config.model_fields if is_secret(name)}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in options | files | _OTHERS:
            yield f"there is no variable {name}{_nearest(name, options | files | _OTHERS)}"


def _nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint on which name may have been meant. A prefix that all names share does not
    count."""
    bare = {each.removeprefix(PREFIX): each for each in known}
    close = difflib.get_close_matches(name.removeprefix(PREFIX), bare, n=1)
    return f"; did you mean {bare[close[0]]}?" if close else "; `ldfi config table` lists all"


def _fault(item: Any) -> str:
    """Return in one sentence what is wrong; the value is shown unless it is secret."""
    if not item["loc"]:
        return fault(item, Config.model_fields, shows=False)
    name = str(item["loc"][0])
    shows = name in Config.model_fields and not is_secret(name)
    said = fault(item, Config.model_fields, shows=shows)
    of_ours = shows and item["type"] in {"value_error", "assertion_error"}
    return f"{name}: {said}" + (f", got {value(item['input'])}" if of_ours else "")


def table() -> str:
    """Write all options as a Markdown table, which docs/reference has."""
    lines = ["| option | variable | default | range | meaning |", "|---|---|---|---|---|"]
    for name, field in Config.model_fields.items():
        file = "<br>`…_FILE`" if is_secret(name) else ""
        lines.append(
            f"| `{name}` | `{variable(name)}`{file} | {_default(field)} | {_range(field)} "
            f"| {field.description} |"
        )
    return "\n".join(lines)


def _default(field: FieldInfo) -> str:
    value = field.default
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    return f"`{value}`" if value not in {None, "", ()} else "none"


def _range(field: FieldInfo) -> str:
    bounds = {
        name: getattr(each, name)
        for each in field.metadata
        for name in ("ge", "le", "min_length")
        if getattr(each, name, None) is not None
    }
    if bounds.get("min_length", 1) > 1:
        return f"{bounds['min_length']} characters or more"
    if "le" in bounds:
        return f"{bounds['ge']} to {bounds['le']}"
    if "ge" in bounds:
        return f"{bounds['ge']} or more"
    if "tuple" in str(field.annotation):
        return "list"
    return "text"
