"""What an edge has to do where devices are asked for, check by check."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.predicate import Predicate
from ldfi.fit.protocol.rules import Rule
from ldfi.testing.conformance.checks import HOST_KEYS, Check, Problems
from ldfi.testing.conformance.front import Front, eventually
from ldfi.testing.conformance.host import Host
from ldfi.testing.conformance.offering import VERSION, Granting, OfferingPlane, offering

_FAULT: Final = Fault("api>http:GET:ratings/titles/*", "status:503")
_KEYS: Final = Keys.parse(HOST_KEYS)
_ARMS: Final[tuple[Arm, ...]] = ("treatment", "control")
_SOON: Final = 0.05
"""Seconds between two requests: longer than anybody may wait for an answer to an ask."""
_PATIENCE: Final = 30.0


def devices_of_both_arms_are_asked_for(host: Host) -> Problems:
    """Ask for a device, of either arm, when the edge may enrol nobody by itself; stamp it when it
    is granted, and ask for it no more; report it, and that the ask is settled."""
    for arm in _ARMS:
        with _edge(host, OfferingPlane((_rule(0),))) as (plane, front):
            device = _device(arm)
            if not _stamped(front, device):
                yield f"{arm}: it is not stamped, after {len(plane.asks)} asks"
                continue
            asked, context = list(plane.asks), front.ask(device)
            if context is None or context.arm != arm or len(plane.asks) != len(asked):
                yield f"{arm}: once enrolled it goes on with {context}, after {plane.asks}"
            if {(each["arm"], each["version"]) for each in asked} != {(arm, VERSION)}:
                yield f"{arm}: it asks {asked}"
            numbers = [each["ask"] for each in asked]
            if numbers != sorted(set(numbers)) or numbers[0] < 1:  # one may never have been sent
                yield f"{arm}: its asks are not numbered from 1: {asked}"
            yield from _is_told(plane, arm, numbers[-1])


def _stamped(front: Front, device: str) -> bool:
    """Return whether a device comes to be stamped. On a machine with much to do an answer or two
    may come too late, and then nobody is asked for a while."""
    deadline = time.monotonic() + _PATIENCE
    while front.ask(device) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(_SOON)
    return True


def _is_told(plane: OfferingPlane, arm: Arm, asks: int) -> Problems:
    used, control = ("e1:1", "") if arm == "treatment" else ("", "e1:1")

    def told() -> bool:
        return all(
            plane.told(name) == value
            for name, value in (("used", used), ("control", control), ("asked", str(asks)))
        )

    if not eventually(told):
        yield f"{arm}: after {asks} asks the control plane hears {plane.polls[-1:]}"


def what_is_not_granted_is_in_neither_arm(host: Host) -> Problems:
    """Leave a device unstamped that is refused, or whose answer fails, is late or about other
    rules; count what failed; settle every ask."""
    for name, granting, late in (
        ("refused", Granting(granted=False), False),
        ("about other rules", Granting(version="epoch-2"), False),
        ("failing", Granting(status=503), True),
        ("late", Granting(after=2 * _SOON), True),
    ):
        with _edge(host, OfferingPlane((_rule(0),), granting)) as (plane, front):
            stamped = _asked_for(plane, front)
            if stamped:
                yield f"with an answer that is {name} it goes on with {stamped}"
            if not eventually(partial(_is_settled, plane)):
                yield f"an ask whose answer is {name} is not settled: {plane.polls[-1:]}"
            elif plane.told("used") or plane.told("control"):
                yield f"an ask whose answer is {name} is told to have enrolled: {plane.polls[-1]}"
            elif late and not eventually(partial(_counts, plane, front)):
                yield f"an answer that is {name} is not counted: {plane.polls[-1]}"


def _is_settled(plane: OfferingPlane) -> bool:
    return plane.told("asked") not in ("", "0")


def _counts(plane: OfferingPlane, front: Front) -> bool:
    """Return whether the control plane hears of answers that came too late; with the next ask, it
    may be."""
    front.onward(_device("treatment"))
    time.sleep(_SOON)
    return plane.told("late") not in ("", "0")


def _asked_for(plane: OfferingPlane, front: Front) -> list[str]:
    """Send requests of a device that is asked for, also after the answer has come; return what
    they are stamped with."""
    found: list[str] = []

    def ask() -> bool:
        found.append(front.onward(_device("treatment")))
        return bool(plane.asks)

    eventually(ask)
    for _ in range(4):
        time.sleep(_SOON)
        found.append(front.onward(_device("treatment")))
    return [each for each in found if each]


def offers_alone_stamp_nobody(host: Host) -> Problems:
    """Act upon a lease, and not upon what a stream offers; without anybody enrolled hold one
    stream, and poll nothing."""
    with _edge(host, OfferingPlane((_rule(None),), leases=False)) as (plane, front):
        if not eventually(lambda: plane.polls):
            yield "it asks for no lease, when it may enrol devices without asking for them"
        for number in range(5):
            if front.onward(f"d{number}"):
                yield "it stamps what is only offered"
        if plane.asks:
            yield f"it asks for devices before its own allowance is used up: {plane.asks}"
    with _edge(host, OfferingPlane((_rule(0),))) as (plane, front):
        time.sleep(1.0)
        front.onward("")
        if plane.polls or plane.asks or plane.streams != 1:
            yield f"with nobody enrolled: {plane.streams} streams, {plane.polls}, {plane.asks}"


def an_allowance_is_used_before_anybody_is_asked_for(host: Host) -> Problems:
    """Enrol as many devices as allowed without asking, and ask for the next one."""
    with _edge(host, OfferingPlane((_rule(1),), Granting(granted=False))) as (plane, front):
        if not eventually(lambda: front.ask(_device("treatment"))) or plane.asks:
            yield f"the first device is not stamped without asking: {plane.asks}"
        for arm in reversed(_ARMS):
            if front.ask(_device(arm, 1)) is not None:
                yield f"a device in {arm} is stamped, when the allowance is used up"
        if not plane.asks:
            yield "nobody is asked for, when the allowance is used up"


ASK_CHECKS: Final[tuple[Check, ...]] = (
    devices_of_both_arms_are_asked_for,
    what_is_not_granted_is_in_neither_arm,
    offers_alone_stamp_nobody,
    an_allowance_is_used_before_anybody_is_asked_for,
)


def _rule(members: int | None) -> Rule:
    return Rule("e1", "salt-e1", Predicate(), 0.5, 0.5, (_FAULT,), members=members)


def _device(arm: Arm, nth: int = 0) -> str:
    """Name the nth device that falls in an arm."""
    found = [f"d{number}" for number in range(64) if _rule(0).arm_of(f"d{number}") == arm]
    return found[nth]


@contextmanager
def _edge(host: Host, plane: OfferingPlane) -> Iterator[tuple[OfferingPlane, Front]]:
    """Have the host set up an edge, and wait until it listens to this plane."""
    with offering(plane):
        front = Front(host.edge({"LDFI_URL": plane.url, "LDFI_TOKEN": "t"}), _KEYS)
        front.onward("")
        if not eventually(lambda: plane.streams):
            raise TimeoutError("the edge opens no stream of offers")
        yield plane, front
