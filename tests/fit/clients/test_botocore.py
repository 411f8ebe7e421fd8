"""botocore against real servers on loopback: what callers see, and one name at both ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Final

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from opentelemetry.instrumentation.botocore import BotocoreInstrumentor

from ldfi.fit.answers import answer_of, wire
from ldfi.fit.clients import botocore as ours
from ldfi.fit.protocol.kinds import NAMED
from ldfi.fit.protocol.native_kinds import native
from tests.fit.clients.callers import HOST, NOBODY, calling, hidden
from tests.fit.clients.contract import Requests, holds, seen, unharmed
from tests.fit.clients.dying import Behaviour, dying, hang, nobody, nowhere, reset, says
from tests.fit.clients.seen_of_kinds import BY_THEMSELVES

PATIENCE: Final = 0.3
LISTED: Final = b'{"QueryExecutionIds": ["q"]}'
FINE: Final = says(
    b"HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.1\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n" % len(LISTED) + LISTED
)
SEEN: Final = BY_THEMSELVES["botocore"]


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    instrumentor: Any = BotocoreInstrumentor
    instrumentor().instrument(tracer_provider=requests_made.provider)
    yield
    instrumentor().uninstrument()


@cache
def aws() -> botocore.session.Session:
    session = botocore.session.Session()
    session.set_credentials("key", "secret")
    return session


def client(service: str, port: int, attempts: int = 1) -> Any:
    return aws().create_client(
        service,
        verify=False,
        region_name="eu-west-1",
        endpoint_url=f"http://{HOST.get()}:{port}",
        config=Config(
            connect_timeout=1,
            read_timeout=PATIENCE,
            retries={"total_max_attempts": attempts, "mode": "standard"},
        ),
    )


def ask(port: int, attempts: int = 1) -> Any:
    found = client("athena", port, attempts).list_query_executions()
    return found.get("QueryExecutionIds")


def point(port: int) -> str:
    return f"api>rpc:ListQueryExecutions:{HOST.get()}:{port}/Athena"


def look(call: Callable[[], Any]) -> tuple[str, str]:
    """What a caller sees: which exception, and its words."""
    try:
        return "200", str(call())
    except Exception as failure:  # noqa: BLE001 - whatever the caller sees
        name = f"{type(failure).__module__}.{type(failure).__name__}"
        return name, hidden(str(failure))


def really(kind: str) -> AbstractContextManager[int]:
    """A server to which this really happens."""
    if kind == "refused":
        return nobody()
    if kind in NAMED:
        return nowhere()
    behaviours: dict[str, Behaviour] = {"reset": reset, "timeout": hang}
    answer = answer_of(kind)
    return dying(behaviours[kind] if answer is None else says(wire(answer)))


@pytest.mark.parametrize(("client", "kind"), [("botocore", kind) for kind in SEEN])
def test_a_caller_sees_what_it_really_sees(requests_made: Requests, client: str, kind: str) -> None:
    with really(kind) as port, calling(NOBODY if kind in NAMED else "127.0.0.1"):
        real = look(lambda: ask(port))
    with dying(FINE) as port, calling("localhost" if kind in NAMED else "127.0.0.1"):
        with requests_made.request(f"{kind}@{point(port)}", delay_ms=1_000):
            injected = look(lambda: ask(port))

        assert injected == real
        assert injected[0].rpartition(".")[2] == SEEN[kind]
        assert requests_made.lineage().fired == {f"{kind}@{point(port)}"}
        assert requests_made.lineage().called == {point(port)}
        assert native(kind, point(port))


def test_one_name_at_both_ends(requests_made: Requests) -> None:
    def unavailable(answer: object) -> bool:
        return isinstance(answer, ClientError) and "503" in str(answer)

    def late(answer: object) -> bool:
        return isinstance(answer, BotoCoreError) and "Read timeout" in str(answer)

    with dying(FINE) as port:
        holds(requests_made, point(port), seen(lambda: ask(port)), unavailable, late)
        unharmed(requests_made, ours, point(port), seen(lambda: ask(port)), unavailable)


def test_its_own_retries_save_it(requests_made: Requests) -> None:
    with dying(FINE) as port:
        with requests_made.request(f"status:500:1@{point(port)}"):
            assert ask(port, attempts=2) == ["q"]
        assert requests_made.lineage().fired == {f"status:500@{point(port)}"}
        assert requests_made.lineage().support == {point(port)}


def test_a_database_is_one_to_the_lineage(requests_made: Requests) -> None:
    with dying(FINE) as port:
        dynamodb = client("dynamodb", port)
        with requests_made.request():
            dynamodb.list_tables()
        (name,) = requests_made.lineage().called
        with (
            requests_made.request(f"refused@{name}"),
            pytest.raises(BotoCoreError, match="Could not connect"),
        ):
            dynamodb.list_tables()
        assert requests_made.lineage().fired == {f"refused@{name}"}
