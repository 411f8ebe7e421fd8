"""Reads the steady state of a Chaos Toolkit experiment: what a good answer is, in others' words.

A probe of type ``http`` becomes a request and an assertion on its answer. Its tolerance may be a
status, a list of statuses, a range of ``status``, a regular expression on ``body``, or a JSON path
with at most one expected value. Probes of other types, and tolerances that are programs, say
nothing that could be asserted of one answer, and are refused.

https://chaostoolkit.org/reference/api/experiment/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, TypeGuard

import yaml

from ldfi.error_words import unreadable
from ldfi.errors import InvalidReplay
from ldfi.scenarios.document import load
from ldfi.scenarios.replay import ANYTHING, Assertion, Exemplar

HYPOTHESIS: Final = "steady-state-hypothesis"

_ORIGIN: Final = re.compile(r"(?:\$\{[^}]*\}|https?://[^/?#]*)(?P<path>[^?#]*)\??(?P<query>[^#]*)")
_NOTHING: Final = Assertion()


def is_experiment(document: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a parsed file is an experiment of Chaos Toolkit with a steady state."""
    return isinstance(document, Mapping) and HYPOTHESIS in document


def steady_state(document: Mapping[str, Any], name: str) -> list[tuple[Exemplar, Assertion]]:
    """Read every request of the steady state, and what a good answer to it is; several probes of
    one request are one.

    Raises InvalidReplay for what cannot be asserted of one answer.
    """
    hypothesis = document.get(HYPOTHESIS)
    probes = hypothesis.get("probes") if isinstance(hypothesis, Mapping) else None
    if not isinstance(probes, list) or not probes:
        raise InvalidReplay(f"{name} has no {HYPOTHESIS} with probes: there is nothing to assert")
    found: list[tuple[Exemplar, Assertion]] = []
    for number, probe in enumerate(probes, start=1):
        place = f"{name}, probe {number}"
        exemplar, assertion = _probe(probe if isinstance(probe, Mapping) else {}, place)
        for index, (known, asserted) in enumerate(found):
            if known == exemplar:
                found[index] = (known, _both(asserted, assertion, place))
                break
        else:
            found.append((exemplar, assertion))
    return found


def assertion_for(file: Path, path: str) -> Assertion:
    """Read what the steady state in a file asserts of the request to ``path``; of its only
    request, where there is but one. Raises InvalidReplay."""
    try:
        document = load(file.read_text(encoding="utf-8"))  # JSON is YAML
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidReplay(f"{file} cannot be read: {unreadable(error)}") from error
    if not is_experiment(document):
        raise InvalidReplay(f"{file} is not a Chaos Toolkit experiment with a {HYPOTHESIS}")
    found = steady_state(document, str(file))
    of_path = [assertion for exemplar, assertion in found if exemplar.path == path]
    if len(found) == 1 or len(of_path) == 1:
        return (of_path or [assertion for _, assertion in found])[0]
    asked = ", ".join(exemplar.path for exemplar, _ in found)
    raise InvalidReplay(f"{file} asks for {asked}: which of them speaks for {path} is not clear")


def _probe(probe: Mapping[str, Any], place: str) -> tuple[Exemplar, Assertion]:
    provider = probe.get("provider")
    if not isinstance(provider, Mapping) or provider.get("type") != "http":
        raise InvalidReplay(f"{place}: only probes whose provider is of type http can be asserted")
    url = _ORIGIN.fullmatch(str(provider.get("url", "")))
    if url is None:
        raise InvalidReplay(f"{place}: {provider.get('url')!r} is no URL of http or https")
    exemplar = Exemplar(
        str(provider.get("method", "GET")).upper(),
        url["path"] or "/",
        url["query"],
        {str(name): str(value) for name, value in (provider.get("headers") or {}).items()},
    )
    return exemplar, _tolerance(probe.get("tolerance"), place)


def _tolerance(tolerance: object, place: str) -> Assertion:
    # A status counts only as the tolerance says: another tolerance than one of it takes any.
    anyway = Assertion(status=range(100, 600))
    match tolerance:
        case bool():
            pass
        case int():
            return Assertion(status=(tolerance,))
        case list() if tolerance and all(type(each) is int for each in tolerance):
            return Assertion(status=tuple(tolerance))
        case {"type": "range", "target": "status", "range": [int(low), int(high)]}:
            return Assertion(status=range(low, high + 1))
        case {"type": "regex", "target": "body", "pattern": str(pattern)}:
            return replace(anyway, body_matches=pattern)
        case {"type": "jsonpath", "target": "body", "path": str(path), **more}:
            expected = more.get("expect", ANYTHING)
            if isinstance(expected, list) and len(expected) == 1:
                expected = expected[0]
            if not isinstance(expected, list) and more.keys() <= {"expect"}:
                return replace(anyway, json_path=path, equals=expected)
        case _:
            pass
    raise InvalidReplay(
        f"{place}: a tolerance of {str(tolerance)[:120]} cannot be asserted of one answer; give a "
        "status, a regex on body, or a jsonpath on body with one expected value"
    )


def _both(one: Assertion, other: Assertion, place: str) -> Assertion:
    """Join two assertions: both must hold. Raises InvalidReplay where they contradict each
    other, or ask for the same in two ways."""
    status = tuple(code for code in one.status if code in other.status)
    if not status:
        raise InvalidReplay(f"{place}: its status contradicts that of a probe before it")
    merged: dict[str, Any] = {}
    for each in fields(Assertion):
        given = [
            value
            for value in (getattr(one, each.name), getattr(other, each.name))
            if value != getattr(_NOTHING, each.name)
        ]
        if each.name != "status" and len(given) > 1 and given[0] != given[1]:
            raise InvalidReplay(
                f"{place}: {each.name} is asserted twice, {given[0]!r} and {given[1]!r}"
            )
        if given:
            merged[each.name] = given[0]
    return Assertion(**{**merged, "status": status})
