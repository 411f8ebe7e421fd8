"""Takes secrets and personal data out of a request, by rule, before anything of it is kept.

Nothing is kept because it looks harmless to nobody in particular; a rule must say so:

- **Method**: one of HTTP's.
- **Headers**: four, and of these only values of a known form: ``accept`` and ``content-type``
  (common media types, without parameters), ``accept-language`` (its first tag), ``x-device-type``
  (a word). Every other header is dropped with its name: authorization, cookies, keys, ids, traces.
- **Path**: segments that are made of words, or a version (``v2``). What follows a word for people
  or their belongings (``/users/alice``, ``/reset/…``) is replaced, whatever it is. So is a word of
  more than 20 letters.
- **Query**: names that are made of words. Values are replaced, all but those of parameters that the
  request class is defined by (the caller says which), and even those only where they are words of
  a parameter that is not called anything secret or personal. Of paths of Falcor's (``path``,
  ``paths``) keys that are words stay, and ranges of small numbers; of GraphQL the operation's name.
- **Body**: of JSON the shape alone: keys that are made of words, ``true``, ``false`` and ``null``,
  the first item of a list. Any other body is dropped. What a call calls stays, where it is made of
  words: the name of an operation of GraphQL's, the method of JSON-RPC. A call is the whole body, or
  an item of a batch, and speaks that protocol: there is ``jsonrpc`` in it, or a document or
  ``extensions``. A field of the same name anywhere else is a field like any.
- **Once secret, always secret**: the values of headers, cookies, parameters and fields whose *name*
  tells of a secret or a person, and the two parts of a Basic authorization, are also replaced
  wherever they occur in what the other rules kept.

What is replaced leaves :data:`HOLE`. What the rules cannot see: a word that is personal, stands in
a path after a word that is not, and nowhere else in the request (``/alice/rows``).
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_plus

from ldfi.errors import InvalidScenario
from ldfi.fit.protocol.request_protocols import is_document

HEADERS: Final = ("x-device-type",)
"""Headers of ours that are kept, where their value is a word."""

HOLE: Final = "*"

METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
MAX_DEPTH: Final = 8
"""How deep a JSON body's shape is kept."""
MAX_KEYS: Final = 50
"""Keys of one object that are kept."""

