"""What every edge has to do, check by check. Each returns what is wrong, in words."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from ldfi.fit.protocol.context import encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.fit.protocol.rules import Rule
from ldfi.fit.protocol.scenario import scenario_of
from ldfi.testing.conformance.asks import ASK_CHECKS
from ldfi.testing.conformance.checks import HOST_KEYS, Check, Problems
from ldfi.testing.conformance.front import Front, eventually
from ldfi.testing.conformance.host import Host
from ldfi.testing.control_plane import ControlPlane

FAULT: Final = Fault("api>http:GET:ratings/titles/*", "status:503", first=2)
TITLES: Final = Predicate.of([Condition("method", "GET"), Condition("route", "/titles/*")])

_KEYS: Final = Keys.parse(HOST_KEYS)
_VECTORS: Final = Path(__file__).parents[2] / "fit" / "protocol" / "vectors" / "edge.json"
_LEASES: Final = 5
"""Leases of the vectors that are tried."""


def contexts_from_outside_go(host: Host) -> Problems:
    """Take every entry of ours out of the baggage, however it is written and signed."""
    foreign = _signed("e9")
    with _edge(host) as (plane, front):
        plane.arm(FAULT, on="GET /elsewhere")
        front.hold(plane)
        for given, left in (
            ((f"a=b,fit={foreign}",), "a=b"),
            ((f"fit={foreign}",), ""),
            ((f"a=b,%66it={foreign},c=d;p=q",), "a=b,c=d;p=q"),
            ((f" FIT = {foreign};p=q,a=b",), "a=b"),
            (("a=b", f"fit={foreign},c=d"), "a=b,c=d"),
            (("fit=1.2,%C2%85fit=1.3,a=b,fit2=1",), "a=b,fit2=1"),
            (("a=b;fit=1",), "a=b;fit=1"),
            (("f\xeft=1,a=\xe9",), "f\xeft=1,a=\xe9"),
        ):
            for device in ("d1", ""):
                found = front.onward(device, "/titles/17", *given)
                if found != left:
                    yield f"{given} of device {device!r} goes on with {found!r}"


def an_engineers_own_context_stays(host: Host) -> Problems:
    """Let in what was signed for the very device, and that has precedence."""
    with _edge(host) as (plane, front):
        plane.arm(FAULT)
        front.hold(plane)
        own, foreign = _signed(scenario_of("mine")), _signed("e9")  # an edge may start slowly
        old = _signed(scenario_of("mine"), seconds=-1)
        kept = front.ask("mine", "/titles/17", f"fit={foreign},a=b,fit={own}")
        if kept is None or kept.experiment != scenario_of("mine"):
            yield f"the device's own goes on as {kept}"
        for device, value in (("hers", own), ("mine", old), ("mine", own[:-1] + "!")):
            found = front.ask(device, "/titles/17", f"fit={value}")
            if found is None or found.experiment.startswith("s-"):
                yield f"what is not for {device} goes on as {found}"
        if front.onward("", "/titles/17", f"fit={own}"):
            yield "without a device it goes on"


def devices_fall_where_the_vectors_say(host: Host) -> Problems:
    """Put each device into the experiments and the arms of the vectors."""
    vectors = json.loads(_VECTORS.read_text(encoding="utf-8"))
    devices = [each["device"] for each in vectors["marks"] if _is_sent(each["device"])]
    leases = [each for each in vectors["leases"] if each["lease"] and each["lease"]["claims"]]
    with _edge(host) as (plane, front):
        for each in sorted(leases, key=lambda it: -len(it["document"]["rules"]))[:_LEASES]:
            rules = map(Rule.from_json, each["document"]["rules"])
            plane.put(*(replace(rule, predicate=Predicate(), members=None) for rule in rules))
            front.hold(plane)
            for device in devices:
                context = front.ask(device)
                found = None if context is None else [context.experiment, context.arm]
                want = next(iter(each["lease"]["claims"].get(device, ())), None)
                if found != want:
                    yield f"{device!r} is in {found}, not {want}"


def who_a_device_is_is_for_the_operator_to_say(host: Host) -> Problems:
    """Tell devices apart by the first of the sources of ``FIT_DEVICE`` that a request has."""
    setting = "cookie:session,baggage:user.id,header:x-device-id,address"
    with _edge(host, FIT_DEVICE=setting) as (plane, front):
        plane.arm(FAULT, treatment=0.5, control=0.5)
        front.hold(plane)
        (rule,) = plane.rules
        for number in range(12):
            for cookie, user, header, whose in (
                (f'a=b; session="c{number}"; session=x', "", "h", f"c{number}"),
                ("session=", f"user.id=u%2B{number};p=q", "h", f"u+{number}"),
                ("Session=x", "User.id=x", f"h{number}", f"h{number}"),
            ):
                found = front.read(
                    front.onward(header, "/titles/17", *filter(None, [user]), cookies=[cookie])
                )
                if found is None or found.arm != rule.arm_of(whose):
                    said = (cookie, user, header)
                    yield f"with {said} it is {found}, not in the arm of {whose!r}"
        if front.ask("") is None:
            yield "a request that has an address alone is not stamped"


def what_is_stamped_is_what_the_rule_says(host: Host) -> Problems:
    """Stamp requests of the class alone, in either arm, with the rule's faults."""
    for arm, treatment, patience in (("treatment", 1.0, 0.0), ("control", 0.0, 40.0)):
        with _edge(host) as (plane, front):
            experiment = plane.arm(
                FAULT, on=TITLES, treatment=treatment, control=1 - treatment, patience=patience
            )
            front.hold(plane)
            context = front.ask("d1", "/titles/17?page=2", "a=b")
            if context is None or (context.experiment, context.arm) != (experiment, arm):
                yield f"{arm}: {context}"
            elif context.expires > time.time() + max(plane.lease, patience) + 1.1:
                yield f"{arm}: it expires later than the lease: {context}"
            elif context.expires < time.time() + patience - 1:
                yield f"{arm}: it expires earlier than the rule asks: {context}"
            elif [each.kind for each in context.injections.values()] != [FAULT.kind]:
                yield f"{arm}: {context}"
            for device, path in (("d1", "/basket"), ("d1", "/titles/17/x"), ("", "/titles/17")):
                found = front.onward(device, path, "a=b")
                if found != "a=b":
                    yield f"{path} of device {device!r} goes on with {found}"


