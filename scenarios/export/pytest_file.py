"""pytest: a test that fails as long as the scenario does. It needs ``ldfi``, a plain install."""

from __future__ import annotations

import json
import re
from typing import Final

from ldfi.errors import NotExpressible
from ldfi.lineage.text import clean
from ldfi.scenarios.export.program import Program

WARNINGS: Final = (
    "NO PROOF unless LDFI_URL and LDFI_TOKEN are set where the test runs: then it fails as well "
    "when no fault fired.",
)

_TEMPLATE: Final = '''\
"""@TITLE@

Scenario @ID@ of ldfi. The request is sent to LDFI_TARGET in the name of LDFI_DEVICE, with these
faults in a context that FIT_KEYS signs. With LDFI_URL and LDFI_TOKEN (role viewer) the service is
asked whether they fired; without, a test that passes proves a fix only if they did.
"""

import json
import math
import os
@IMPORTS@import secrets
import time
import urllib.error
import urllib.request

from ldfi.fit.protocol.context import encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.scenario import scenario_of

FAULTS = @FAULTS@
METHOD, PATH = @METHOD@, @PATH@
HEADERS = @HEADERS@
DELAY = @DELAY@  # seconds
TIMEOUT = @TIMEOUT@  # seconds


def ask(arm: str) -> tuple[int, str, float, str]:
    """Send the request; status, body, seconds and trace id."""
    keys, device = Keys.parse(os.environ["FIT_KEYS"]), os.environ["LDFI_DEVICE"]
    faults = [Fault.parse(text) for text in FAULTS]
    expires = math.ceil(time.time() + TIMEOUT + DELAY + 30)
    context = encode(
        keys, scenario_of(device), arm, expires, faults, delay_ms=round(DELAY * 1000)
    )
    trace = secrets.token_hex(16)
    headers = {
        **HEADERS,
        "x-device-id": device,
        "baggage": f"fit={context}",
        "traceparent": f"00-{trace}-{secrets.token_hex(8)}-01",
    }
    url = os.environ["LDFI_TARGET"].rstrip("/") + PATH
    request = urllib.request.Request(url, headers=headers, method=METHOD)  # noqa: S310
    started = time.monotonic()
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            status, body = answer.status, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            status, body = error.code, error.read().decode("utf-8", "replace")
    return status, body, time.monotonic() - started, trace


def assert_good(status: int, body: str, seconds: float) -> None:
    """What a good answer is."""
@ASSERTIONS@


def assert_fired(trace: str) -> None:
    """Ask the service, where there is one, whether a fault fired."""
    url, token = os.environ.get("LDFI_URL"), os.environ.get("LDFI_TOKEN")
    if not (url and token):
        return
    request = urllib.request.Request(  # noqa: S310
        f"{url.rstrip('/')}/api/v1/replays/{trace}", headers={"authorization": f"Bearer {token}"}
    )
    for _ in range(40):
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
                assert json.load(answer)["fired"], "no fault fired: the test proves nothing"
                return
        except urllib.error.HTTPError as error:
            with error:
                assert error.code == 404, error
            time.sleep(0.5)
    raise AssertionError("the service has not seen the request: the test proves nothing")


def test_without_the_faults() -> None:
    status, body, seconds, _ = ask("control")
    assert_good(status, body, seconds)


def test_with_the_faults() -> None:
    status, body, seconds, trace = ask("treatment")
    assert_good(status, body, seconds)
    assert_fired(trace)
'''


def test_file(this: Program) -> str:
    """Write the file. Raises NotExpressible for an assertion that takes more than a plain
    install."""
    values = {
        "TITLE": _docstring(this.scenario.title),
        "ID": this.scenario.id,
        "FAULTS": _listed(this.scenario.faults),
        "METHOD": _quoted(this.method),
        "PATH": _quoted(this.path),
        "HEADERS": _pairs(this.headers),
        "IMPORTS": "import re\n" if this.scenario.expect.body_matches is not None else "",
        "DELAY": repr(this.scenario.delay),
        "TIMEOUT": repr(10.0 + this.scenario.delay),
        "ASSERTIONS": "\n".join(f"    {line}" for line in _assertions(this)),
    }
    return re.sub("@([A-Z]+)@", lambda found: values[found[1]], _TEMPLATE)


def _assertions(this: Program) -> list[str]:
    expect = this.scenario.expect
    if expect.json_path is not None:
        steps = _steps(expect.json_path)
        found = "".join(f"[{step!r}]" for step in steps)
        ending = "is not None" if expect.equals is None else f"== {expect.equals!r}"
        lines = [f"found = json.loads(body){found}", f"assert found {ending}"]
    else:
        lines = []
    if expect.body_contains is not None:
        lines.append(f"assert {_quoted(expect.body_contains)} in body")
    if expect.body_matches is not None:
        lines.append(f"assert re.search({_quoted(expect.body_matches)}, body)")
    if expect.max_seconds is not None:
        lines.append(f"assert seconds <= {expect.max_seconds!r}")
    statuses = expect.status and f"status in {sorted(expect.status)}"
    return [f"assert {statuses or '200 <= status < 300'}, body", *lines]


def _steps(path: str) -> list[str | int]:
    """Split a plain path into names and places. Raises NotExpressible for any other query."""
    if not re.fullmatch(r"\$(?:\.[A-Za-z_]\w*|\[[0-9]+\])*", path):
        raise NotExpressible(
            f"{path!r} is a query; a test file can follow a plain path, such as $.rows[0].title"
        )
    found = re.findall(r"\.([A-Za-z_]\w*)|\[([0-9]+)\]", path)
    return [name or int(place) for name, place in found]


def _listed(texts: list[str]) -> str:
    return "[\n" + "".join(f"    {_quoted(text)},\n" for text in texts) + "]"


def _quoted(text: str) -> str:
    """Quote a text: a string of JSON is one of Python, too, but for halves of characters."""
    quoted = json.dumps(text, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", quoted)


def _pairs(texts: dict[str, str]) -> str:
    return "{" + ", ".join(f"{_quoted(k)}: {_quoted(v)}" for k, v in texts.items()) + "}"


def _docstring(text: str) -> str:
    return clean(text).replace("\\", "/").replace('"', "'")
