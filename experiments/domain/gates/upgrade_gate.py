"""May this be taken down now? The question of an upgrade pipeline before each step.

The step is judged together with all that is down already: what the open maintenance windows say,
and what the traces of the last minute show to be failing. It is refused when it would hurt by
itself, or when it would leave a request class one failure from pain; and while a class that it
concerns is not well, or a guardrail does not hold. A failure that hurts with nothing down as well
is a finding of its own and no reason against the step: otherwise one single point of failure would
forbid every upgrade.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.gates.current_state import CurrentState, doubts, unheard, unwell
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.gates.whatif import WhatIf, points_named, what_if
from ldfi.experiments.domain.traffic.vital_signs import Sign

GateVerdict = Literal["safe", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Gate:
    """``down``: the step and what is down already. ``why``: each reason against it, or why nobody
    knows, in words; empty when it is safe. ``signs``: what fails now, or is late, of what the
    classes concerned call."""

    verdict: GateVerdict
    down: tuple[str, ...]
    why: tuple[str, ...]
    classes: tuple[WhatIf, ...]
    signs: tuple[Sign, ...] = ()


def gate(
    step: Sequence[str],
    windows: Sequence[Maintenance],
    known: Iterable[Knowledge],
    spare: int = 1,
    current_state: CurrentState | None = None,
) -> Gate:
    """Judge a maintenance step, given open windows and what is known of each class.

    ``spare``: how many failures must be survived on top of the step, 0 or 1. ``current_state``: how
    things are now; None where nobody looked, then all that is known of is taken to be there.
    Nothing is taken to be safe that is not proved: not a name that no class is known to call, and
    nothing while a window is open that does not say what is down.
    """
    every = list(known)
    concerned = [each for each in every if points_named(step, each)]
    signs = tuple(_of_these(concerned, current_state))
    failing = (sign.name for sign in signs if sign.state == "failing")
    named = (name for window in windows for name in window.down)
    down = tuple(dict.fromkeys([*step, *named, *failing]))
    answers = [each for each in (what_if(one, down) for one in concerned) if each is not None]
    refused = [reason for each in answers for reason in _against(each, spare)]
    unknown = [
        f"no request class is known to call {name}"
        for name in dict.fromkeys(step)
        if not any(points_named([name], each) for each in concerned)
    ]
    unknown += [
        f"window {each.id} on everything is open and does not say what is down: {each.reason}"
        for each in windows
        if not each.down
    ]
    unknown += [reason for each in answers for reason in _unproved(each, spare)]
    if current_state is not None:
        refused += _ill(concerned, current_state)
        unknown += _unsure(concerned, down, current_state)
    verdict: GateVerdict = "refused" if refused else "unknown" if unknown else "safe"
    return Gate(verdict, down, tuple(refused or unknown), tuple(answers), signs)


def _of_these(concerned: Sequence[Knowledge], current_state: CurrentState | None) -> Iterator[Sign]:
    """Return the signs of points that these classes call."""
    signs = (
        () if current_state is None else (*current_state.signs.failing, *current_state.signs.late)
    )
    for sign in signs:
        if any(points_named([sign.name], each) for each in concerned):
            yield sign


def _ill(concerned: Sequence[Knowledge], current_state: CurrentState) -> Iterator[str]:
    if current_state.breach is not None:
        yield current_state.breach
    for each in concerned:
        reason = unwell(each, current_state)
        if reason is not None:
            yield reason


def _unsure(
    concerned: Sequence[Knowledge], down: Sequence[str], current_state: CurrentState
) -> Iterator[str]:
    for each in concerned:
        silent = unheard(each, current_state)
        if silent is not None:
            yield silent
        else:
            yield from doubts(each, points_named(down, each), current_state)


def _against(answer: WhatIf, spare: int) -> list[str]:
    name = answer.request_class
    if answer.already == "failing":
        return [f"{name}: the outage by itself hurts"]
    further = answer.hurts_now if spare else ()
    return [f"{name}: one more failure would hurt: {point}" for point in further]


def _unproved(answer: WhatIf, spare: int) -> list[str]:
    name = answer.request_class
    if answer.already == "open":
        return [f"{name}: nobody knows whether the outage by itself hurts"]
    further = answer.unknown if spare else ()
    return [f"{name}: nobody knows what one more failure would do: {point}" for point in further]