def other_baggage_passes(host: Host) -> Problems:
    """Put the stamp in front of all other entries; stamp nothing that would grow too long."""
    with _edge(host) as (plane, front):
        plane.arm(FAULT)
        front.hold(plane)
        joined = (",a=b;p=q , c=%20,d=e", ",a=b;p=q , c=%20, d=e")
        found = front.onward("d1", "/", "a=b;p=q , c=%20", "d=e")
        if not found.startswith("fit=") or not found.endswith(joined):
            yield f"it goes on with {found}"
        large = f"a={'b' * 8150}"
        if front.onward("d1", "/", large) != large:
            yield "baggage beyond what OpenTelemetry reads is not left as it was"


def lengths_are_drawn_for_each_request(host: Host) -> Problems:
    """Draw a length anew for each request, within its bounds."""
    with _edge(host) as (plane, front):
        plane.arm(Fault(FAULT.point, "delay:0.1..0.9"))
        front.hold(plane)
        contexts = [front.ask("d1") for _ in range(12)]
        drawn = {i.delay_ms for c in contexts if c is not None for i in c.injections.values()}
        if len(drawn) < 6 or min(drawn) < 100 or max(drawn) > 900:
            yield f"of twelve requests: {sorted(drawn)} ms"


def the_allowance_is_never_exceeded(host: Host) -> Problems:
    """Enrol as many devices as allowed, however many come at once, and report how many."""
    with _edge(host) as (plane, front), ThreadPoolExecutor(8) as pool:
        experiment = plane.arm(FAULT, treatment=0.5, control=0.5, members=3)
        front.hold(plane)
        (rule,) = plane.rules
        devices = [f"d{number}" for number in range(60)]
        treated = [each for each in devices if rule.arm_of(each) == "treatment"]
        asked = [each for each in pool.map(lambda it: (it, front.ask(it)), treated) if each[1]]
        if len(asked) != 3:
            yield f"{len(asked)} devices are treated, not 3"
        if any(front.ask(device) is None for device, _ in asked):
            yield "a device that is enrolled does not stay so"
        for device in set(devices) - set(treated):
            if front.ask(device) is not None:
                yield f"{device} is enrolled in control, when treatment is closed"
        if not eventually(lambda: plane.used(experiment) == 3):
            yield f"the control plane hears of {plane.used(experiment)} devices, not 3"


def a_lease_runs_out(host: Host) -> Problems:
    """Stop by itself when the control plane is gone; take no request with it; and come back."""
    with _edge(host, lease=1.5) as (plane, front):
        plane.arm(FAULT)
        front.hold(plane)
        if not eventually(lambda: front.ask("d1")):
            yield "it does not stamp"
        plane.go_away()
        gone = time.monotonic()
        if not eventually(lambda: front.onward("d1", "/", "a=b") == "a=b", plane.lease + 1):
            yield f"it stamps {time.monotonic() - gone:.1f} s after the control plane went away"
        plane.come_back()
        if not eventually(lambda: front.ask("d1"), 15.0):
            yield "it does not stamp again when the control plane is back"


