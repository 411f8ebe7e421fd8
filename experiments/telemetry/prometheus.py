"""Guardrails that ask Prometheus.

A guardrail is a PromQL condition, such as ``sum(rate(errors_total[1m])) < 5``. In PromQL a
comparison filters: what does not hold is left out. So a guardrail holds when its result is not
empty. Missing data gives an empty result too, so it counts as not holding.

Aggregate before comparing. ``rate(errors_total[1m]) < 5`` drops the instances that fail and keeps
the rest; while several are left that is refused here, but when one is left nobody can tell.
``max(rate(errors_total[1m])) < 5`` says what is meant.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from math import isnan
from types import TracebackType
from typing import Self

import httpx

from ldfi.errors import InvalidGuardrail, PrometheusError

_STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`')
_COMMENT = re.compile(r"#[^\n]*")
_BOOL = re.compile(r"(?:==|!=|<=|>=|<|>)\s*bool\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Sample:
    value: float
    scalar: bool


class Prometheus:
    """Asks one Prometheus (or anything with its HTTP API) instant queries.

    ``url``: where its API is, without ``/api/v1``. ``token``: sent as a bearer token. ``timeout``:
    seconds for a whole answer. Use it as an async context manager, or :meth:`close` it.
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 2.0) -> None:
        self._url = url.rstrip("/") + "/api/v1/query"
        self._timeout = timeout
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout)

    async def query(self, promql: str) -> float | None:
        """Ask for the one number that it evaluates to now, which may be NaN; None for no result.

        Raises :class:`PrometheusError` when the answer is not one number, or there is none in time.
        """
        sample = await self._sample(promql)
        return None if sample is None else sample.value

    async def holds(self, promql: str) -> bool:
        """Return whether a guardrail holds now: it gives one number, and that is not NaN.

        Raises :class:`PrometheusError` when that cannot be known, and :class:`InvalidGuardrail` for
        what is no condition: treat both (any ``ExperimentsError``) as a breach.
        """
        sample = await self._sample(check_guardrail(promql))
        if sample is None:
            return False
        if sample.scalar:
            raise InvalidGuardrail(
                f"{promql!r} gives a scalar, which is there whatever happens; "
                "compare a vector, such as sum(...) < 5 or vector(...) < 5"
            )
        return not isnan(sample.value)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _sample(self, promql: str) -> _Sample | None:
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._client.post(self._url, data={"query": promql})
        except TimeoutError as error:
            raise PrometheusError(
                f"{self._url} did not answer {promql!r} within {self._timeout} seconds"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise PrometheusError(
                f"{self._url} cannot be asked {promql!r}: {type(error).__name__} {error}"
            ) from error
        return _read(promql, response)


def check_guardrail(promql: str) -> str:
    """Check that a condition can be one, and return it. Raises :class:`InvalidGuardrail`.

    With the modifier ``bool`` a comparison gives 0 or 1 instead of filtering, so its result is
    never empty. Prometheus itself says, when it is asked, whether the rest is PromQL.
    """
    if not promql.strip():
        raise InvalidGuardrail("an empty guardrail protects nothing; leave it out")
    if _BOOL.search(_COMMENT.sub("", _STRING.sub('""', promql))):
        raise InvalidGuardrail(
            f"{promql!r} would always hold: with 'bool' it gives 0 where it is false. "
            "Leave 'bool' out"
        )
    return promql


def _read(promql: str, response: httpx.Response) -> _Sample | None:
    try:
        answer = response.json()
    except ValueError:
        answer = None
    match answer:
        case {"status": "success", "data": {"resultType": "vector", "result": []}}:
            return None
        case {"status": "success", "data": {"resultType": "vector", "result": [{"value": [_, n]}]}}:
            return _Sample(_number(promql, n), scalar=False)
        case {"status": "success", "data": {"resultType": "scalar", "result": [_, n]}}:
            return _Sample(_number(promql, n), scalar=True)
        case {"status": "success", "data": {"resultType": "vector", "result": [_, _, *_] as many}}:
            raise PrometheusError(
                f"{promql!r} gives {len(many)} series where one is needed; "
                "aggregate first, with sum(...), max(...) or min(...)"
            )
        case {"status": "success", "data": {"resultType": str(kind)}}:
            raise PrometheusError(f"{promql!r} gives no number but a {kind}")
        case {"status": "error", "error": str(reason)}:
            raise PrometheusError(f"Prometheus refuses {promql!r}: {reason}")
        case _:
            raise PrometheusError(
                f"{response.url} answers {promql!r} with status {response.status_code} "
                "and nothing that Prometheus would say; is the URL right?"
            )


def _number(promql: str, text: object) -> float:
    try:
        return float(str(text))
    except ValueError as error:
        raise PrometheusError(f"{promql!r} gives {text!r}, which is no number") from error
