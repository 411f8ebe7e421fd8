"""One optional call that everybody sees, and one needed in a place where calls are easily lost to
sight; and the same, where it is not needed."""

from __future__ import annotations

import http.client
import multiprocessing
import os
import queue
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

WORK: queue.Queue[tuple[str, queue.Queue[bool]]] = queue.Queue()
POOL = ThreadPoolExecutor(2)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


CLIENT = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200)))


def get(host: str) -> bool:
    try:
        return CLIENT.get(f"http://{host}/7").is_success
    except httpx.HTTPError:
        return False


def worked_off() -> None:
    while True:
        host, answer = WORK.get()
        answer.put(get(host))


threading.Thread(target=worked_off, daemon=True).start()


def by_a_pool(_port: int) -> bool:
    return POOL.submit(get, "stock").result()


def by_map(_port: int) -> bool:
    return all(POOL.map(get, ["stock"]))


def by_a_thread(_port: int) -> bool:
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(get("stock")))
    thread.start()
    thread.join()
    return seen == [True]


def by_a_timer(_port: int) -> bool:
    seen: queue.Queue[bool] = queue.Queue()
    threading.Timer(0.001, lambda: seen.put(get("stock"))).start()
    return seen.get(timeout=10)


def by_a_worker(_port: int) -> bool:
    answer: queue.Queue[bool] = queue.Queue()
    WORK.put(("stock", answer))
    return answer.get(timeout=10)


def by_http_client(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/x")
    answered = connection.getresponse().status == 200
    connection.close()
    return answered


def by_urllib(port: int) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/x") as answer:
        return bool(answer.status == 200)


def by_a_socket(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /x HTTP/1.0\r\n\r\n")
        return connection.recv(64).startswith(b"HTTP/1.0 200")


def by_a_child(_port: int) -> bool:
    return subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0


def by_a_fork(_port: int) -> bool:
    if not (child := os.fork()):
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def by_posix_spawn(_port: int) -> bool:
    child = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", ""], os.environ)
    return os.waitpid(child, 0)[1] == 0


def by_a_shell(_port: int) -> bool:
    return os.system("true") == 0  # noqa: S605, S607


def by_spawn_of_multiprocessing(_port: int) -> bool:
    child = multiprocessing.get_context("spawn").Process(target=print)
    child.start()
    child.join()
    return True  # whatever is the main module there


SEEN: list[Callable[[int], bool]] = [by_a_pool, by_map, by_a_thread, by_a_timer, by_a_worker]
UNSEEN: list[Callable[[int], bool]] = [by_http_client, by_urllib, by_a_socket, by_a_child]
UNSEEN += [by_a_fork, by_posix_spawn, by_a_shell, by_spawn_of_multiprocessing]


def page(port: int, needed: Callable[[int], bool]) -> bool:
    get("ads")
    return needed(port)


@pytest.mark.ldfi
@pytest.mark.parametrize("needed", [*SEEN, *UNSEEN], ids=lambda each: each.__name__)
def test_needed(port: int, needed: Callable[[int], bool]) -> None:
    assert page(port, needed)


@pytest.mark.ldfi
@pytest.mark.parametrize("beside", SEEN, ids=lambda each: each.__name__)
def test_optional(port: int, beside: Callable[[int], bool]) -> None:
    with suppress(httpx.HTTPError):
        page(port, beside)


@pytest.mark.ldfi
def test_asks_its_server_itself(port: int) -> None:
    """What the test's own function asks is no dependency."""
    get("ads")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/x") as answer:
        assert answer.status == 200


ROWS: list[int] = []


def charged(_: httpx.Request) -> httpx.Response:
    ROWS.append(1)
    return httpx.Response(201)


@pytest.mark.ldfi(kinds=("reset", "refused"))
def test_charged_once() -> None:
    """A POST that is tried again when only its answer was lost is made twice."""
    ROWS.clear()
    with httpx.Client(transport=httpx.MockTransport(charged)) as client:
        for _ in range(2):
            with suppress(httpx.TransportError):
                client.post("http://payments/charges")
                break
    assert len(ROWS) <= 1