def a_file_halts_it(host: Host) -> Problems:
    """Stamp nothing while the file of ``FIT_HALT_FILE`` is there."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "halt"
        with _edge(host, FIT_HALT_FILE=str(file)) as (plane, front):
            plane.arm(FAULT)
            front.hold(plane)
            if not front.ask("d1"):
                yield "it does not stamp"
            file.touch()
            if not eventually(lambda: front.ask("d1") is None, 2.0):
                yield "it stamps while the file is there"
            file.unlink()
            if not eventually(lambda: front.ask("d1"), 2.0):
                yield "it does not stamp again without the file"


def a_variable_halts_it(host: Host) -> Problems:
    """Stamp nothing where ``FIT_HALT`` is 1."""
    with _edge(host, FIT_HALT="1") as (plane, front):
        plane.arm(FAULT)
        front.hold(plane)
        if front.ask("d1", "/", f"fit={_signed('e9')}") is not None:
            yield "it stamps"


def the_service_halts_it(host: Host) -> Problems:
    """Stop as soon as the rules are taken away, or not understood as a whole."""
    with _edge(host, lease=60.0) as (plane, front):
        ways: tuple[tuple[str, Callable[[], object]], ...] = (
            ("rules that are gone", plane.disarm),
            ("no JSON", lambda: plane.answer_with(b"{")),
            ("half a rule", lambda: plane.answer_with(b'{"rules": [{}]}')),
            ("more than four megabytes", lambda: plane.answer_with(b"[" * 5_000_000)),
        )
        for name, stop in ways:
            plane.answer_well()
            plane.disarm()
            plane.arm(FAULT)
            front.onward("")
            if not eventually(lambda: front.ask("d1"), 15.0):
                yield f"it does not stamp, before {name}"
            stop()
            if not eventually(lambda: front.ask("d1") is None):
                yield f"it stamps on, after {name}"


def it_fails_open(host: Host) -> Problems:
    """Answer at once where the control plane hangs, refuses, or sends the edge elsewhere."""
    loading = _first_request(host)
    with _edge(host) as (plane, front), ControlPlane() as other:
        plane.arm(FAULT)
        plane.answer_slowly(30)
        yield from _passes(plane, front, "a control plane that hangs", loading)
        plane.go_away()
        yield from _passes(plane, front, "a control plane that is gone")
        plane.answer_slowly(0)
        plane.answer_with(status=302, headers={"location": f"{other.url}/api/v1/edge/rules"})
        plane.come_back()
        asked = len(plane.polls)
        if not eventually(lambda: len(plane.polls) > asked + 1, 15.0):
            yield "it does not ask again"
        yield from _passes(plane, front, "a control plane that sends it elsewhere")
        if other.polls:
            yield "it goes where a redirect sends it, and its token with it"


def devices_at_once_are_kept_apart(host: Host) -> Problems:
    """Stamp each of many requests at once for its own device, and keep each one's baggage."""
    with _edge(host) as (plane, front), ThreadPoolExecutor(8) as pool:
        plane.arm(FAULT, treatment=0.4, control=0.4)
        front.hold(plane)
        (rule,) = plane.rules

        def wrong(number: int) -> str:
            device = f"d{number % 20}" if number % 5 else ""
            found = front.onward(device, "/", f"n={number}")
            context = front.read(found)
            arm = None if context is None else context.arm
            want = rule.arm_of(device) if device else None
            if (arm, found.rpartition(",")[2]) != (want, f"n={number}"):
                return f"request {number}, in {want}, goes on with {found}"
            return ""

        yield from filter(None, pool.map(wrong, range(120)))


EDGE_CHECKS: Final[tuple[Check, ...]] = (
    contexts_from_outside_go,
    an_engineers_own_context_stays,
    devices_fall_where_the_vectors_say,
    who_a_device_is_is_for_the_operator_to_say,
    what_is_stamped_is_what_the_rule_says,
    other_baggage_passes,
    lengths_are_drawn_for_each_request,
    the_allowance_is_never_exceeded,
    a_lease_runs_out,
    a_file_halts_it,
    a_variable_halts_it,
    the_service_halts_it,
    it_fails_open,
    devices_at_once_are_kept_apart,
    *ASK_CHECKS,
)


@contextmanager
def _edge(host: Host, lease: float = 5.0, **more: str) -> Iterator[tuple[ControlPlane, Front]]:
    """Have the host set up an edge, beside a control plane of its own."""
    with ControlPlane(lease=lease) as plane:
        environment = {"LDFI_URL": plane.url, "LDFI_TOKEN": plane.token, **more}
        yield plane, Front(host.edge(environment), _KEYS)


def _signed(experiment: str, seconds: float = 60) -> str:
    return encode(_KEYS, experiment, "treatment", int(time.time() + seconds), [FAULT])


def _is_sent(device: str) -> bool:
    """Return whether a header can hold a device's name."""
    return device != "" and all(ord(letter) < 256 for letter in device)


def _first_request(host: Host) -> float:
    """Seconds that an edge's first request takes where the control plane answers: a host may load
    half of itself with it, before and after it begins to ask."""
    with _edge(host) as (_, front):
        began = time.monotonic()
        front.onward("d1", "/", f"a=b,fit={_signed('e9')}")
        return time.monotonic() - began


def _passes(plane: ControlPlane, front: Front, what: str, loading: float = 0.0) -> Problems:
    """Send requests, which may take no longer for the control plane. What passes before it is first
    asked is not on its account, nor are the seconds that a first request takes anyhow."""
    for anyhow in (loading, 0.0, 0.0):
        began = time.monotonic()
        found = front.onward("d1", "/", f"a=b,fit={_signed('e9')}")
        ended = time.monotonic()
        took = ended - max(began, plane.polls[0].at if plane.polls else ended)
        if found != "a=b" or took > 2 + anyhow:
            yield f"with {what} a request goes on with {found!r} after {took:.1f} s"
