"""What is logged as JSON is one object a line, whatever is in it."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import textwrap
import time
from datetime import datetime
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.api import problems
from ldfi.experiments.api.request_ids import NameRequests
from ldfi.experiments.telemetry.logs import JsonLines

ANYTHING = st.text(alphabet=st.characters(), max_size=40)


def line(message: str, *words: object, **more: Any) -> dict[str, Any]:
    about = more.pop("extra", {})
    made = logging.LogRecord("ldfi", logging.WARNING, "x.py", 1, message, words, **more)
    made.__dict__.update(about)
    written = JsonLines().format(made)
    assert "\n" not in written
    assert written.isascii()
    found: dict[str, Any] = json.loads(written)
    return found


@given(ANYTHING, ANYTHING)
def test_whatever_is_logged_is_one_line(said: str, about: str) -> None:
    found = line("%s", said, exc_info=None, extra={"experiment": about, "stranger": "x"})

    words = {"level": "warning", "logger": "ldfi", "message": said, "experiment": about}
    assert found == {"time": found["time"], **words}
    at = datetime.fromisoformat(found["time"])
    assert at.utcoffset() is not None
    assert abs(time.time() - at.timestamp()) < 60
    assert found["time"].endswith("Z")


def test_an_exception_stands_in_its_line() -> None:
    with pytest.raises(ValueError, match="invalid literal") as failed:
        int("two\nlines")

    error = failed.value
    found = line("failed", exc_info=(type(error), error, error.__traceback__))

    assert found["message"] == "failed"
    assert found["exception"].startswith("Traceback")
    assert found["exception"].endswith(r"'two\nlines'")


def run(form: str, levels: list[str], code: str) -> list[list[str]]:
    """What a process of its own writes that sets its log up so, one level after the other."""
    begin = (
        "import logging, sys, warnings\n"
        "from ldfi.experiments.telemetry.logs import set_up\n"
        "warnings.simplefilter('always')\n"
        f"for level in {levels}:\n"
        "    print('--', file=sys.stderr, flush=True)\n"
        "    logging.getLogger().handlers.clear()\n"
        f"    set_up({form!r}, level)\n"
    )
    command = [sys.executable, "-c", begin + textwrap.indent(textwrap.dedent(code), "    ")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stdout
    return [each.splitlines() for each in done.stderr.split("--\n")[1:]]


EVERYTHING = """
    import threading
    logging.getLogger("ldfi").debug("ours, debug")
    logging.getLogger("ldfi.experiments.api").info("ours, info")
    logging.getLogger("httpx").info("https://hooks.example/secret")
    logging.getLogger("kafka").warning("theirs")
    logging.getLogger("ldfi").error("ours, error")
    warnings.warn("old")
    thread = threading.Thread(target=lambda: 1 / 0, name="ingest")
    thread.start()
    thread.join()
"""


SAID = {
    "debug": ["ours, debug", "ours, info", "theirs", "ours, error"],
    "info": ["ours, info", "theirs", "ours, error"],
    "warning": ["theirs", "ours, error"],
    "error": ["ours, error"],
}


def test_a_level_is_for_us_and_libraries_never_say_more_than_warnings() -> None:
    for level, written in zip(SAID, run("json", list(SAID), EVERYTHING), strict=True):
        lines = [json.loads(each) for each in written]
        warned = [each for each in lines if each["logger"] == "py.warnings"]
        assert len(warned) == (level != "error")
        died = lines[-1]
        assert died["message"] == "the thread ingest has died"
        assert "ZeroDivisionError" in died["exception"]
        assert [each["message"] for each in lines[:-1] if each not in warned] == SAID[level]


def test_text_is_as_it_ever_was() -> None:
    ((written,),) = run("text", ["info"], "logging.getLogger('ldfi').warning('so %s', 'it is')")

    assert written.endswith(" ldfi WARNING so it is")


def ask(path: str, headers: dict[str, str]) -> httpx.Response:
    app = FastAPI()
    problems.install(app)
    app.add_middleware(NameRequests)

    @app.get("/thread")
    def thread() -> None:
        raise ZeroDivisionError

    @app.get("/loop")
    async def loop() -> None:
        raise ZeroDivisionError

    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(answer())


@pytest.mark.parametrize("path", ["/thread", "/loop"])
@pytest.mark.parametrize(
    ("given", "kept"),
    [("3f1c-A.b_9", True), ("a" * 65, False), ("x y", False), ('"}', False), (None, False)],
)
def test_a_request_and_its_log_have_one_id(path: str, given: str | None, kept: bool) -> None:
    lines: list[dict[str, Any]] = []

    class VerdictInputs(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(JsonLines().format(record)))

    log, handler = logging.getLogger("ldfi"), VerdictInputs()
    log.addHandler(handler)
    try:
        answer = ask(path, {} if given is None else {"X-Request-ID": given})
    finally:
        log.removeHandler(handler)

    named = answer.headers.get_list("x-request-id")
    assert len(named) == 1
    assert (named[0] == given) == kept
    assert [each["request"] for each in lines] == named
    assert lines[0]["incident"] == answer.json()["incident"]
