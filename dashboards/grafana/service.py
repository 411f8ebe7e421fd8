"""Whether the service itself is well: its engine, what it receives, its edges, its API."""

from __future__ import annotations

from ldfi.dashboards.grafana.board import Rows, board
from ldfi.dashboards.grafana.panels import (
    BYTES,
    GREEN,
    NUMBER_HEIGHT,
    ORANGE,
    PER_SECOND,
    RED,
    SECONDS,
    SHARE,
    Query,
    lines,
    number,
)

_RATE = "$__rate_interval"
_ERRORS = "sum(rate(ldfi_http_requests_total{status=~'5..'}[5m])) or vector(0)"


def _quantile(share: float, metric: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket[{_RATE}])))"


def _dropped(reasons: str) -> Query:
    return Query(
        f"sum by (reason) (rate(ldfi_dropped_total{{reason=~'{reasons}'}}[{_RATE}]))", "{{reason}}"
    )


HEALTH = [
    number(
        "Processes up",
        "Processes of ldfi that answer Prometheus.",
        "sum(up{job='ldfi'})",
        words={0: ("DOWN", RED)},
    ),
    number(
        "Leaders",
        "The process that has the engine. Without one nothing is injected and nothing learned.",
        "sum(ldfi_leads)",
        words={0: ("NONE", RED)},
    ),
    number(
        "Since the last step",
        "The engine steps twenty times a second. While it does not, leases run out by themselves.",
        "max(ldfi_tick_age_seconds)",
        unit=SECONDS,
        levels=[(1, ORANGE), (5, RED)],
    ),
    number(
        "Database",
        "While the record cannot be kept nothing is armed.",
        "min(ldfi_database_up)",
        words={0: ("DOWN", RED), 1: ("answers", GREEN)},
    ),
    number(
        "Edges",
        "Edges that asked for rules within the last lease.",
        "max(ldfi_edges)",
    ),
    number(
        "Requests that fail",
        "Share of the API's answers of the last five minutes that were 5xx.",
        f"({_ERRORS}) / sum(rate(ldfi_http_requests_total[5m]))",
        unit=SHARE,
        levels=[(0.001, ORANGE), (0.01, RED)],
    ),
    number(
        "Notifications waiting",
        "Not delivered yet, once for each target that waits.",
        "max(ldfi_notifications_waiting)",
    ),
    number(
        "Behind what Kafka holds",
        "Messages that nobody has read yet, at most; 0 without Kafka, too.",
        "max(ldfi_ingest_lag_messages or ldfi_intake_lag_messages or vector(0))",
        levels=[(10_000, ORANGE), (100_000, RED)],
    ),
    lines(
        "Alerts that fire",
        "By the rules of deploy/prometheus/rules.yml. Empty is good.",
        Query(
            "sum by (alertname) (ALERTS{alertname=~'Ldfi.*', alertstate='firing'})",
            "{{alertname}}",
        ),
        stacked=True,
        width=24,
    ).height(NUMBER_HEIGHT),
]

ENGINE = [
    lines(
        "How long a step takes",
        "Twenty a second are due, so 0.05 s is all a step has.",
        Query(_quantile(0.5, "ldfi_tick_seconds"), "half of them"),
        Query(_quantile(0.99, "ldfi_tick_seconds"), "99 of 100"),
        unit=SECONDS,
    ),
    lines(
        "How late a step begins",
        "Half a second in one of ten is an alert.",
        Query(_quantile(0.9, "ldfi_tick_lag_seconds"), "9 of 10"),
        Query(_quantile(0.99, "ldfi_tick_lag_seconds"), "99 of 100"),
        unit=SECONDS,
    ),
    lines(
        "Since the last step, by process",
        "More than five seconds is an alert.",
        Query("ldfi_tick_age_seconds", "{{instance}}"),
        unit=SECONDS,
    ),
    lines(
        "How long it takes to say what to try next",
        "Mostly the solver.",
        Query(_quantile(0.5, "ldfi_propose_seconds"), "half of them"),
        Query(_quantile(0.99, "ldfi_propose_seconds"), "99 of 100"),
        unit=SECONDS,
    ),
    lines(
        "Steps that failed, within five minutes",
        "Each has disarmed everything; the log says why.",
        Query("sum by (instance) (increase(ldfi_ticks_failed_total[5m]))", "{{instance}}"),
    ),
    lines(
        "Database transactions",
        "How long 99 of 100 were open.",
        Query(_quantile(0.99, "ldfi_transaction_seconds", "kind"), "{{kind}}"),
        unit=SECONDS,
    ),
]

