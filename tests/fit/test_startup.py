"""Switching on and off: in one line, from the environment, and as if it had never been."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpcore
import pytest
import wrapt

from ldfi import fit
from ldfi.fit import patching, runtime, uninstall
from ldfi.fit.clients import LIBRARIES

ROOT = Path(__file__).parents[2]
KEY = "test:0123456789abcdef"


@pytest.fixture(autouse=True)
def off_again() -> Iterator[None]:
    yield
    uninstall()


def run(program: str, *before: str, **environment: str) -> dict[str, object]:
    """What a program of its own prints, as JSON."""
    ours = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [*before, sys.executable, "-c", program],
        env=ours,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.parametrize("key", ["", "broken", "k:short"])
def test_without_a_key_nothing_is_patched(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = httpcore.ConnectionPool.handle_request
    monkeypatch.setenv("FIT_KEYS", key)

    assert fit.install("api") is False
    assert httpcore.ConnectionPool.handle_request is before
    assert runtime.active() is None


def test_installing_again_changes_nothing_and_uninstalling_restores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = httpcore.ConnectionPool.handle_request
    monkeypatch.setenv("FIT_KEYS", KEY)

    assert fit.install("api") is True
    patched = httpcore.ConnectionPool.handle_request
    assert patched is not before
    assert fit.install("other") is True
    assert httpcore.ConnectionPool.handle_request is patched
    active = runtime.active()
    assert active is not None
    assert active.service == "other"

    uninstall()
    assert httpcore.ConnectionPool.handle_request is before
    assert runtime.active() is None


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"OTEL_SERVICE_NAME": "api", "OTEL_RESOURCE_ATTRIBUTES": "service.name=no"}, "api"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "a=b, service.name = api ,c=d"}, "api"),
        ({}, "unknown_service"),
    ],
)
def test_the_name_is_the_one_that_spans_carry(
    environment: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in ({"FIT_KEYS": KEY} | environment).items():
        monkeypatch.setenv(variable, value)
    assert fit.install()
    active = runtime.active()
    assert active is not None
    assert active.service == name


@pytest.mark.parametrize("before", [True, False])
def test_what_is_to_be_done_when_a_module_is_imported_is_done_once_it_is(
    before: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, done = f"some_library_{before}", list[bool]()
    (tmp_path / f"{name}.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    if not before:
        importlib.import_module(name)
    patching.when_imported(name, lambda: done.append(hasattr(sys.modules[name], "VALUE")))
    assert done == ([] if before else [True])
    importlib.import_module(name)
    assert done == [True]


OURS_ANYWAY = {"http.client"}
"""What fit itself needs, too."""


@pytest.mark.long
def test_a_library_is_patched_when_it_is_imported_and_none_is_imported_for_it() -> None:
    program = f"""
import json, sys
from ldfi import fit
fit.install("api")
heavy = [each for each in {sorted(LIBRARIES.keys() - OURS_ANYWAY)} if each in sys.modules]
import redis, grpc, sqlalchemy, kafka, aiohttp, urllib3, httpcore
from sqlalchemy import event
from sqlalchemy.engine import Engine
from ldfi.fit.clients import sqlalchemy as ours
marked = [hasattr(f, "_fit_original") for f in (
    redis.Redis._send_command_parse_response, grpc._channel._UnaryUnaryMultiCallable.__call__,
    kafka.KafkaProducer.send, aiohttp.ClientRequest.send, Engine.connect,
    urllib3.HTTPConnectionPool._make_request, httpcore.ConnectionPool.handle_request,
    grpc.aio._channel.Channel.__init__)]
listening = event.contains(Engine, "do_execute", ours._execute)
print(json.dumps({{"heavy": heavy, "patched": all(marked), "listening": listening}}))
"""
    assert run(program, FIT_KEYS=KEY) == {"heavy": [], "patched": True, "listening": True}


@pytest.mark.long
def test_opentelemetry_instrument_switches_it_on() -> None:
    program = """
import json, httpcore
from ldfi.fit import runtime
patched = hasattr(httpcore.ConnectionPool.handle_request, "_fit_original")
active = runtime.active()
print(json.dumps({"patched": patched, "name": active.service if active else None}))
"""
    environment = {
        "OTEL_SERVICE_NAME": "api",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }
    around = str(Path(sys.executable).with_name("opentelemetry-instrument"))
    assert run(program, around, FIT_KEYS=KEY, **environment) == {"patched": True, "name": "api"}
    assert run(program, around, **environment) == {"patched": False, "name": None}


class Library:
    """Some library's client."""

    def send(self) -> str:
        return "sent"


def test_beneath_a_proxy_that_was_there_first_and_out_again() -> None:
    order: list[str] = []

    class Client(Library):
        def send(self) -> str:
            order.append("library")
            return "sent"

    original = vars(Client)["send"]

    def instrumentation(wrapped: object, _: object, args: object, kwargs: object) -> str:
        order.append("instrumentation")
        return wrapped()  # type: ignore[operator, no-any-return]

    wrapt.wrap_function_wrapper(Client, "send", instrumentation)

    def ours(function: object) -> object:
        def send(client: Client) -> str:
            order.append("fit")
            return function(client)  # type: ignore[operator, no-any-return]

        return send

    patching.put(Client, "send", ours)
    patching.put(Client, "send", ours)
    assert Client().send() == "sent"
    assert order == ["instrumentation", "fit", "library"]

    order.clear()
    patching.take_out_all()
    Client().send()
    assert order == ["instrumentation", "library"]
    assert vars(Client)["send"].__wrapped__ is original


def test_a_library_that_has_changed_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    patching.when_imported("httpcore", lambda: patching.put(Library, "gone", lambda f: f))

    assert "no injection points in httpcore" in caplog.text
    assert Library().send() == "sent"