_MEDIA_TYPES: Final = frozenset(
    {
        *("*/*", "application/*", "text/*", "image/*"),
        *("application/json", "application/problem+json", "application/vnd.api+json"),
        *("application/graphql", "application/graphql-response+json", "application/xml"),
        *("application/x-www-form-urlencoded", "multipart/form-data", "application/octet-stream"),
        *("application/grpc", "application/protobuf", "application/x-protobuf"),
        *("text/plain", "text/html", "text/css", "text/event-stream", "text/xml"),
        *("image/png", "image/jpeg", "image/webp", "image/avif", "image/svg+xml"),
    }
)
_LANGUAGE: Final = re.compile(r"(?:[a-z]{2,3})(?:-[A-Z]{2})?")
_WORD: Final = re.compile(r"[a-z]{1,20}", re.IGNORECASE)
_WORDS: Final = re.compile(
    r"[a-z]{1,20}(?:[A-Z][a-z]{1,19}){0,3}(?:[-_.:][a-z]{1,20}){0,4}"  # rows, topRows, top-rows
    r"|(?:[A-Z][a-z]{1,19}){1,4}"  # TopRows
    r"|[A-Z]{2,12}"  # API
)
_VERSION: Final = re.compile(r"v[0-9]{1,2}(?:\.[0-9]{1,2})?")
_CONFIDENTIAL: Final = (
    "auth|cookie|token|secret|session|passw|credential|signature|api[-_]?key|access[-_]?key|csrf"
    "|xsrf|jwt|otp|one[-_]?time|pin|cert|key|code|nonce|state|reset|invite|verif|magic|unsubscribe"
)
_PERSONAL: Final = (
    "user|member|account|customer|client|subscriber|profile|person|people|owner|author|patient"
    "|device|household|e?-?mail|phone|mobile|address|login|name|birth|card|iban|ssn|passport|guid"
    "|uuid|ip$|^id$|[-_.]id$|[a-z]Id$|ID$|contact|friend|me$|group|team|order|invoice|payment"
)
_TELLS: Final = re.compile(f"{_CONFIDENTIAL}|{_PERSONAL}", re.IGNORECASE)
_PATTERNS: Final = re.compile(
    r"""
      [^\s@/>]@[^\s@/>]                                         # an e-mail address
    | eyJ[\w-]{5,}                                              # a JSON web token
    | (?:\d[ -]?){13,19}                                        # a number as on a card
    | [0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}               # a UUID
    | (?=[0-9a-f]{0,15}\d)[0-9a-f]{16}                          # a hash, a session
    | \b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abposr])[-_]\w{8,}    # keys of well-known makers
    | (?:AKIA|ASIA)\w{12,} | AIza[\w-]{20,}
    | (?:bearer|basic)\s+\S+
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LONG: Final = re.compile(r"[A-Za-z0-9+=_-]{20,}", re.IGNORECASE)
"""With three digits in it, it is no word."""
_DIGIT: Final = re.compile(r"[0-9]")
_CODE: Final = re.compile(
    r"(?:http|status|grpc|error|err|code|e)[-_ ]?[0-9]{1,5}|[A-Za-z_.:-]{1,40}(?<![-_.:])"
    r"(?:[-_]?[0-9]{1,2})?",
    re.IGNORECASE,
)
_SHORTEST: Final = 3
"""Characters of a secret value from which on it is looked for elsewhere."""


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request as it came in. ``query`` is raw, without ``?``."""

    method: str
    path: str
    query: str = ""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Redacted:
    """What may be kept of a request. ``query`` in its order, ``body`` the shape of its JSON."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: Any = None


def redact(request: RawRequest, defining: Mapping[str, str] | None = None) -> Redacted:
    """Keep of a request what may be kept. ``defining``: query parameters that make its class, by
    name.

    Raises InvalidScenario where the method is none of HTTP's.
    """
    method = request.method.upper()
    if method not in METHODS:
        raise InvalidScenario(f"{request.method[:20]!r} is not an HTTP method that can be replayed")
    body = _json(request.body)
    secrets = frozenset(_secrets(request, body))
    return Redacted(
        method,
        _path(request.path, secrets),
        tuple(_query(request.query, defining or {}, secrets)),
        dict(sorted(_headers(request.headers, secrets))),
        _shape(body, secrets),
    )


def looks_secret(text: str) -> bool:
    """Return whether something in a text has the form of a secret or an identifier. It takes as
    long as the text is."""
    long = (found[0] for found in _LONG.finditer(text))
    return _PATTERNS.search(text) is not None or any(len(_DIGIT.findall(each)) > 2 for each in long)


def code(text: str) -> str:
    """Keep what a device calls a failure if it is a code, not a message that may name somebody."""
    plain = _CODE.fullmatch(text) is not None and not looks_secret(text)
    numbered = text[-1:].isdigit() and re.search(_PERSONAL, text, re.IGNORECASE)
    return text if plain and not numbered else HOLE


def tells(name: str) -> bool:
    """Return whether the name of a header, parameter or field tells of a secret or a person."""
    return _TELLS.search(name) is not None


def worded(text: str) -> bool:
    """Return whether a text is made of words, and has nothing in it of the form of a secret."""
    return _made_of_words(text, frozenset())


def _path(path: str, secrets: frozenset[str]) -> str:
    kept: list[str] = []
    above = ""
    for raw in path.partition("?")[0].partition("#")[0].split("/"):
        segment = raw.partition(";")[0]  # matrix parameters: ;jsessionid=…
        plain = not segment or _VERSION.fullmatch(segment) is not None
        worded = _made_of_words(segment, secrets) and not (above and tells(above))
        kept.append(segment if plain or worded else HOLE)
        above = segment
    return "/" + "/".join(kept).lstrip("/")


def _query(
    query: str, defining: Mapping[str, str], secrets: frozenset[str]
) -> Iterator[tuple[str, str]]:
    pairs = parse_qsl(query, keep_blank_values=True)
    called = _called_by_query(pairs)
    for name, value in pairs:
        if not _made_of_words(name, secrets):
            yield HOLE, HOLE
            continue
        model = _json(value.encode()) if name in {"path", "paths"} and value[:1] == "[" else None
        if isinstance(model, list):
            yield name, json.dumps(_model(model, secrets), separators=(",", ":"))
            continue
        keeps = name in called or (defining.get(name) == value and not tells(name))
        keeps = keeps and (_made_of_words(value, secrets) or value == "")
        yield name, value if keeps else HOLE


def _model(paths: list[Any], secrets: frozenset[str]) -> list[Any]:
    """Keep the shape of a path of Falcor's, or of several: keys that are words, short ranges."""
    if paths and all(isinstance(each, list) for each in paths):
        return [_keys(each, secrets) for each in paths[:MAX_KEYS]]
    return _keys(paths, secrets)


def _keys(path: list[Any], secrets: frozenset[str]) -> list[Any]:
    kept: list[Any] = []
    above = ""
    for key in path[:MAX_KEYS]:
        named = bool(above) and tells(above)
        several = key[:MAX_KEYS] if isinstance(key, list) else [key]
        each = [HOLE if named else _key(one, secrets) for one in several]
        kept.append([one for n, one in enumerate(each) if one not in each[:n]])
        if not isinstance(key, list):
            kept[-1] = each[0]
        above = key if isinstance(key, str) else ""
    return kept


def _key(key: Any, secrets: frozenset[str]) -> Any:
    if isinstance(key, str):
        return key if _made_of_words(key, secrets) else HOLE
    ranged = isinstance(key, dict) and key.keys() <= {"from", "to", "length"}
    if ranged and all(type(end) is int and 0 <= end < _FAR for end in key.values()):
        return key
    return HOLE


_FAR: Final = 1000
"""A place in a list from which on it may as well be somebody's number."""


def _headers(
    headers: Sequence[tuple[str, str]], secrets: frozenset[str]
) -> Iterator[tuple[str, str]]:
    for raw, value in headers:
        name, kept = raw.lower(), ""
        if name in {"accept", "content-type"}:
            types = (each.partition(";")[0].strip().lower() for each in value.split(","))
            kept = ", ".join(each for each in types if each in _MEDIA_TYPES)
        elif name == "accept-language":
            tag = value.partition(",")[0].partition(";")[0].strip()
            kept = tag if _LANGUAGE.fullmatch(tag) else ""
        elif name in HEADERS:
            kept = value if _WORD.fullmatch(value) else ""
        if kept and not _hides(kept, secrets):
            yield name, kept


def _made_of_words(text: str, secrets: frozenset[str]) -> bool:
    return _WORDS.fullmatch(text) is not None and not _hides(text, secrets)


def _hides(text: str, secrets: frozenset[str]) -> bool:
    folded = text.casefold()
    return looks_secret(text) or any(secret in folded for secret in secrets)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body) if body.strip() else None
    except (ValueError, RecursionError):
        return None


