"""Forms that tests have in frameworks and beside plugins, each with three subjects: one needs a
call, one a call or its fallback, one none."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import multiprocessing
import sys
import threading
import unittest
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Subject = Callable[[], None]


def ask(service: str) -> None:
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200))) as http:
        http.get(f"http://{service}/").raise_for_status()


def needed() -> None:
    survived()
    ask("needed")


def pair() -> None:
    try:
        ask("first")
    except httpx.HTTPError:
        ask("second")


def survived() -> None:
    with suppress(httpx.HTTPError):
        ask("optional")


SUBJECTS = (needed, pair, survived)
each = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.__name__)
pytestmark = pytest.mark.ldfi

Task = tuple[Subject, "Future[None]"]
TASKS: SimpleQueue[Task] = SimpleQueue()


def work() -> None:
    while True:
        subject, done = TASKS.get()
        try:
            subject()
            done.set_result(None)
        except httpx.HTTPError as error:
            done.set_exception(error)


threading.Thread(target=work, daemon=True).start()


def handed_on(subject: Subject, begin: Callable[[Callable[[], None]], Any]) -> None:
    """Raise what a subject raises in a thread that ``begin`` makes."""
    done: Future[None] = Future()

    def within() -> None:
        try:
            subject()
            done.set_result(None)
        except httpx.HTTPError as error:
            done.set_exception(error)

    begin(within)
    done.result(20)


@each
def test_plain(subject: Subject) -> None:
    subject()


@each
def test_pool(subject: Subject) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(subject).result(20)


@each
def test_thread(subject: Subject) -> None:
    handed_on(subject, lambda within: threading.Thread(target=within).start())


@each
def test_timer(subject: Subject) -> None:
    handed_on(subject, lambda within: threading.Timer(0.001, within).start())


@each
def test_standing_thread(subject: Subject) -> None:
    done: Future[None] = Future()
    TASKS.put((subject, done))
    done.result(20)


@each
def test_other_context(subject: Subject) -> None:
    contextvars.Context().run(subject)


@each
def test_own_loop(subject: Subject) -> None:
    asyncio.run(asyncio.to_thread(subject))


@each
def test_executor(subject: Subject) -> None:
    async def run() -> None:
        await asyncio.get_running_loop().run_in_executor(None, subject)

    asyncio.run(run())


@pytest.mark.anyio
@each
async def test_anyio(subject: Subject) -> None:
    await anyio.to_thread.run_sync(subject)


@pytest.fixture(scope="session")
def for_session() -> Iterator[Callable[[Subject], None]]:
    ask("session")
    yield lambda subject: subject()
    ask("session")


@pytest.fixture(scope="module")
def for_module() -> Callable[[Subject], None]:
    ask("module")
    return lambda subject: subject()


@pytest.fixture(scope="class")
def for_class() -> Callable[[Subject], None]:
    ask("class")
    return lambda subject: subject()


@pytest.fixture(params=["one", "two"])
def with_params(request: Any) -> Callable[[Subject], None]:
    ask(request.param)
    return lambda subject: subject()


@pytest.fixture
def indirect(request: Any) -> Subject:
    found: Subject = request.param
    return found


@each
def test_session_fixture(subject: Subject, for_session: Callable[[Subject], None]) -> None:
    for_session(subject)


@each
def test_module_fixture(subject: Subject, for_module: Callable[[Subject], None]) -> None:
    for_module(subject)


class TestClass:
    @each
    def test_class_fixture(self, subject: Subject, for_class: Callable[[Subject], None]) -> None:
        for_class(subject)

    @staticmethod
    @each
    def test_static(subject: Subject) -> None:
        subject()


@each
def test_fixture_with_params(subject: Subject, with_params: Callable[[Subject], None]) -> None:
    with_params(subject)


@pytest.mark.parametrize("indirect", SUBJECTS, indirect=True, ids=lambda it: it.__name__)
def test_indirect(indirect: Subject) -> None:
    indirect()


@each
@settings(max_examples=3, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(number=st.integers(0, 9))
def test_hypothesis(subject: Subject, number: int) -> None:
    assert number < 10
    subject()


@pytest.mark.timeout(120)
@each
def test_timeout(subject: Subject) -> None:
    subject()


def decorated(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def around(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)

    return around


@each
@decorated
def test_decorated(subject: Subject) -> None:
    subject()


@each
def test_captured(subject: Subject, capsys: Any, caplog: Any, tmp_path: Any) -> None:
    sys.stdout.write("asking\n")
    logging.getLogger("test").warning("asking")
    subject()
    assert capsys.readouterr().out == "asking\n"
    assert caplog.messages
    assert tmp_path.is_dir()


@each
def test_fails_by_hand(subject: Subject) -> None:
    try:
        subject()
    except httpx.HTTPError:
        pytest.fail("nothing to show")


@each
def test_skips(subject: Subject) -> None:
    try:
        subject()
    except httpx.HTTPError:
        pytest.skip("nobody is there")


@each
def test_child_process(subject: Subject) -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(subject)


@pytest.fixture
def fetched(subject: Subject) -> None:
    subject()


@each
@pytest.mark.usefixtures("fetched")
def test_looks_at_what_a_fixture_fetched(subject: Subject) -> None:
    assert subject in SUBJECTS


class Fetched(unittest.TestCase):
    subject: Any

    def setUp(self) -> None:
        self.subject()

    def test_set_up(self) -> None:
        pass


class Cleaned(unittest.TestCase):
    subject: Any

    @classmethod
    def setUpClass(cls) -> None:
        ask("class")

    def test_cleaned(self) -> None:
        self.addCleanup(ask, "clean")
        self.subject()


for _form in (Fetched, Cleaned):
    for _each in SUBJECTS:
        _name = f"Test{_form.__name__}_{_each.__name__}"
        globals()[_name] = type(_name, (_form,), {"subject": staticmethod(_each)})
del Fetched, Cleaned, _form
