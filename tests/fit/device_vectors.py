"""Write ``fit/protocol/vectors/devices.json``: whose device a request is, as fit in Python says.

    python -m tests.fit.device_vectors

The requests are thought up here; each answer is what the code says, and the tests in
``test_device.py`` say of the kinds of them what it must be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ldfi.fit.device import Devices, parse

FILE: Final = Path(__file__).parents[2] / "ldfi" / "fit" / "protocol" / "vectors" / "devices.json"
ABOUT: Final = (
    "Which device a request comes from (docs/edge.md): what FIT_DEVICE and FORWARDED_ALLOW_IPS "
    "say, the headers in their order (names in small letters, a character for each byte), the "
    "address of the connection, and the device; empty: nobody knows. Written by "
    "tests/fit/device_vectors.py."
)
ALL: Final = "header:x-device-id,cookie:session,baggage:user.id,address"
PROXIES: Final = "127.0.0.1,10.0.0.0/8,fd00::/8"
ID: Final = "x-device-id"
LONG: Final = "w" * 1024

Case = tuple[str, str, list[tuple[str, str]], str]


def cases() -> Iterator[Case]:
    """Draw each request: setting, trusted proxies, headers, peer."""
    for setting, headers in _of_headers():
        yield setting, "127.0.0.1", headers, "192.0.2.7:4242"
    for peer in _ADDRESSES:
        yield "address", "127.0.0.1", [], peer
    for trusted, forwarded, peer in _forwarded():
        yield "address", trusted, [("x-forwarded-for", each) for each in forwarded], peer


def _of_headers() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for value in (
        "d1",
        "",
        " ",
        " d1 ",
        "\td1\t",
        LONG,
        LONG + "w",
        "d\xe9j\xc3\xa0",
        "a,b",
        '"q"',
    ):
        yield ALL, [(ID, value)]
        yield "header:X-Device-ID", [(ID, value)]
        yield ALL, [(ID, value), ("cookie", "session=s1"), ("baggage", "user.id=u1")]
    for setting in ("header:x-device-id", ALL):
        yield setting, [(ID, "d1"), (ID, "d2")]
        yield setting, [(ID, ""), (ID, "d2")]
        yield setting, [(ID, ""), (ID, "")]
        yield setting, [("x-device", "d1"), ("x-device-id2", "d2")]
    for cookie in _COOKIES:
        yield "cookie:session,header:x-device-id", [("cookie", cookie), (ID, "d1")]
        yield "cookie:session", [("cookie", cookie)]
        yield ALL, [("cookie", cookie)]
    yield "cookie:session", [("cookie", "a=b"), ("cookie", "session=second")]
    yield "cookie:session", [("cookie", "session="), ("cookie", "session=second")]
    for name in ("s-id", "__Host-id", "a.b", "$v", "x|y", "'"):
        yield f"cookie:{name}", [("cookie", f"{name}=1; {name.upper()}=2")]
    for baggage in _BAGGAGES:
        yield "baggage:user.id,header:x-device-id", [("baggage", baggage), (ID, "d1")]
        yield "baggage:user.id", [("baggage", baggage)]
    yield "baggage:user.id", [("baggage", "a=b"), ("baggage", "user.id=second")]
    for length in (1024, 1025):  # characters are those of Unicode
        yield "baggage:user.id", [("baggage", f"user.id={'%F0%9F%93%B1' * length}")]
    for setting in _SETTINGS:
        yield setting, [(ID, "d1"), ("cookie", "session=s1"), ("baggage", "user.id=u1")]


_COOKIES: Final = (
    *("session=s1", "session=s1; a=b", "a=b; session=s1", "a=b;session=s1;", "Session=s1"),
    *("session=one; session=two", "session=; session=two", "session; session=two", "session"),
    *('session="quoted"', 'session="', 'session=""', 'session="half', 'session="a;b"'),
    *("session= s1 ", "session=a=b==", "session=%41%20b", "session=d\xe9j\xc3\xa0", "session=a,b"),
    *("xsession=s1", f"session={LONG}", f"session={LONG}w", f'session="{LONG}"', " session =s1"),
    *("\tsession\t=\ts1", "session=\xa0", "session=\x0b", "session='s1'", ";;session=s1", "=s1"),
    *("", ";", "session=s;1"),
)
_BAGGAGES: Final = (
    *("user.id=u1", "a=b,user.id=u1;p=q", " user.id = u1 ", "user.id=u1,user.id=u2", "User.Id=u1"),
    *("user.id=,user.id=u2", "user.id", "user.id=a%20b%2Cc", "user.id=%C3%A9", "user.id=%ff%fe"),
    *("user.id=%", "user.id=%4", "user.id=%zz", "user.id=d\xe9", "user.id=%22q%22", 'user.id="q"'),
    *(f"user.id={LONG}", f"user.id={LONG}w", f"user.id={'%41' * 1024}", f"user.id={'%41' * 1025}"),
    *("user%2Eid=u1", "fit=1.x,user.id=u1", "user.id=a=b", ";user.id=u1", "user.id;p=u1", "", ","),
    *("user.id=%20", "user.id=%00", "user.id=a;b=c,d", "user.id=%F0%9F%93%B1", "user.id=\xf0\x9f"),
)
_SETTINGS: Final = (
    *("", " ", ",", "address", "nonsense", "header:", "header", "cookie:", "cookie:a b"),
    *("HEADER:x", "baggage:user.id", "baggage:User.id", "address:x", "Address"),
    *("header:x-device-id,nonsense", " cookie:session , address ", "cookie:nobody,baggage:user.id"),
    *("header:x:y", "cookie:se;ssion", "nonsense,cookie:session", "header:h\xe9"),
    *(f"header:{'x' * 64}", f"header:{'x' * 65},address", "header:x-device-id\n"),
    *("cookie:Session,cookie:session", "header:cookie", "header:baggage"),
)
_ADDRESSES: Final = (
    *("192.0.2.7", "192.0.2.7:4242", "", "localhost", "unix:", "@", "192.0.2.07", "192.0.2"),
    *("256.1.1.1", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:4242"),
    *("2001:DB8:0:0:8:800:200C:417A", "::1", "::", "2001:db8:1:2:3:4:5:6"),
    *("2001:db8:1:2:ffff:4:5:6", "fe80::1%eth0", "[fe80::1%25eth0]:80", "::ffff:192.0.2.7"),
    *("::ffff:c000:207", "[::ffff:192.0.2.7]:1", "0:0:0:1::", "1.2.3.4.", "1.2.3.4:"),
    *("2001:db8::1:4242:x", "[2001:db8::1", "2001:db8::1]", "1.2.3.4:999999", "0x7f.1", "127.1"),
    *("a.b.c", "ff:1:2:3:4:5:6:7:8", ":::", "2001:db8::g", "64:ff9b::192.0.2.7", "\xe9"),
    *("1.2.3.4 ", " 1.2.3.4"),
)


def _forwarded() -> Iterator[tuple[str, list[str], str]]:
    hops: tuple[list[str], ...] = (
        *([], [""], ["198.51.100.1"], ["198.51.100.1:80"], ["[2001:db8:5:6::1]:80"]),
        *(["203.0.113.9, 198.51.100.1"], ["203.0.113.9", "198.51.100.1"]),
        *(["198.51.100.1, 10.1.1.1"], ["203.0.113.9,198.51.100.1,10.1.1.1", "10.2.2.2"]),
        *(["10.3.3.3, 10.1.1.1"], ["unknown"], ["198.51.100.1, unknown"]),
        *(["unknown, 198.51.100.1"], ["198.51.100.1,"], ["_hidden, 10.1.1.1"]),
        *(["fd00::1, 10.1.1.1"], ["::ffff:198.51.100.1"], ["198.51.100.1 , ::ffff:10.1.1.1"]),
        ["198.51.100.1," + ",".join(["10.0.0.1"] * 30)],
        *(["198.51.100.1," + ",".join(["10.0.0.1"] * 19)], ['"198.51.100.1"']),
    )
    for peer in ("127.0.0.1", "10.9.9.9:1", "192.0.2.7", "::ffff:127.0.0.1", "fd00::9", ""):
        for each in hops:
            yield PROXIES, each, peer
    for trusted in (
        *("*", "", "127.0.0.1", "192.0.2.0/24", "!10.0.0.0/8,*", "nonsense,192.0.2.7", "::/0"),
    ):
        for peer in ("192.0.2.7", "127.0.0.1", "2001:db8::7", "unix:", ""):
            yield trusted, [], peer
            yield trusted, ["203.0.113.9, 198.51.100.1"], peer
            yield trusted, ["203.0.113.9, 10.1.1.1"], peer


def vectors() -> dict[str, Any]:
    """Make all of them."""
    made = []
    for setting, trusted, headers, peer in cases():
        device = Devices(parse(setting), trusted).of(
            lambda name, headers=headers: [value for key, value in headers if key == name],  # type: ignore[misc]
            lambda peer=peer: peer,  # type: ignore[misc]
        )
        made.append(
            {
                "setting": setting,
                "trusted": trusted,
                "headers": headers,
                "peer": peer,
                "device": device,
            }
        )
    return {"about": ABOUT, "cases": made}


def text() -> str:
    """Write them, a case a line."""
    made = vectors()
    lines = ",\n".join(f"    {json.dumps(each)}" for each in made["cases"])
    return f'{{\n  "about": {json.dumps(made["about"])},\n  "cases": [\n{lines}\n  ]\n}}\n'


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