def _shape(value: Any, secrets: frozenset[str], depth: int = 0, a_call: bool = True) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list) and depth < MAX_DEPTH:
        return [_shape(each, secrets, depth + 1, depth == 0) for each in value[:1]]
    if isinstance(value, dict) and depth < MAX_DEPTH:
        called = _called(value) if a_call else frozenset()
        return {
            key if _made_of_words(key, secrets) else HOLE: each
            if key in called and isinstance(each, str) and _made_of_words(each, secrets)
            else _shape(each, secrets, depth + 1, False)
            for key, each in list(value.items())[:MAX_KEYS]
        }
    return HOLE


def _called(call: Mapping[str, Any]) -> frozenset[str]:
    """List the fields of a call that say what it calls; none where it speaks no such protocol."""
    query = call.get("query")
    document = isinstance(query, str) and is_document(query)
    graphql = document or isinstance(call.get("extensions"), dict)
    by_protocol = {_OPERATION: graphql, "method": "jsonrpc" in call}
    return frozenset(name for name, spoken in by_protocol.items() if spoken)


def _called_by_query(pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    given = dict(pairs)
    given.pop("jsonrpc", None)  # its calls have bodies
    return _called({**given, "extensions": _json(given.get("extensions", "").encode())})


_OPERATION: Final = "operationName"


def _secrets(request: RawRequest, body: Any) -> Iterator[str]:
    """List values that are secret by the names they go by, in small letters."""
    for found in _named(request, body):
        for part in {found, *re.split(r"[\s;,=&]+", found), unquote_plus(found)}:
            if len(part) >= _SHORTEST:
                yield part.casefold()


def _named(request: RawRequest, body: Any) -> Iterator[str]:
    for name, value in request.headers:
        if tells(name):
            yield value
            yield from _basic(value)
    pairs = parse_qsl(request.query, keep_blank_values=True)
    called = _called_by_query(pairs)
    for name, value in pairs:
        if tells(name) and name not in called:
            yield value
    calls = [id(each) for each in (body if isinstance(body, list) else [body])]
    pending: list[tuple[bool, Any]] = [(False, body)]
    while pending:
        secret, value = pending.pop()
        if isinstance(value, dict):
            called = _called(value) if id(value) in calls else frozenset()
            pending.extend(
                (secret or (tells(key) and key not in called), each) for key, each in value.items()
            )
        elif isinstance(value, list):
            pending.extend((secret, each) for each in value)
        elif secret and type(value) in {str, int, float}:
            yield str(value)


def _basic(value: str) -> Iterator[str]:
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() == "basic":
        try:
            yield from b64decode(encoded, validate=True).decode("utf-8", "replace").split(":", 1)
        except (Base64Error, ValueError):
            return