INGEST = [
    lines(
        "Received",
        "Spans, and what devices reported.",
        Query(f"sum(rate(ldfi_spans_received_total[{_RATE}]))", "spans"),
        Query(f"sum(rate(ldfi_outcomes_received_total[{_RATE}]))", "device metrics"),
        unit=PER_SECOND,
    ),
    lines(
        "Traces being put together",
        "Requests whose spans still come in.",
        Query("sum(ldfi_traces_open)", "traces"),
    ),
    lines(
        "The oldest of them",
        "How far behind what is known is: it grows where spans are missing or come late.",
        Query("max(ldfi_traces_oldest_seconds)", "open since"),
        unit=SECONDS,
    ),
    lines(
        "What becomes of traces",
        "cut, rootless: they missed something when patience was over. late: of the whole ones, a "
        "span came afterwards. unjoined: no device reported.",
        Query(f"sum by (fate) (rate(ldfi_traces_total[{_RATE}]))", "{{fate}}"),
        unit=PER_SECOND,
    ),
    lines(
        "Spans lost",
        "Late, oversize, unreadable, or pushed out because there was no room.",
        _dropped("span_.*|trace_.*"),
        unit=PER_SECOND,
    ),
    lines(
        "Device metrics not used",
        "late: after the verdict. unknown_experiment: of no experiment we know. join_duplicate: a "
        "second report on one trace; join_contradiction: one that says something else, of which "
        "the worse counts. join_not_drawn: of a device that no edge drew. join_no_outcome, "
        "join_unknown_trace: one came without the other.",
        _dropped("late|join_.*|metric_.*|unknown_experiment"),
        unit=PER_SECOND,
    ),
    lines(
        "Requests of no class",
        "Nothing is learned from them.",
        _dropped("class_.*"),
        unit=PER_SECOND,
    ),
]

STREAMS = [
    lines(
        "Behind what Kafka holds, in messages",
        "Of each ingest worker, and of the leader, which takes in what they have put together.",
        Query("ldfi_ingest_lag_messages", "{{instance}}"),
        Query("ldfi_intake_lag_messages", "leader"),
    ),
    lines(
        "Read by the ingest workers",
        "Spans, and requests of which both halves were put together.",
        Query(f"sum(rate(ldfi_ingest_spans_total[{_RATE}]))", "spans"),
        Query(f"sum(rate(ldfi_ingest_observations_total[{_RATE}]))", "requests"),
        unit=PER_SECOND,
    ),
    lines(
        "Requests being put together",
        "Of each ingest worker.",
        Query("ldfi_ingest_requests_open", "{{instance}}"),
    ),
    lines(
        "Read, and not used",
        "By reason.",
        Query(
            f"sum by (reason) (rate(ldfi_ingest_dropped_total[{_RATE}]))",
            "{{reason}}",
        ),
        unit=PER_SECOND,
    ),
    lines(
        "Dead letters within five minutes",
        "Messages that could not be read; they are kept in a topic of their own.",
        Query("sum by (instance) (increase(ldfi_ingest_dead_letters_total[5m]))", "{{instance}}"),
    ),
    lines(
        "Partitions",
        "Of each ingest worker; their sum is that of the topic.",
        Query("ldfi_ingest_partitions", "{{instance}}"),
        stacked=True,
    ),
]

API = [
    lines(
        "Edges, by process",
        "That asked for rules within the last lease.",
        Query("ldfi_edges", "{{instance}}"),
    ),
    lines(
        "Edges ask for rules",
        "By status. An edge that finds nothing new is kept waiting, so few requests are normal.",
        Query(
            "sum by (status) "
            f"(rate(ldfi_http_requests_total{{route='/api/v1/edge/rules'}}[{_RATE}]))",
            "{{status}}",
        ),
        unit=PER_SECOND,
    ),
    lines(
        "Requests",
        "By status, without the edges'.",
        Query(
            "sum by (status) "
            f"(rate(ldfi_http_requests_total{{route!='/api/v1/edge/rules'}}[{_RATE}]))",
            "{{status}}",
        ),
        unit=PER_SECOND,
    ),
    lines(
        "Requests that failed",
        "5xx, by route.",
        Query(
            f"sum by (route, status) (rate(ldfi_http_requests_total{{status=~'5..'}}[{_RATE}]))",
            "{{status}} {{route}}",
        ),
        unit=PER_SECOND,
    ),
    lines(
        "Requests that were refused",
        "4xx, by route. 401 and 403: a token is wrong or has run out. 429: too many.",
        Query(
            f"sum by (route, status) (rate(ldfi_http_requests_total{{status=~'4..'}}[{_RATE}]))",
            "{{status}} {{route}}",
        ),
        unit=PER_SECOND,
    ),
    lines(
        "How long answers take",
        "Until 99 of 100 began, by route; without those to edges, which wait on purpose.",
        Query(
            "histogram_quantile(0.99, sum by (le, route) (rate(ldfi_http_request_seconds_bucket"
            f"{{route!~'/api/v1/edge/rules|/api/v1/events'}}[{_RATE}])))",
            "{{route}}",
        ),
        unit=SECONDS,
    ),
]

PROCESS = [
    lines(
        "CPU",
        "Cores used by each process.",
        Query(f"rate(process_cpu_seconds_total{{job='ldfi'}}[{_RATE}])", "{{instance}}"),
    ),
    lines(
        "Memory",
        "Of each process.",
        Query("process_resident_memory_bytes{job='ldfi'}", "{{instance}}"),
        unit=BYTES,
    ),
    lines(
        "Open files",
        "Of each process, as a share of what it may open.",
        Query("process_open_fds{job='ldfi'} / process_max_fds{job='ldfi'}", "{{instance}}"),
        unit=SHARE,
    ),
]

ROWS: Rows = {
    "Is it well?": HEALTH,
    "Engine": ENGINE,
    "What it receives": INGEST,
    "Streams, where there is Kafka": STREAMS,
    "Edges and API": API,
    "Processes": PROCESS,
}

DASHBOARD = board(
    "ldfi-service",
    "ldfi: the service",
    "Whether the service itself is well: its engine, what it receives, its edges, its API.",
    "now-1h",
    ROWS,
    folded=True,
)
