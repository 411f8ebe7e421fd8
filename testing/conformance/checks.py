"""What every implementation has to do, check by check. Each returns what is wrong, in words."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from ldfi.fit.protocol.context import Arm, encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.testing.conformance.host import ANSWER, Host, Run

HOST_KEYS: Final = "k1:conformance-conformance"
"""What a host has in ``FIT_KEYS``."""
FORGERIES: Final = 10_000

_KEYS: Final = Keys.parse(HOST_KEYS)
_OTHER: Final = Keys.parse("k1:not-the-right-key")
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-"
_VECTORS: Final = Path(__file__).parents[2] / "fit" / "protocol" / "vectors"
_SEEN: Final[Mapping[str, Mapping[str, Any]]] = {
    "error": {"status": 503},
    "refused": {"failed": "refused"},
    "reset": {"failed": "reset"},
    "timeout": {"failed": "timeout"},
    "status": {"status": 418},
    "empty": {"status": 200, "length": 0},
    "truncated": {"failed": "truncated"},
    "corrupt": {"status": 200},
}
"""Word of a kind → what its caller sees, as far as every language sees the same."""

Problems = Iterator[str]
Check = Callable[[Host], Problems]


def contexts_are_read(host: Host) -> Problems:
    """Read all vectors of contexts."""
    cases = _vectors("contexts.json")["cases"]
    asked = [{key: case[key] for key in ("keys", "value", "now")} for case in cases]
    for case, told in zip(cases, host.decode(asked), strict=True):
        if told["result"] != case["result"]:
            yield f"{case['name']}: {told['result']}, not {case['result']}"
        elif "context" in case and _sorted(told["context"]) != _sorted(case["context"]):
            yield f"{case['name']}: read as {told['context']}"


def points_are_named(host: Host) -> Problems:
    """Name all vectors of the kinds of points that the implementation knows."""
    vectors = _vectors("points.json")
    for kind in sorted(host.names):
        cases = vectors[kind]
        asked = [{"kind": kind, **case, "port": case.get("port") or 0} for case in cases]
        for case, told in zip(cases, host.name(asked), strict=True):
            if (told["name"], told["hash"]) != (case["name"], case["hash"]):
                yield f"{told['name']} ({told['hash']}), not {case['name']} ({case['hash']})"


def forgeries_are_refused(host: Host) -> Problems:
    """Refuse ten thousand of them, and inject at none of some that are sent."""
    draw, now = random.Random(6), time.time()
    forged = [_forged(draw, host, now) for _ in range(FORGERIES)]
    for at in range(0, FORGERIES, 1000):
        some = forged[at : at + 1000]
        asked = [{"keys": HOST_KEYS, "value": value, "now": now} for value in some]
        for value, told in zip(some, host.decode(asked), strict=True):
            if told["result"] == "accepted":
                yield f"obeys {value}"
    for value in forged[:30]:
        run = host.run(f"fit={value}")
        late = bool(run.spans) and all("fit.expired" in span for span in run.spans)
        yield from _untouched(Run(run.seen, ()) if late else run, value)


def what_has_expired_is_void(host: Host) -> Problems:
    """Obey a context until it expires, and not an instant longer; from then on say only that its
    time was over."""
    value = signed(host, "error", seconds=2)
    if not host.run(value).spans:
        yield "does not obey a context that holds"
    time.sleep(2.1)
    late = host.run(value)
    yield from _untouched(Run(late.seen, ()), "an expired context")
    if ["fit.expired" in span for span in late.spans] != [True]:
        yield f"an expired context: it says {list(late.spans)}"


def each_kind_is_seen_and_proved(host: Host) -> Problems:
    """Show every kind that the implementation has, and claim none that it has not."""
    for word, seen in _SEEN.items():
        kind = "status:418" if word == "status" else word
        run = host.run(signed(host, kind), timeout_ms=300)
        if word not in host.kinds:
            if word != "refused":  # a proxy has one of its own
                yield from _untouched(run, kind)
            continue
        if not seen.items() <= dict(run.seen[0]).items():
            yield f"{kind}: its caller sees {run.seen[0]}"
        yield from _proved(host, run, kind)
    for kind in ("grpc:ABORTED", "sql:deadlock", "redis:loading", "exception:KeyError"):
        yield from _untouched(host.run(signed(host, kind)), kind)


def delays_end(host: Host) -> Problems:
    """End a delay with the caller's patience, or let the call through when it is over."""
    began = time.monotonic()
    run = host.run(signed(host, "delay", delay_ms=400))
    if run.seen[0].get("status") != 200 or time.monotonic() - began < 0.4:
        yield f"a delay that is outlasted: {run.seen[0]}"
    yield from _proved(host, run, "delay")
    began = time.monotonic()
    run = host.run(signed(host, "delay", delay_ms=20_000), timeout_ms=300)
    if run.seen[0] != {"failed": "timeout"} or time.monotonic() - began > 5:
        yield f"a delay past the caller's patience: {run.seen[0]}"


def bodies_come_slowly(host: Host) -> Problems:
    """Have the body of an answer take its time, where the implementation has that kind."""
    began = time.monotonic()
    run = host.run(signed(host, "slow:0.4"))
    if "slow" not in host.kinds:
        yield from _untouched(run, "slow")
        return
    if run.seen[0].get("status") != 200 or time.monotonic() - began < 0.4:
        yield f"a body that comes slowly: {run.seen[0]} after {time.monotonic() - began:.2f} s"
    yield from _proved(host, run, "slow")


