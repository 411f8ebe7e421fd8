"""What people type wrong: a sentence for each fault, with the way out, and the right exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldfi.testing.live import served
from tests.kit.cli import ldfi
from tests.kit.service import GIVEN, service

OF_LIBRARIES = re.compile(
    r"Input should|Field required|validation error|Extra inputs|String should|List should|Errno|"
    r"type=|Traceback|Invalid value|further information|Request URL|\[SSL|Connection refused|"
    r"codec can't|Expecting value|Value error|Error:|Exception|--help' for help"
)
NOWHERE = {"LDFI_URL": "http://127.0.0.1:9", "LDFI_TOKEN": GIVEN["viewer"]}
FILES = {
    "empty.yaml": "",
    "list.yaml": "[1, 2]",
    "broken.yaml": "a: [1",
    "broken.toml": "a = ",
    "unknown.yaml": "max_siz: 2",
    "bounds.yaml": "max_size: 99",
    "replay.yaml": "exemplars: [{path: 3}]",
    "scenario.yaml": "version: 1\ntitle: 3",
    "recording.jsonl": '{"method": "GET"}\n',
    "noise.json": "{",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wrong")
    for name, text in FILES.items():
        (made / name).write_text(text)
    (made / "binary").write_bytes(b"\xff\xfe\x00\x80" * 9)
    return made


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    database = f"sqlite:///{tmp_path_factory.mktemp('service') / 'ldfi.sqlite3'}"
    with served(service(database)) as address:
        yield address


def complaint(words: str, code: int, **env: str) -> list[str]:
    """The sentences that a command complains of, without the word of who speaks."""
    done = ldfi(*words.split(), **{**NOWHERE, **env})
    assert done.returncode == code, (words, done.stdout, done.stderr)
    assert not done.stdout.strip(), done.stdout
    assert not OF_LIBRARIES.search(done.stderr), done.stderr
    assert done.stderr.startswith("ldfi: ")
    *said, last = done.stderr.strip().removeprefix("ldfi: ").splitlines()
    return said if said and last.startswith("`ldfi") else [*said, last]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("finding", "did you mean findings?"),
        ("campain list", "did you mean campaign?"),
        ("xyzzy", "ldfi has no command 'xyzzy'"),
        ("findings lsit", "did you mean list?"),
        ("campaign strat", "did you mean start?"),
        ("explore evn", "did you mean env?"),
        ("replay recrod x", "did you mean record?"),
        ("findings list --stat open", "did you mean --state?"),
        ("campaign start --max-siz 3", "did you mean --max-size?"),
        ("status --nothing-like-it", "there is no option --nothing-like-it"),
        ("status more", "too many arguments: 'more' is not expected"),
        ("findings list --limit", "--limit needs a value"),
        ("findings list --json=yes", "--json takes no value"),
        ("findings list --limit many", '--limit: must be a whole number, got "many"'),
        ("findings list --limit 0", '--limit: must be at least 1, got "0"'),
        ("campaign start --max-size x", '--max-size: must be a whole number, got "x"'),
        ("explore run --max-size 9 --target http://x -- true", "must be at most 4"),
        ("explore env --for shel", "got 'shel'; did you mean shell?"),
        ("campaign start --set max_size", "--set: must be NAME=VALUE"),
        ("campaign start --set max_siz=3", "did you mean max_size?"),
        ("campaign start --file none.yaml", "none.yaml cannot be read: there is no such file"),
        ("campaign start --file {}", "it is a folder, and a file is needed"),
        ("campaign start --file {}/binary", "it is no text in UTF-8"),
        ("campaign start --file {}/broken.yaml", "it is no YAML at line 1"),
        ("campaign start --file {}/broken.toml", "cannot be read: "),
        ("campaign start --file {}/list.yaml", "must hold settings by name"),
        ("campaign start --file {}/unknown.yaml", "did you mean max_size?"),
        ("campaign start --file {}/bounds.yaml", "max_size: "),
        ("scenario check {}/scenario.yaml", "title: must be text, got 3"),
        ("replay feed {}/replay.yaml --target http://x", "exemplars/0/path: must be text, got 3"),
        ("replay run {}/recording.jsonl --target http://x", "path: is missing"),
        ("replay run {}/none --target http://x", "there is no such file"),
        ("reproduce {}/none.yaml --target http://x --device me", "there is no such file"),
        ("was-it-us --from 25:00", "'25:00' is no time: write 02:10"),
        ("was-it-us --last soon", "'soon' is no length of time: write 90s"),
        ("was-it-us --last 5m --to 02:10", "give it alone"),
        ("was-it-us --from 2026-11-24T02:10Z --to 2026-11-23T02:10Z", "ends before it begins"),
        ("maintenance open --down x --for 99 --reason y", "write 90s, 15m, 2h or 1d"),
    ],
)
def test_what_was_typed_wrong_is_one_sentence(words: str, says: str, folder: Path) -> None:
    said = complaint(words.format(folder), 2)
    assert says in " ".join(said)
    assert len(said) <= (6 if "scenario" in words else 2), said


@pytest.mark.parametrize(
    ("env", "code", "says"),
    [
        ({"LDFI_URL": "foo"}, 2, 'must be a URL such as http://127.0.0.1:8600, got "foo"'),
        ({"LDFI_URL": "127.0.0.1:8600"}, 2, "must be a URL"),
        ({"LDFI_URL": "ftp://127.0.0.1"}, 2, "must be a URL"),
        ({"LDFI_URL": "http://"}, 2, "must be a URL"),
        ({"LDFI_URL": "http://[::1"}, 2, "must be a URL"),
        ({"LDFI_URL": "http://127.0.0.1:99999"}, 2, "a port is from 1 to 65535"),
        ({"LDFI_URL": "http://127.0.0.1:9"}, 4, "nobody listens there; is `ldfi serve` up"),
        ({"LDFI_TOKEN": ""}, 2, "set LDFI_TOKEN"),
        ({"LDFI_TOKEN": "zwölf"}, 2, "set LDFI_TOKEN"),
        ({"LDFI_TOKEN": "", "LDFI_TOKEN_FILE": "/none"}, 2, "there is no such file"),
    ],
)
def test_who_is_asked_wrong_is_one_sentence(env: dict[str, str], code: int, says: str) -> None:
    (said,) = complaint("status", code, **env)
    assert says in said


@pytest.mark.parametrize(
    ("words", "env", "code", "says"),
    [
        ("status", {"LDFI_TOKEN": "x" * 24}, 2, "wrong, expired or revoked; set LDFI_TOKEN"),
        ("status", {"LDFI_URL": "https"}, 4, "is it http:// instead of https://?"),
        ("status", {"LDFI_URL": "{}/elsewhere"}, 2, "LDFI_URL"),
        ("findings show 0123456789ab", {}, 2, "0123456789ab"),
        ("findings list --state opn", {}, 2, "state: must be one of"),
        ("experiment list --verdict no", {}, 2, "verdict: must be one of"),
        ("halt because", {}, 2, "operator"),
    ],
)
def test_what_the_service_refuses_is_in_our_words(
    words: str, env: dict[str, str], code: int, says: str, url: str
) -> None:
    at = env.get("LDFI_URL", "{}").format(url).replace("https", url.replace("http", "https"), 1)
    said = complaint(words, code, **{**env, "LDFI_URL": at if at.startswith("http") else url})
    assert says in " ".join(said)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("status --url foo", "must be a URL"),
        ("findings --url 127.0.0.1:8600", "must be a URL"),
        ("was-it-us --url http://[::1", "must be a URL"),
        ("was-it-us --from 25:00", "--from: '25:00' is no time"),
        ("was-it-us --to soon", "--to: 'soon' is no time"),
        ("was-it-us --last soon", "'soon' is no length of time"),
        (f"was-it-us --last {'9' * 400}h", "--last"),
    ],
)
def test_what_is_wrong_is_said_before_what_is_missing(words: str, says: str) -> None:
    (said,) = complaint(words, 2, LDFI_TOKEN="")
    assert says in said


def test_all_that_is_missing_is_said_at_once() -> None:
    said = complaint("experiment try", 2, LDFI_TOKEN="")
    assert [each.split(" is missing: ")[0] for each in said] == ["FAULT...", "--class", "--token"]
    assert all("give" in each or "error@POINT" in each for each in said)


def test_a_stranger_who_speaks_json_is_no_service(url: str) -> None:
    """Its answers lack what ours have, which is no failure that a campaign found."""
    from ldfi.cli.client import Answer
    from ldfi.errors import Unreachable

    answer = json.loads('{"a": {"b": 1}}', object_hook=lambda found: Answer(url, found))
    assert answer["a"]["b"] == 1
    with pytest.raises(Unreachable, match='has no "items"'):
        answer["items"]
