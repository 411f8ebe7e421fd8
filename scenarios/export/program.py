"""A scenario as a program can send it: what Chaos Toolkit, curl and pytest have in common.

No file that is exported holds a signed context: it would expire, and until then whoever reads the
file could use it. So each target asks for one when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from ldfi.errors import NotExpressible
from ldfi.fit.protocol.kinds import draws
from ldfi.lineage.text import clean
from ldfi.scenarios.redaction import HOLE
from ldfi.scenarios.replay import SAFE_METHODS
from ldfi.scenarios.request import lacking
from ldfi.scenarios.scenario import Scenario

_SENT_AS_IT_IS: Final = "".join(sorted(set(map(chr, range(0x21, 0x7F))) - set('"<>\\^`{|}')))


@dataclass(frozen=True, slots=True)
class Program:
    """A request, its headers less those of the context, and the scenario it is of."""

    scenario: Scenario
    method: str
    path: str
    """With the query."""
    headers: dict[str, str]

    @property
    def timeout(self) -> float:
        """Return seconds to wait for an answer: as asserted, else long enough for the delay."""
        return self.scenario.expect.max_seconds or 10.0 + self.scenario.delay


def program(scenario: Scenario, path: str | None) -> Program:
    """Make the program of a scenario. ``path``: path and query to ask for, where the scenario's has
    holes.

    Raises NotExpressible for a request that cannot be sent as it is known.
    """
    request = scenario.request
    asked = path or request.target
    if path is None and HOLE in request.target:
        raise NotExpressible(
            f"{request.method} {request.target} has holes (*), where something was taken out; say "
            "what to ask for: --path '/…'"
        )
    if not asked.startswith("/"):
        raise NotExpressible(f"{asked!r} is not a path; it begins with a slash")
    if request.method not in SAFE_METHODS:
        raise NotExpressible(
            f"{request.method} may change something each time it is sent, and of its body only the "
            "shape is kept; use `ldfi reproduce --unsafe --data FILE`"
        )
    if scenario.expect.blind:
        raise NotExpressible(
            "the failure does not show in the status: say under `expect` in the scenario what a "
            "good answer holds (json_path), or the export would call it fixed"
        )
    drawn = next((each for each in scenario.injected() if draws(each.kind)), None)
    if drawn is not None:
        raise NotExpressible(
            f"{drawn} draws another length for each request, and this asks once: it would try one "
            "of many. `ldfi reproduce --times N` draws N of them"
        )
    headers = {str(name): clean(value) for name, value in request.headers.items()}
    missed = lacking(scenario, _encoded(asked), headers)
    if missed is not None:
        raise NotExpressible(f"{missed} (see --path; `ldfi reproduce` takes headers, too)")
    return Program(scenario, request.method, _encoded(asked), headers)


def _encoded(path: str) -> str:
    """Percent-encode what a request line cannot hold: line ends, spaces, quotes, non-ASCII."""
    return quote(path, safe=_SENT_AS_IT_IS)