def control_only_records(host: Host) -> Problems:
    """Do nothing in the control arm, and write down what would have been done."""
    for kind in ("error", "delay", "status:500"):
        run = host.run(signed(host, kind, arm="control", delay_ms=60_000))
        marks = [span.get("fit.would_fire") for span in run.spans]
        if run.seen[0].get("status") != 200 or marks != [kind] or "fit.fired" in run.spans[0]:
            yield f"{kind}: {run.seen[0]}, {marks}"


def the_first_calls_are_counted(host: Host) -> Problems:
    """Hit the first calls of a request and let later ones through, in either arm."""
    arms: tuple[tuple[Arm, str], ...] = (("treatment", "fit.fired"), ("control", "fit.would_fire"))
    for arm, mark in arms:
        value = signed(host, "status:500", arm=arm, first=2)
        for _ in range(2):
            run = host.run(value, calls=3)
            hit = [arm == "treatment"] * 2 + [False]
            if [call.get("status") == 500 for call in run.seen] != hit:
                yield f"{arm}: {run.seen}"
            told = [mark if mark in span else "fit.let_through" for span in run.spans]
            if told != [mark, mark, "fit.let_through"]:
                yield f"{arm}: {run.spans}"


def what_cannot_be_proved_is_not_done(host: Host) -> Problems:
    """Inject nothing into a request whose trace is not recorded. A sampler may keep it."""
    run = host.run(signed(host, "error"), sampled=False)
    if not run.spans:
        yield from _untouched(run, "an unsampled trace")


def what_is_not_meant_passes(host: Host) -> Problems:
    """Let through what carries no context, a broken one, two of them, or one for another point."""
    value = signed(host, "error")
    elsewhere = signed(host, "error", point=host.point("/elsewhere"))
    for name, baggage in (
        ("none", ""),
        ("others", "a=b,fit2=1.2"),
        ("broken", "fit=1.2.3"),
        ("two", f"{value},{value}"),
        ("too long", f"{value}{'A' * 5000}"),
        ("another point", elsewhere),
    ):
        if name != "two" or host.reads == "header":
            yield from _untouched(host.run(baggage), name)


def requests_at_once_are_kept_apart(host: Host) -> Problems:
    """Fail those of many requests at once that carry a context, and no other."""
    value = signed(host, "error")

    def one(number: int) -> tuple[int, Run]:
        return number, host.run(f"a=b,{value}" if number % 2 else "a=b", calls=2)

    with ThreadPoolExecutor(8) as pool:
        for number, run in pool.map(one, range(60)):
            want = 503 if number % 2 else 200
            if [call.get("status") for call in run.seen] != [want, want]:
                yield f"request {number}: {run.seen}"


CHECKS: Final[tuple[Check, ...]] = (
    contexts_are_read,
    points_are_named,
    forgeries_are_refused,
    what_has_expired_is_void,
    each_kind_is_seen_and_proved,
    delays_end,
    bodies_come_slowly,
    control_only_records,
    the_first_calls_are_counted,
    what_cannot_be_proved_is_not_done,
    what_is_not_meant_passes,
    requests_at_once_are_kept_apart,
)


def signed(
    host: Host,
    kind: str,
    *,
    point: str = "",
    arm: Arm = "treatment",
    seconds: float = 60,
    first: int = 0,
    delay_ms: int = 10_000,
) -> str:
    """Sign a context with one fault, as an entry of the baggage."""
    fault = Fault(point or host.point(), kind, first)
    expires = int(time.time() + seconds)
    return f"fit={encode(_KEYS, 'e7c1', arm, expires, [fault], delay_ms=delay_ms)}"


def _forged(draw: random.Random, host: Host, now: float) -> str:
    """Make a context that nobody signed, or that has expired, from one that holds."""
    kind = draw.choice(["error", "delay", "refused", "status:503", "timeout"])
    faults = [Fault(host.point(), kind, draw.choice([0, 2])), Fault(f"p{draw.random()}", "error")]

    def made(keys: Keys, expires: float) -> str:
        return encode(keys, "e7c1", draw.choice(["treatment", "control"]), int(expires), faults)

    good = made(_KEYS, now + 60)
    at, letter = draw.randrange(len(good)), draw.choice(_ALPHABET)
    forged = draw.choice(
        [
            good[:at] + letter + good[at + 1 :],
            good[:at] + good[at + 1 :],
            good[:at] + letter + good[at:],
            good[:at],
            good.replace(".e7c1.", ".e7c2."),
            made(_OTHER, now + 60),
            made(_KEYS, now - draw.randrange(3600)),
            good + letter * draw.randrange(1, 5000),
        ]
    )
    return forged if forged != good else good[:-1]


def _untouched(run: Run, what: str) -> Problems:
    if any(call != {"status": 200, "length": len(ANSWER)} for call in run.seen) or run.spans:
        yield f"{what}: {list(run.seen)}, {list(run.spans)}"


def _proved(host: Host, run: Run, kind: str) -> Problems:
    marks = {"fit.point": host.point(), "fit.fired": kind, "event": "fit.fault"}
    if [dict(span) for span in run.spans] != [marks]:
        yield f"{kind}: the proof is {list(run.spans)}"


def _sorted(context: Mapping[str, Any]) -> dict[str, Any]:
    return {**context, "faults": sorted(context["faults"], key=lambda fault: fault["hash"])}


def _vectors(file: str) -> Any:
    return json.loads((_VECTORS / file).read_text(encoding="utf-8"))
