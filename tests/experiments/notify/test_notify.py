"""Notifications against a real server, which is sometimes broken."""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ldfi.errors import InvalidTarget, NotDelivered
from ldfi.experiments.notify import outbox
from ldfi.experiments.notify.notification import Notification
from ldfi.experiments.notify.outbox import ATTEMPTS, deliver
from ldfi.experiments.notify.slack import Slack, slack_message
from ldfi.experiments.notify.target import Target
from ldfi.experiments.notify.webhook import Webhook, signature
from ldfi.testing.live_service import served

SECRET = "0123456789abcdef"
FOUND = Notification(
    event="finding",
    title="Search fails without <ratings> & titles",
    text="api>http:GET:ratings/titles/* and *titles* together: größer",
    link="https://ldfi.example/findings/f1?a=1&b=2",
    at=1790000000.5,
    details={"finding": "f1", "points": ["api>http:GET:ratings/titles/*"]},
)


@dataclass
class Receiver:
    """Answers with these statuses, then with 204; keeps what it got."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    got: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)

    async def receive(self, request: Request) -> Response:
        self.got.append((dict(request.headers), await request.body()))
        status = self.statuses.pop(0) if self.statuses else 204
        return Response(status_code=status, headers={"location": "/elsewhere"})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with served(Starlette(routes=[Route("/hook", receiver.receive, methods=["POST"])])) as root:
        receiver.url = f"{root}/hook"
        yield receiver


def send(target: Target) -> None:
    async def run() -> None:
        async with httpx.AsyncClient() as client:
            await deliver(target, FOUND, client, first_wait=0.01)

    asyncio.run(run())


def test_a_webhook_gets_the_notification_and_can_check_who_sent_it(receiver: Receiver) -> None:
    send(Webhook(receiver.url, SECRET))

    ((headers, body),) = receiver.got
    assert json.loads(body) == {**asdict(FOUND), "details": dict(FOUND.details)}
    assert headers["content-type"] == "application/json"
    signed = f"{headers['x-ldfi-timestamp']}.".encode() + body
    expected = hmac.digest(SECRET.encode(), signed, "sha256")
    assert headers["x-ldfi-signature"] == f"sha256={expected.hex()}"


def test_the_receiver_in_the_docs_takes_what_is_genuine_and_refuses_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LDFI_WEBHOOK_SECRET", SECRET)
    example: dict[str, Any] = {"__name__": "receiver"}
    text = (Path(__file__).parents[3] / "docs" / "notifications.md").read_text("utf-8")
    exec(text.split("```python\n")[1].split("```")[0], example)  # noqa: S102
    example["Receiver"].log_message = lambda *_: None

    with HTTPServer(("127.0.0.1", 0), example["Receiver"]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        send(Webhook(url, SECRET))
        with pytest.raises(NotDelivered, match="401"):
            send(Webhook(url, "another secret of some length"))
        stale = Webhook(url, SECRET).request(FOUND, "d1", now=1.0)
        assert httpx.post(url, content=stale.content, headers=stale.headers).status_code == 401
        server.shutdown()

    assert capsys.readouterr().out == FOUND.title + "\n"


@given(st.text(min_size=1), st.integers(0, 2**33), st.binary(), st.binary())
def test_a_signature_covers_it_all(secret: str, timestamp: int, body: bytes, other: bytes) -> None:
    signed = signature(secret, str(timestamp), body)

    assert signed == signature(secret, str(timestamp), body)
    assert signed != signature(secret + "x", str(timestamp), body)
    assert signed != signature(secret, str(timestamp + 1), body)
    assert (signed == signature(secret, str(timestamp), other)) == (body == other)


def test_a_receiver_that_fails_twice_gets_it_then_under_the_same_id(receiver: Receiver) -> None:
    receiver.statuses = [500, 429]

    send(Webhook(receiver.url, SECRET))

    assert len(receiver.got) == 3
    assert len({headers["x-ldfi-delivery"] for headers, _ in receiver.got}) == 1


def test_it_gives_up_in_the_end_and_says_what_was_wrong(receiver: Receiver) -> None:
    receiver.statuses = [503] * 20

    with pytest.raises(NotDelivered, match=r"'finding' did not reach 127\.0\.0\.1.*status 503"):
        send(Webhook(receiver.url, SECRET))

    assert len(receiver.got) == ATTEMPTS


@pytest.mark.parametrize("status", [400, 404, 410, 302])
def test_a_refusal_is_final_and_a_redirect_is_not_followed(receiver: Receiver, status: int) -> None:
    receiver.statuses = [status]

    with pytest.raises(NotDelivered, match=f"status {status}"):
        send(Webhook(receiver.url, SECRET))

    assert len(receiver.got) == 1


def test_nobody_there_is_told_without_the_secret_part_of_the_url() -> None:
    with pytest.raises(NotDelivered, match="ConnectError") as raised:
        send(Slack("http://127.0.0.1:1/services/T0/B0/secret"))

    assert "secret" not in str(raised.value)
    assert "secret" not in repr(Slack("http://127.0.0.1:1/services/secret"))
    assert SECRET not in repr(Webhook("http://127.0.0.1:1", SECRET))


def test_a_target_is_known_by_its_url_and_does_not_give_it_away() -> None:
    url = "http://hooks.example/services/T0/B0/secret"

    assert Slack(url).name == Slack(url).name
    assert Webhook(url, SECRET).name == Webhook(url, SECRET + "x").name
    assert len({Slack(url).name, Slack(url + "2").name, Webhook(url, SECRET).name}) == 3
    assert "secret" not in Slack(url).name
    assert len(Webhook(url, SECRET).name) <= 64


def test_a_receiver_that_drips_holds_nothing_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "TIMEOUT", 0.3)
    attempts = 0

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        try:
            while not writer.is_closing():
                writer.write(b"H")
                await asyncio.sleep(0.05)
        finally:
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, httpx.AsyncClient() as client:
            await deliver(Slack(f"http://127.0.0.1:{port}/"), FOUND, client, first_wait=0.01)

    with pytest.raises(NotDelivered, match=r"no answer within 0\.3 seconds"):
        asyncio.run(run())
    assert attempts == ATTEMPTS


def test_slack_gets_text_and_blocks_escaped_as_it_asks(receiver: Receiver) -> None:
    send(Slack(receiver.url))

    ((_, body),) = receiver.got
    title = "Search fails without &lt;ratings&gt; &amp; titles"
    text = "api&gt;http:GET:ratings/titles/* and *titles* together: größer"
    link = "https://ldfi.example/findings/f1?a=1&amp;b=2"
    details = {"type": "mrkdwn", "text": f"<{link}|Details>"}
    words = (("header", title), ("section", text))
    plain = {"type": "plain_text", "emoji": False}
    blocks = [{"type": kind, "text": {**plain, "text": said}} for kind, said in words]
    context = {"type": "context", "elements": [details]}
    whole = {"text": f"{title}\n{text}\n<{link}>", "blocks": [*blocks, context]}
    assert json.loads(body) == whole


@given(st.text("&<>|a", max_size=700), st.text("&<>|a", max_size=4000))
def test_no_text_breaks_out_or_is_longer_than_slack_takes(title: str, text: str) -> None:
    message = slack_message(replace(FOUND, title=title, text=text, link=None))

    whole = json.dumps(message, ensure_ascii=False)
    assert not {"<", ">"} & set(whole)
    for part, limit in zip(message["blocks"], (150, 3000), strict=False):  # type: ignore[call-overload]
        shown = part["text"]["text"]
        assert len(shown) <= limit
        assert shown.count("&") == sum(map(shown.count, ("&amp;", "&lt;", "&gt;")))


@pytest.mark.parametrize("url", ["", "ftp://x/y", "/hook", "http://", "http://a b:x/", "hook"])
def test_a_target_needs_a_url(url: str) -> None:
    with pytest.raises(InvalidTarget):
        Webhook(url, SECRET)
    with pytest.raises(InvalidTarget):
        Slack(url)


def test_a_webhook_needs_a_secret() -> None:
    with pytest.raises(InvalidTarget, match="16 characters"):
        Webhook("https://example.org", "short")
