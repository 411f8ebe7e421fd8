"""Requests with secrets and personal data planted in them, wherever such things are found."""

from __future__ import annotations

import base64
import json
import string
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

from ldfi.scenarios.redaction import RawRequest

BASE64URL = string.ascii_letters + string.digits + "-_"
WORDS = ["alice", "Bob", "charlotte", "dieter", "eve-marie", "OBrien"]
FIRST = ["a", "rows", "boot", "v1", "titles", "Search", "top-rows", "graphql", "index.html"]
CREDENTIALS = ["authorization", "Cookie", "set-cookie", "x-api-key", "X-Auth-Token", "x-csrf-token"]
IDENTITIES = ["x-device-id", "x-member-id", "X-User", "x-session-id", "x-account", "x-email"]
OTHERS = ["x-request-id", "user-agent", "referer", "x-anything", "forwarded", "x-forwarded-for"]
HARMLESS = ["accept", "accept-language", "content-type", "x-device-type", "Accept"]
IDENTIFYING = ["member_id", "user", "email", "sessionId", "token", "api_key", "deviceId", "login"]
NEUTRAL = ["q", "page", "sort", "filter", "rows", "limit"]


def digits(least: int, most: int) -> st.SearchStrategy[str]:
    return st.text(string.digits, min_size=least, max_size=most)


opaque = st.text(BASE64URL, min_size=20, max_size=60).filter(
    lambda t: sum(c.isdigit() for c in t) >= 3
)
jwt = st.tuples(opaque, opaque, opaque).map(lambda parts: "eyJ" + ".".join(parts))
email = st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)).map(
    lambda names: f"{names[0]}.{names[1]}@example.com"
)
uuid = st.uuids().map(str)
hexes = st.text("0123456789abcdef", min_size=16, max_size=64).filter(
    lambda t: any(c.isdigit() for c in t)
)
card = st.lists(digits(4, 4), min_size=4, max_size=4).map(" ".join)
member = st.one_of(
    st.tuples(st.sampled_from(["member-", "user", "acc_", "m", "device-"]), digits(3, 12)).map(
        "".join
    ),
    digits(8, 12),
)
formed = st.one_of(opaque, jwt, email, uuid, hexes, card, member)
"""Secrets and identifiers that are known by their form."""

named = st.one_of(formed, st.sampled_from(WORDS), st.text(string.ascii_letters, min_size=8))
"""Such as are known only by the name they go by: a member may be called alice."""


@dataclass(frozen=True)
class Planted:
    """A request, and the texts that must not survive."""

    request: RawRequest
    secrets: frozenset[str]


@st.composite
def planted(draw: st.DrawFn) -> Planted:
    """A request with a few secrets, each in as many places as it likes."""
    by_form = draw(st.lists(formed, min_size=1, max_size=3))
    by_name = draw(st.lists(named, max_size=2))
    every = [*by_form, *by_name]
    headers = [("host", "api.example"), *_identified(draw, by_name)]
    headers += draw(
        st.lists(
            st.tuples(
                st.sampled_from([*CREDENTIALS, *IDENTITIES, *OTHERS, *HARMLESS]),
                st.sampled_from(every).flatmap(_dressed),
            ),
            max_size=6,
        )
    )
    if draw(st.booleans()):
        pair = f"{draw(email)}:{draw(opaque)}"
        every += pair.split(":")
        headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
    segments = draw(st.lists(st.one_of(st.sampled_from(FIRST), st.sampled_from(every)), max_size=6))
    parameters = draw(
        st.lists(
            st.tuples(
                st.one_of(st.sampled_from([*NEUTRAL, *IDENTIFYING]), st.sampled_from(by_form)),
                st.sampled_from(every),
            ),
            max_size=4,
        )
    )
    body: Any = draw(_bodies(every, by_form)) if draw(st.booleans()) else None
    return Planted(
        RawRequest(
            draw(st.sampled_from(["GET", "POST", "delete"])),
            "/" + "/".join(quote(each, safe="@-_.") for each in segments),
            urlencode(parameters),
            headers,
            b"" if body is None else json.dumps(body).encode(),
        ),
        frozenset(every),
    )


def _identified(draw: st.DrawFn, values: list[str]) -> list[tuple[str, str]]:
    """What is known by name alone goes by that name at least once."""
    return [(draw(st.sampled_from([*CREDENTIALS, *IDENTITIES])), value) for value in values]


def _dressed(secret: str) -> st.SearchStrategy[str]:
    return st.sampled_from(
        [secret, f"Bearer {secret}", f"sid={secret}; theme=dark", f"application/{secret}, */*"]
    )


def _bodies(values: list[str], keys: list[str]) -> st.SearchStrategy[Any]:
    leaf = st.one_of(st.sampled_from(values), st.booleans(), st.none(), st.integers())
    names = st.sampled_from([*NEUTRAL, *IDENTIFYING, *keys])
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)
        ),
        max_leaves=8,
    )
