"""The worlds of ``benchmarks.honesty``, drawn anew by each seed.

Every application can do without some of what it calls. In those of ``TROUBLED`` nothing hurts, and
something else is the matter. In those of ``DECEPTIVE`` a fault hurts in a way that is easily
missed; the same without any harm stands beside each. In those of ``PLAIN`` a fault hurts openly.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from benchmarks.honest_traffic import SETTINGS, Crowd, Report, Request, Scene, prompt, twice
from ldfi.experiments.domain.settings import PromqlOutcome
from ldfi.testing.world import START

BEGINS: Final = START + 60.0
"""When campaigns begin."""
GIVES_UP: Final = 2.5
"""Seconds after which a device gives up, where calls hang."""

Part = Callable[[Request], object]
Fails = Callable[[Request], bool]


def point(name: str) -> str:
    """Name the point at which a service of this name is called."""
    return f"api>http:GET:{name}/one"


def serving(rng: random.Random, *more: Part) -> Part:
    """Make an application of two to four calls that it can do without, and of ``more``."""
    names = [point(f"extra{number}") for number in range(rng.randint(2, 4))]

    def serve(request: Request) -> None:
        for name in names:
            request.call(name)
        for part in more:
            part(request)

    return serve


def troubled(lasts: float, at: float, pause: Callable[[], float]) -> Callable[[float], bool]:
    """Make spells that last so long from ``at`` on, with pauses; returns whether it is one."""
    begun = list[float]()
    while at < BEGINS + 2_000:
        begun.append(at)
        at += pause()
    return lambda now: any(start <= now < start + lasts for start in begun)


# Nothing hurts, and something else is the matter.


def outages(rng: random.Random, period: float = 0.0) -> Scene:
    """Let many requests fail for some seconds. ``period``: every so many seconds; 0: at random."""
    lasts, share = rng.uniform(1, 5), rng.uniform(0.3, 0.9)
    begins = BEGINS + rng.choice([-60.0, 0.0, rng.uniform(0, 60)])
    out = troubled(lasts, begins, lambda: period or rng.expovariate(1 / 40) + lasts)

    def fails(request: Request) -> bool:
        return out(request.began) and rng.random() < share

    often = f"every {period:.0f} s" if period else "now and then"
    story = f"{often} for {lasts:.1f} s {share:.0%}, from {begins - BEGINS:.0f} s"
    return Scene(serving(rng), story, fails=fails, early=rng.random() < 0.2)


def shedding(rng: random.Random) -> Scene:
    """Have more come now and then than can be served; a fallback is work as well."""
    base, swing, every = 4.0, rng.uniform(1, 3), rng.uniform(20, 120)
    capacity, costs = rng.uniform(1.8, 2.6) * 2 * base, rng.uniform(0, 1)
    load, last = 0.0, START
    inner = serving(rng)

    def rate(now: float) -> float:
        return base * (1 + swing * max(0.0, math.sin(2 * math.pi * now / every)) ** 4)

    def fails(request: Request) -> bool:
        nonlocal load, last
        load *= math.exp(last - request.began)
        last = request.began
        load += 1
        return load > capacity and rng.random() < 0.7

    def serve(request: Request) -> None:
        nonlocal load
        inner(request)
        load += costs * bool(request.hit)

    story = f"capacity {capacity:.0f}/s, waves of {swing:.1f} every {every:.0f} s"
    return Scene(serve, story, fails=fails, crowds=(Crowd(rate),))


def drift(rng: random.Random) -> Scene:
    """Let more or fewer fail, slowly; at some time something new is called."""
    low, high = rng.uniform(0, 0.02), rng.uniform(0.04, 0.09)
    begins, lasts, changes = rng.uniform(0, 200), rng.uniform(60, 400), rng.uniform(30, 300)
    down = rng.random() < 0.3

    def fails(request: Request) -> bool:
        gone = min(1.0, max(0.0, (request.began - BEGINS - begins) / lasts))
        return rng.random() < low + (high - low) * (1 - gone if down else gone)

    def new(request: Request) -> None:
        if request.began > BEGINS + changes:
            request.call(point("new"))

    story = f"{low:.1%} to {high:.1%}{', falling' if down else ''}; new call at {changes:.0f} s"
    return Scene(serving(rng, new), story, fails=fails)


def bots(rng: random.Random) -> Scene:
    """Have a few devices ask again and again, and mostly fail."""
    many, share = rng.randint(1, 12), rng.uniform(0.5, 1.0)
    rate = rng.uniform(0.02, 0.07) * 10 / share

    def fails(request: Request) -> bool:
        return request.device.name.startswith("bot") and rng.random() < share

    crowds = (Crowd(), Crowd(rate, many, lambda _rng: [], "bot"))
    return Scene(
        serving(rng), f"{many} bots, {rate:.1f}/s, {share:.0%}", fails=fails, crowds=crowds
    )


def slow_fallbacks(rng: random.Random) -> Scene:
    """Report failures at once, and successes late where a fault has fired."""
    rate, longest = rng.uniform(0.01, 0.05), rng.uniform(1, 8)

    def serve(request: Request) -> None:
        inner(request)
        request.clock += rng.uniform(0, longest) if request.hit else 0.0

    inner = serving(rng)
    fails = failing(rng, rate)
    return Scene(serve, f"{rate:.1%} fail, fallbacks up to {longest:.1f} s", fails=fails)


def clocks(rng: random.Random) -> Scene:
    """Let the clocks of edges differ, while there are outages."""
    skews = (rng.uniform(-5, 5), rng.uniform(-5, 5))
    scene = outages(rng, rng.choice([20.0, 40.0]))
    return replace(scene, skews=skews, story=f"{scene.story}; {skews[0]:.1f}, {skews[1]:.1f} s")


def bursts(rng: random.Random) -> Scene:
    """Let calls time out in bursts, and devices give up on what takes too long: a busy machine."""
    every, lasts = rng.uniform(5, 60), rng.uniform(0.5, 3)
    share, hangs = rng.uniform(0.2, 0.8), rng.uniform(0.5, 2)
    names = [point(f"extra{number}") for number in range(rng.randint(2, 4))]
    busy = troubled(lasts, START + rng.uniform(0, 90), lambda: rng.expovariate(1 / every) + lasts)

    def serve(request: Request) -> None:
        for name in names:
            out = busy(request.clock) and rng.random() < share
            request.call(name, hangs=hangs if out else 0.0)
        request.good = request.clock - request.began <= GIVES_UP

    return Scene(serve, f"every {every:.0f} s for {lasts:.1f} s {share:.0%}, {hangs:.1f} s a call")


def lost_reports(rng: random.Random) -> Scene:
    """Lose some reports, and let some requests fail, by network or by device."""
    rate, lost, by = rng.uniform(0.01, 0.06), rng.uniform(0.05, 0.5), rng.choice(["net", "device"])

    def fails(request: Request) -> bool:
        whose = random.Random(request.device.name).random()  # always the same
        if by == "device":
            return whose < rate and rng.random() < 0.95
        bad = random.Random(f"{int(whose * 25)} {request.began // 10}").random() < rate
        return bad and rng.random() < 0.95

    report = heard(1 - lost)
    return Scene(serving(rng), f"{rate:.1%} by {by}, {lost:.0%} lost", fails=fails, report=report)


def counted(rng: random.Random) -> Scene:
    """Count outcomes elsewhere; some fail by themselves."""
    rate = rng.uniform(0.01, 0.06)
    settings = replace(SETTINGS, promql=PromqlOutcome("failed", "all"))
    return Scene(serving(rng), f"{rate:.1%} fail", settings=settings, fails=failing(rng, rate))


def failing(rng: random.Random, share: float) -> Fails:
    """Let this share of requests fail by themselves."""
    return lambda _request: rng.random() < share


def heard(share: float) -> Callable[[Request, random.Random], Sequence[Report]]:
    """Let this share of reports arrive."""

    def report(request: Request, rng: random.Random) -> Sequence[Report]:
        return prompt(request, rng) if rng.random() < share else []

    return report


# A fault hurts in a way that is easily missed. ``hurts``: else the same without any harm.

FAULT: Final = point("fault")
PLANTED: Final = frozenset({FAULT})


def deceptive(serve: Part, hurts: bool, story: str = "", **more: Any) -> Scene:
    """Make such a scene."""
    return Scene(serve, story, PLANTED if hurts else frozenset(), **more)


def next_request(rng: random.Random, hurts: bool) -> Scene:
    """Lose a cart, a session, a token: the next request of the device fails."""
    gap, share = math.exp(rng.uniform(0, math.log(120))), rng.uniform(0.6, 1)
    more = rng.randint(1, 3)

    def part(request: Request) -> None:
        device = request.device
        request.good, device.lost = not device.lost, False
        device.lost = not request.call(FAULT) and hurts and rng.random() < share

    def gaps(rng: random.Random) -> list[float]:
        return [gap * rng.uniform(0.5, 1.5) for _ in range(more)]

    crowds = (Crowd(10.0 / (1 + more), 0, gaps),)
    story = f"{share:.0%}, next after {gap:.0f} s, {more} more"
    return deceptive(serving(rng, part), hurts, story, crowds=crowds)


def callers(rng: random.Random, hurts: bool) -> Scene:
    """Have the caller ask again before it gives up."""
    attempts, total = rng.randint(2, 6), rng.uniform(5, 60)
    weights = [2.0**n if rng.random() < 0.5 else 1.0 for n in range(attempts - 1)]
    pauses = [total * each / sum(weights) for each in weights]

    def part(request: Request) -> None:
        good = request.call(FAULT)
        for pause in pauses if not good else ():
            request.clock += pause
            good = request.call(FAULT)
            if good:
                break
        request.good = good or not hurts

    story = "pauses " + ", ".join(f"{each:.1f}" for each in pauses)
    return deceptive(serving(rng, part), hurts, story)


def crashes(rng: random.Random, hurts: bool, least: float = 0.5, most: float = 1.0) -> Scene:
    """Have some of the treated crash and never report; of other reports not all are heard."""
    share, hears = rng.uniform(0.1, 0.5), rng.uniform(least, most)
    others = heard(hears)

    def report(request: Request, rng: random.Random) -> Sequence[Report]:
        crashed = hurts and FAULT in request.hit and rng.random() < share
        return () if crashed else others(request, rng)

    # what hurts fewer than delta may be called tolerated: whoever minds asks for less; that takes
    # many devices, of which each counts once
    delta = min(0.15, round(0.8 * share, 3))
    settings = replace(SETTINGS, delta=delta, treatment=0.4, members=1_500)
    crowd = Crowd(8.0, 0, lambda rng: twice(rng) if rng.random() < 0.25 else [])
    story = f"{share:.0%} crash, {hears:.0%} heard, delta {settings.delta}"
    return deceptive(
        serving(rng, lambda request: request.call(FAULT)),
        hurts,
        story,
        report=report,
        settings=settings,
        crowds=(crowd,),
    )


def seldom(rng: random.Random, hurts: bool) -> Scene:
    """Hurt whoever asks seldom; whoever asks often comes first."""
    regulars, rate = rng.randint(300, 600), rng.uniform(0.3, 0.8)

    def part(request: Request) -> None:
        if not request.call(FAULT):
            request.good = not (hurts and request.device.name.startswith("seldom"))

    crowds = (
        Crowd(10.0, regulars, lambda _rng: [], "regular"),
        Crowd(rate, 0, lambda _rng: [], "seldom"),
    )
    story = f"{regulars} come every {regulars / 10:.0f} s, {rate:.1f} new ones a second"
    settings = replace(SETTINGS, members=400)  # regulars come first
    return deceptive(serving(rng, part), hurts, story, crowds=crowds, settings=settings)


def contradictory(rng: random.Random, hurts: bool) -> Scene:
    """Let a device say that all is not well, when it or another one has said that it is."""
    late, share = rng.uniform(0.2, 3), rng.uniform(0.5, 1)
    first = "other " if rng.random() < 0.5 else ""

    def part(request: Request) -> None:
        if not request.call(FAULT):
            request.good = not hurts or rng.random() > share

    def report(request: Request, rng: random.Random) -> Sequence[Report]:
        good = request.good and rng.random() > 0.01
        name = request.device.name
        return [(0.1, first + name, True), (0.1 + late, name, good)]

    story = f"{share:.0%}, after {late:.1f} s{first and ', by another one'}"
    return deceptive(serving(rng, part), hurts, story, report=report)


def after_answer(rng: random.Random, hurts: bool) -> Scene:
    """Call something after the answer: a receipt, a message that never comes."""
    later, told = rng.uniform(0.05, 1.5), rng.uniform(0.5, 3)

    def part(request: Request) -> None:
        request.ended = request.clock
        request.clock += later
        request.good = request.call(FAULT) or not hurts

    def report(request: Request, rng: random.Random) -> Sequence[Report]:
        return [(told * rng.uniform(0.8, 1.2), request.device.name, request.good)]

    story = f"called {later:.1f} s after, told {told:.1f} s later"
    return deceptive(serving(rng, part), hurts, story, report=report)


def release(rng: random.Random, hurts: bool) -> Scene:
    """Have a release within an experiment: from then on the fault hurts."""
    left = rng.randint(1, 25)
    takes = rng.uniform(0.0, 0.5)

    def part(request: Request) -> None:
        nonlocal left
        good = request.call(FAULT)
        left -= request.arm == "treatment" and not good
        if left <= 0:
            request.clock += takes
            request.good = good or not hurts

    return deceptive(serving(rng, part), hurts, f"after {left} of the treated")


def cut_traces(rng: random.Random, hurts: bool) -> Scene:
    """Lose the span of a publishing that fails: what is below hangs in the air. Where nothing hurts
    some are lost whatever comes of it."""
    loses = 1.0 if hurts else rng.uniform(0.1, 0.4)

    def part(request: Request) -> None:
        name, began = request.new_id(), request.clock
        good = request.call(FAULT, under=name)
        lost = rng.random() < loses and not (hurts and good)
        if not lost:
            request.write(name, "root", began, "producer", failed=not good)
        request.good = good or not hurts

    return deceptive(serving(rng, part), hurts, f"{loses:.0%} cut")


def shared(rng: random.Random, hurts: bool) -> Scene:
    """Open a breaker, or use up a pool of connections, for everybody; the treated do without."""
    pool, many, lasts = rng.random() < 0.5, rng.randint(3, 6), rng.uniform(3, 12)
    failed: list[float] = []
    until = START

    def part(request: Request) -> None:
        nonlocal until
        failed[:] = [each for each in failed if request.clock < each + lasts]
        full = len(failed) >= many
        if not pool and full:
            until = request.clock + lasts
            failed.clear()
        if hurts and (full if pool else request.clock < until):
            request.good = False
        elif not request.call(FAULT):
            failed.append(request.clock)

    story = f"a {'pool' if pool else 'breaker'} of {many}, {lasts:.0f} s"
    return deceptive(serving(rng, part), hurts, story)


# A fault hurts openly: what is found today.


def open_harm(rng: random.Random, share: float, fails: float = 0.02) -> Scene:
    """Call what this share of requests cannot do without."""

    def part(request: Request) -> None:
        request.good = request.call(FAULT) or rng.random() > share

    story = f"{share:.0%} hurt"
    return deceptive(serving(rng, part), True, story, fails=failing(rng, fails))


def pair(rng: random.Random) -> Scene:
    """Call something, and its fallback."""
    names = point("fault"), point("fallback")

    def part(request: Request) -> None:
        request.good = request.call(names[0]) or request.call(names[1])

    settings = replace(SETTINGS, max_size=2)
    fails = failing(rng, 0.01)
    return Scene(serving(rng, part), "", frozenset(names), settings, fails=fails)


Draws = Callable[[random.Random], Scene]

TROUBLED: Final[Mapping[str, Draws]] = {
    "outages every 20 s": lambda rng: outages(rng, 20.0),
    "outages every 40 s": lambda rng: outages(rng, 40.0),
    "outages every 80 s": lambda rng: outages(rng, 80.0),
    "outages at random": outages,
    "load shedding": shedding,
    "drift": drift,
    "bots": bots,
    "slow fallbacks": slow_fallbacks,
    "clocks": clocks,
    "timeouts in bursts": bursts,
    "lost reports": lost_reports,
    "counted elsewhere": counted,
}
DECEPTIVE: Final[Mapping[str, Callable[[random.Random, bool], Scene]]] = {
    "next request": next_request,
    "callers": callers,
    "crashes, most heard": crashes,
    "crashes, few heard": lambda rng, hurts: crashes(rng, hurts, 0.1, 0.5),
    "seldom devices": seldom,
    "contradictory reports": contradictory,
    "after the answer": after_answer,
    "release": release,
    "cut traces": cut_traces,
    "a breaker or a pool": shared,
}
PLAIN: Final[Mapping[str, Draws]] = {
    "always hurts": lambda rng: open_harm(rng, rng.uniform(0.9, 1.0)),
    "half hurts": lambda rng: open_harm(rng, rng.uniform(0.4, 0.7)),
    "a quarter hurts": lambda rng: open_harm(rng, rng.uniform(0.2, 0.35)),
    "a pair hurts": pair,
    "hurts among outages": lambda rng: replace(
        open_harm(rng, rng.uniform(0.8, 1.0)), fails=outages(rng, rng.choice([0.0, 80.0])).fails
    ),
    "hurts among lost reports": lambda rng: replace(
        open_harm(rng, rng.uniform(0.6, 1.0)), report=heard(rng.uniform(0.6, 0.95))
    ),
    "hurts, counted elsewhere": lambda rng: replace(
        open_harm(rng, rng.uniform(0.9, 1.0)), settings=counted(rng).settings
    ),
}


def drawn(name: str, rng: random.Random) -> Scene:
    """Draw a world by its name."""
    alone = {**TROUBLED, **PLAIN}
    if name in alone:
        return alone[name](rng)
    base = name.removesuffix(HARMLESS)
    return DECEPTIVE[base](rng, name == base)


HARMLESS: Final = ", harmless"
OUT_OF_REACH: Final = frozenset({"after the answer", "after the answer" + HARMLESS})
"""Worlds in which nothing can be injected where it hurts, so that nobody can tell them apart."""
NAMES: Final = (*TROUBLED, *(n + h for n in DECEPTIVE for h in ("", HARMLESS)), *PLAIN)
