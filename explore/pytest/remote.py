"""Services in processes of their own, as a session of pytest knows them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from ldfi.explore.external.services import Services
    from ldfi.explore.external.session import Elsewhere

RECEIVE: Final = "LDFI_RECEIVE"
FIXTURE: Final = "ldfi_services"
LOGS: Final = "logs"

_HELD: Final = pytest.StashKey["Elsewhere"]()
_NAMES: Final = pytest.StashKey[dict[str, str]]()
_SERVICES: Final = pytest.StashKey["Services"]()


def address_asked(config: pytest.Config) -> str:
    """Return the address at which spans shall be received; empty where nobody asked."""
    given: str | None = config.getoption("--receive")
    return given or os.environ.get(RECEIVE, "")


def elsewhere_of(item: pytest.Item) -> Elsewhere | None:
    """Find where the spans of a test's services come in; None where all is in this process."""
    config = item.config
    started = FIXTURE in getattr(item, "fixturenames", ())
    if _HELD in config.stash or started or address_asked(config):
        return received(config)
    return None


def received(config: pytest.Config) -> Elsewhere:
    """Receive spans, from now to the end of the session. Raises Invalid."""
    if _HELD not in config.stash:
        from ldfi.experiments.domain.traffic.waiting_times import EXPORT
        from ldfi.explore.external.environment import AT_ONCE, export_interval

        asked = address_asked(config)
        interval = export_interval(EXPORT if asked else AT_ONCE)
        config.stash[_HELD] = made = _opened(config, asked, interval)
        config.add_cleanup(made.close)
    return config.stash[_HELD]


def names_of(config: pytest.Config) -> dict[str, str]:
    """Return the names of services by their addresses."""
    return config.stash.setdefault(_NAMES, {})


def services_started(config: pytest.Config) -> Services | None:
    """Return the services of the session's fixture; None where no test has asked for it."""
    return config.stash.get(_SERVICES, None)


@contextmanager
def services_of(session: pytest.Session) -> Iterator[Services]:
    """Have services started as long as this lasts. Logs are kept where a test has failed."""
    from ldfi.explore.external.services import Services

    config = session.config
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    logs: Path = config.rootpath / ".ldfi" / LOGS / worker
    services = Services(received(config).variables(), logs, names_of(config))
    config.stash[_SERVICES] = services
    try:
        yield services
    finally:
        services.close()
        if not session.testsfailed:
            services.forget_logs()


def _opened(config: pytest.Config, asked: str, interval: float) -> Elsewhere:
    from ldfi.explore.external.environment import DEFAULT, back_off
    from ldfi.explore.external.receiver import ANY_PORT, InvalidAddress
    from ldfi.explore.external.session import Elsewhere

    worker = hasattr(config, "workerinput")
    away = back_off() if asked and not worker else 0.0  # whom we start meets no closed port

    def tell(said: str) -> None:
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"ldfi: {said}")

    try:
        return Elsewhere(asked or DEFAULT, interval, shared=worker, back_off=away, tell=tell)
    except InvalidAddress:
        if asked and not worker:
            raise
        return Elsewhere(ANY_PORT, interval, shared=worker)
