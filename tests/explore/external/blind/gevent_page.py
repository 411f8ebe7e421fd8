"""The same page under gevent, in whose greenlets a request's context is not by itself.

python -m tests.explore.external.blind.gevent_page
"""

# ruff: noqa: E402 - gevent takes the standard library over before it is used
from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import contextvars
from collections.abc import Callable

import gevent
from gevent.event import AsyncResult
from gevent.pool import Group, Pool
from gevent.threadpool import ThreadPool

from tests.explore.external.blind import page
from tests.explore.external.blind.page import needed


def raw() -> bool:
    found = AsyncResult()
    gevent.spawn_raw(lambda: found.set(needed()))
    return bool(found.get())


WAYS: dict[str, Callable[[], bool]] = {
    "spawn": lambda: bool(gevent.spawn(needed).get()),
    "spawn later": lambda: bool(gevent.spawn_later(0.001, needed).get()),
    "raw": raw,
    "greenlets": lambda: bool(Pool(2).apply(needed)),
    "group": lambda: all(Group().imap(lambda _: needed(), range(2))),
    "native": lambda: bool(ThreadPool(1).apply(needed)),
    "copied": lambda: bool(gevent.spawn(contextvars.copy_context().run, needed).get()),
}

if __name__ == "__main__":
    page.WAYS |= WAYS
    page.main()
