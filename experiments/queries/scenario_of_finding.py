"""Makes a scenario of a finding, from what the service has on record of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlencode

from sqlalchemy import select
from sqlalchemy.orm import Session

from ldfi.errors import InvalidScenario, NotFound
from ldfi.experiments.domain.settings import Settings
from ldfi.experiments.domain.traffic.catalogue import KnownClass
from ldfi.experiments.store.schema import (
    CampaignRow,
    ClassRow,
    ExperimentRow,
    FindingRow,
    finding_id,
)
from ldfi.fit.protocol.features import Features
from ldfi.fit.protocol.native_kinds import gone
from ldfi.fit.protocol.predicate import Predicate
from ldfi.lineage.outline import Outline, ordered
from ldfi.lineage.run_summary import Run, Runs
from ldfi.scenarios.redaction import HEADERS, HOLE, RawRequest, code, redact
from ldfi.scenarios.request_body import AGENTS, AskedFor, asked, query_string
from ldfi.scenarios.scenario import VERSION, Scenario, calls, of_document

MOST_NAMED: Final = 3
"""Faults that the title of a scenario names."""

_DOWN: Final = "down@"


def scenario_of(session: Session, finding_id: str) -> Scenario:
    """Write the scenario of a finding. Raises NotFound, or InvalidScenario where none can be
    made."""
    finding = session.get(FindingRow, finding_id)
    if finding is None:
        raise NotFound(f"there is no finding {finding_id!r}; `ldfi findings` lists them")
    kept = session.get(ClassRow, finding.request_class)
    known = None if kept is None else KnownClass.from_json(kept.document)
    experiment = _convicting(session, finding)
    runs = _runs(experiment)
    bad = runs.treated if runs.treated and not runs.treated.success else None
    document = {
        "version": VERSION,
        "id": finding.id,
        "title": _title(finding.request_class, finding.faults),
        "request_class": _request_class(finding.request_class, known),
        "request": _request(bad.features if bad else {}, known),
        "faults": _faults(finding, experiment, known),
        "hypothesis": sorted(finding.faults) if _in_other_words(finding.faults) else [],
        "delay": _delay(session, experiment, finding),
        "expect": _expected(bad, runs.control),
        "seen": _seen(bad, experiment),
        "lineage": {
            "expected": _lineage(runs.control),
            "observed": _lineage(bad),
        },
        "evidence": {
            "finding": finding.id,
            "state": finding.state,
            "campaign": finding.campaign_id,
            "experiment": experiment.id if experiment else finding.experiment_id,
            "traces": sorted(finding.traces),
        },
        "environment": {
            "ldfi": version("ldfi"),
            "found": _day(finding.found_at),
            "verified": _day(finding.verified_at),
            "class_version": known.version if known else None,
        },
    }
    return of_document(document, f"the scenario of finding {finding_id}")


def _convicting(session: Session, finding: FindingRow) -> ExperimentRow | None:
    """Find the newest experiment of just these faults that hurt."""
    tried = finding_id(finding.request_class, finding.faults)
    query = select(ExperimentRow).where(
        ExperimentRow.tried == tried, ExperimentRow.verdict == "harmful"
    )
    newest = query.order_by(ExperimentRow.ended_at.desc(), ExperimentRow.id.desc()).limit(1)
    return session.scalars(newest).one_or_none()


def _runs(experiment: ExperimentRow | None) -> Runs:
    result = experiment.lesson if experiment is not None else None
    return Runs.from_json((result or {}).get("runs"))


def _faults(
    finding: FindingRow, experiment: ExperimentRow | None, known: KnownClass | None
) -> list[str]:
    """List what has to be injected: a system that is down is an error at each of its points."""
    if experiment is not None:
        return sorted(experiment.faults)
    reached = known.traffic.topology.shared() if known else {}
    faults = {text for text in finding.faults if not text.startswith(_DOWN)}
    for text in finding.faults:
        if text.startswith(_DOWN):
            points = reached.get(text.removeprefix(_DOWN))
            if not points:
                raise InvalidScenario(
                    f"finding {finding.id}: no experiment on record tried {text}, and the class "
                    "does not say any more which points reach it; run `ldfi findings verify`"
                )
            faults |= {f"{gone(point)}@{point}" for point in points}
    return sorted(faults)


def _in_other_words(faults: Iterable[str]) -> bool:
    return any(text.startswith(_DOWN) for text in faults)


def _title(name: str, faults: Sequence[str]) -> str:
    words = []
    for text in sorted(faults):
        kind, _, point = text.partition("@")
        words.append(f"{point} down" if kind == "down" else f"{kind} at {point}")
    more = [f"{len(words) - MOST_NAMED} more"] if len(words) > MOST_NAMED else []
    return f"{name} fails with {' and '.join(words[:MOST_NAMED] + more)}"


def _request_class(name: str, known: KnownClass | None) -> dict[str, Any]:
    if known is None:
        return {"name": name}
    conditions = [
        {key: value for key, value in each.items() if value not in {None, False}}
        for each in known.predicate.to_json()
    ]
    return {"name": name, "service": known.service, "predicate": conditions}


def _request(features: Features, known: KnownClass | None) -> dict[str, Any]:
    """Describe the request: what its class says, and beyond it what one that failed had."""
    required = _required(known.predicate) if known else {}
    features = {**features, **required}
    parameters = {n[6:]: v for n, v in features.items() if n.startswith("query.")}
    headers = [(each, features.get(f"header.{each}", "")) for each in HEADERS]
    kept = redact(
        RawRequest(
            features.get("method", "GET"),
            features.get("route") or features.get("path", "/"),
            urlencode(sorted(parameters.items()), safe=HOLE),
            [*headers, ("accept", "application/json")],
        ),
        {n: parameters[n] for n in parameters if f"query.{n}" in required},
    )
    what = asked(features, required)
    return {
        "method": kept.method,
        "path": kept.path,
        "query": query_string([*kept.query, *what.query]),
        "headers": {**kept.headers, **_made_up(features, what)},
        "body": what.body,
    }


def _made_up(features: Features, what: AskedFor) -> dict[str, str]:
    """List headers that no request was seen to have, but that make it one of its kind."""
    made = {}
    if isinstance(what.body, dict | list):
        made["content-type"] = "application/json"
    if features.get("device") in AGENTS:
        made["user-agent"] = AGENTS[features["device"]]
    return made


def _required(predicate: Predicate) -> dict[str, str]:
    return {c.feature: c.value or HOLE for c in predicate.conditions if not c.negated}


def _delay(session: Session, experiment: ExperimentRow | None, finding: FindingRow) -> float:
    """Look up for how long a delay hung in the campaign that found it."""
    campaign_id = experiment.campaign_id if experiment else finding.campaign_id
    campaign = session.get(CampaignRow, campaign_id)
    definition = campaign.definition if campaign is not None else {}
    return float(definition.get("settings", {}).get("delay", Settings().delay))


def _expected(bad: Run | None, good: Run | None) -> dict[str, Any]:
    """Choose by what a replay can tell: the status, if that failed; the time, if that was what
    differed; else only somebody who knows what the answer should hold."""
    if bad is None or bad.root_failed:
        return {}
    if good is not None and bad.duration > 2 * good.duration and bad.duration > good.duration + 0.5:
        return {"max_seconds": round((bad.duration + good.duration) / 2, 1)}
    return {"hidden": True}


def _seen(bad: Run | None, experiment: ExperimentRow | None) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    if bad is not None:
        seen["error_code"] = code(bad.error_code) if bad.error_code else None
        seen["seconds"] = round(bad.duration, 3)
    comparison = experiment.comparison if experiment is not None else {}
    for arm in ("control", "treatment"):
        if arm in comparison:
            counts = comparison[arm]
            seen[arm] = {"devices": counts["devices"], "failures": counts["failures"]}
    return seen


def _lineage(run: Run | None) -> list[dict[str, Any]]:
    """Nest a run's list of calls, each with its place in the list, as calls within calls."""
    if run is None:
        return []
    inner: dict[int | None, list[int]] = {}
    for place, call in enumerate(run.calls):
        inner.setdefault(call.within, []).append(place)
    made: dict[int, Outline] = {}
    for place in reversed(range(len(run.calls))):  # what is within a call comes after it
        call = run.calls[place]
        within = ordered(made[each] for each in inner.get(place, ()))
        made[place] = Outline(call.point, call.failed, call.fired, call.callee, within)
    outlined = ordered(made[place] for place in inner.get(None, ()))
    return [each.model_dump(exclude_defaults=True) for each in calls(outlined)]


def _day(at: float | None) -> str | None:
    return None if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
