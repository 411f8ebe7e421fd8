"""The clock that people read: the machine's own, or UTC with ``--utc`` or ``LDFI_UTC``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from functools import wraps
from typing import Annotated, Any, Final

import typer

VARIABLE: Final = "LDFI_UTC"
_NO: Final = frozenset({"", "0", "false", "no", "off"})

Utc = Annotated[
    bool,
    typer.Option("--utc", help=f"Times in UTC; else in local time. {VARIABLE}=1 has it always."),
]


class MachineZone(tzinfo):
    """The time zone of the machine, as the system has it on each day."""

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        """Return the offset that holds then."""
        return self._local(at).utcoffset()

    def dst(self, _at: datetime | None) -> timedelta | None:
        """Return nothing: the offset holds all there is."""
        return None

    def tzname(self, at: datetime | None) -> str | None:
        """Name the zone as the system does then: CET, or CEST."""
        return self._local(at).tzname()

    def fromutc(self, at: datetime) -> datetime:
        """Return what the clock shows."""
        return at.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)

    @staticmethod
    def _local(at: datetime | None) -> datetime:
        return (at or datetime.fromtimestamp(0, UTC)).replace(tzinfo=None).astimezone()


def shown_zone() -> tzinfo:
    """Return the zone in which times are shown and read."""
    return MachineZone() if os.environ.get(VARIABLE, "").lower() in _NO else UTC


def shown(at: float) -> datetime:
    """Return a moment by the clock that people read, with its zone."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment if shown_zone() is UTC else moment.astimezone()


@contextmanager
def in_zone(*, utc: bool) -> Iterator[None]:
    """Show times in UTC if asked to, whatever the environment says, until the command is done."""
    before = os.environ.get(VARIABLE)
    if utc:
        os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        if utc and before is None:
            del os.environ[VARIABLE]


def with_utc(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that prints for people (it has ``--json`` beside) the option ``--utc``."""
    signature = inspect.signature(command, eval_str=True)
    if "as_json" not in signature.parameters or "utc" in signature.parameters:
        return command  # it prints for programs only, or has the option by now

    @wraps(command)
    def in_utc(*args: Any, utc: bool, **given: Any) -> Any:
        with in_zone(utc=utc):
            return command(*args, **given)

    only = inspect.Parameter.KEYWORD_ONLY
    option = inspect.Parameter("utc", only, default=False, annotation=Utc)
    parameters = [*signature.parameters.values(), option]
    in_utc.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    in_utc.__annotations__ = {each.name: each.annotation for each in parameters}
    return in_utc
