"""Whether what a certificate's runs carry bears their verdicts out, without a key or a service.

It shows that the runs hold together, not that they took place: whoever writes a certificate can
write this as well. For that the records have to be in a chain that is signed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ldfi.proof.binding import unbound
from ldfi.proof.errors import Unreadable
from ldfi.proof.judged import wrong
from ldfi.proof.outcome import AnyRecord, record_from

MOST: Final = 50_000
"""Outcomes that are weighed anew: about a second. A look counts for two hundred of them."""
_A_LOOK: Final = 200


@dataclass(frozen=True, slots=True)
class Carried:
    """``whole``: how many of the experiments carry what their verdicts came from, and it was
    weighed anew. ``wrong``: what of it does not hold together."""

    experiments: int
    whole: int
    wrong: tuple[str, ...]


def carried(certificate: Mapping[str, Any]) -> Carried:
    """Look at the runs of a certificate that is known to be one."""
    runs = [run for run in certificate["evidence"] if run["origin"] == "injected"]
    read = [(run, each) for run in runs for each in _read(run.get("proof"))]
    records = [each for _, each in read]
    said = []
    left = MOST
    for each in records:
        left -= _outcomes(each)
        if left >= 0:
            said += [f"{each.experiment}: {what}" for what in wrong(each)]
    if len({(each.request_class, each.version) for each in records}) > 1:
        said.append("its runs are of more than one version of a class")
    mine = {**certificate, "evidence": [run for run, _ in read]}
    said += [what for false, what in unbound(mine, records) if false]
    weighed = len(records) if left >= 0 else 0
    return Carried(len(runs), weighed, tuple(said))


def _read(proof: Any) -> list[AnyRecord]:
    """Read what one run carries; nothing where that is nothing we know."""
    if not isinstance(proof, Mapping):
        return []
    try:
        return [record_from({**proof, "number": 1}, "the proof")]
    except Unreadable:
        return []


def _outcomes(record: AnyRecord) -> int:
    looks = getattr(record, "looks", None) or ()
    return len(getattr(record, "order", None) or "") + _A_LOOK * len(looks)
