"""May this be taken down now? The question of an upgrade pipeline before each step.

The step is judged together with all that is down already, which is what the open maintenance
windows say. It is refused when it would hurt by itself, or when it would leave a request class one
failure from pain. A failure that hurts with nothing down as well is a finding of its own and no
reason against the step: otherwise one single point of failure would forbid every upgrade.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ldfi.experiments.domain.campaign.knowledge import Knowledge
from ldfi.experiments.domain.gates.maintenance import Maintenance
from ldfi.experiments.domain.gates.whatif import WhatIf, points_named, what_if

GateVerdict = Literal["safe", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Gate:
    """``down``: the step and what is down already. ``why``: each reason against it, or why nobody
    knows, in words; empty when it is safe."""

    verdict: GateVerdict
    down: tuple[str, ...]
    why: tuple[str, ...]
    classes: tuple[WhatIf, ...]


def gate(
    step: Sequence[str],
    windows: Sequence[Maintenance],
    known: Iterable[Knowledge],
    spare: int = 1,
) -> Gate:
    """Judge a step, given the maintenance windows that are open and what is known of each class.

    ``spare``: how many failures must be survived on top of the step, 0 or 1.
    Nothing is taken to be safe that is not proved: not a name that no class is known to call, and
    nothing while a window is open that does not say what is down.
    """
    down = tuple(dict.fromkeys([*step, *(name for window in windows for name in window.down)]))
    unmatched, answers = set(step), list[WhatIf]()
    for knowledge in known:
        unmatched -= {name for name in unmatched if points_named([name], knowledge)}
        answer = what_if(knowledge, down) if points_named(step, knowledge) else None
        if answer is not None:
            answers.append(answer)
    refused = [reason for each in answers for reason in _against(each, spare)]
    unknown = [f"no request class is known to call {name}" for name in step if name in unmatched]
    unknown += [
        f"window {each.id} on everything is open and does not say what is down: {each.reason}"
        for each in windows
        if not each.down
    ]
    unknown += [reason for each in answers for reason in _unproved(each, spare)]
    verdict: GateVerdict = "refused" if refused else "unknown" if unknown else "safe"
    return Gate(verdict, down, tuple(refused or unknown), tuple(answers))


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
