"""From which address a request comes: what limits are counted by.

uvicorn takes it from the headers of the proxies that ``FORWARDED_ALLOW_IPS`` names, and of nobody
else. A process that passes a request on to the one that leads says whose it is in a header of ours,
signed with the key that all processes share; so they need not be named, and nobody can say it for
them.
"""

from __future__ import annotations

import hmac
from typing import Final

from starlette.requests import Request

CALLER: Final = "ldfi-caller"


def address_of(request: Request) -> str:
    """Return the address of whoever made a request, empty where there is none."""
    address, _, mac = request.headers.get(CALLER, "").rpartition(" ")
    if mac and hmac.compare_digest(mac.encode(), _mac(request, address).encode()):
        return address
    return request.client.host if request.client is not None else ""


def vouched(request: Request) -> str:
    """Write the address of whoever made a request for another process that shares our key."""
    address = address_of(request)
    return f"{address} {_mac(request, address)}"


def _mac(request: Request, address: str) -> str:
    key: bytes = request.app.state.member_key
    return hmac.new(key, b"caller:" + address.encode(), "sha256").hexdigest()
