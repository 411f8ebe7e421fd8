"""The head of the chain and a campaign's evidence, over a socket, with and without a key."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from ldfi.checker.__main__ import BORNE_OUT, FALSE, main
from ldfi.checker.head import Head, SigningKey
from ldfi.cli.serve_processes import service_of
from ldfi.errors import InvalidConfig
from ldfi.experiments.cluster.config import Config
from ldfi.experiments.store import Database, campaigns, chain, experiments
from ldfi.experiments.store.certificates import CampaignCertificate
from ldfi.experiments.store.schema import CampaignRow
from tests.checker.chain import key_pem, trusted
from tests.experiments.store.test_arming import WIDE, a_campaign, an_order, try_arming
from tests.kit.service import GIVEN, client_of, problem, service

KEY = SigningKey(key_pem())
CLASS = "GET /"


def with_runs(url: str, count: int) -> None:
    """Have so many runs on record, each aborted: what has no verdict is in the chain as well."""
    database = Database(url, (KEY,))
    a_campaign(database)
    for number in range(count):
        now = time.time()
        order = an_order(f"e{number}", CLASS)
        order.experiment.created_at = now
        try_arming(database, order, WIDE, now)
        order.experiment.arm(now)
        order.experiment.abort("over", now)
        assert order.experiment.settle(now + 60, disarmed=True)
        order.experiment.ended_at = now
        with database.change(now) as change:
            experiments.end(change, order.experiment, 1, None)
    with database.change(time.time()) as change:
        change.session.get_one(CampaignRow, "c").state = "finished"
    database.close()


def written(folder: Path, name: str, what: Any) -> str:
    file = folder / name
    file.write_text(what if isinstance(what, str) else json.dumps(what))
    return str(file)


def head_of(client: httpx.Client, since: int | None = None) -> dict[str, Any]:
    query = {} if since is None else {"since": since}
    answer: dict[str, Any] = client.get("/api/v1/head", params=query).raise_for_status().json()
    return answer


def started(client: httpx.Client) -> str:
    campaign = client.post("/api/v1/campaigns", json={}).raise_for_status().json()
    return f"/api/v1/campaigns/{campaign['id']}/evidence"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"


def test_the_head_is_signed_as_of_now_and_proved_to_have_grown(url: str) -> None:
    with_runs(url, 3)
    with client_of(service(url, keys=(KEY,)), GIVEN["viewer"]) as client:
        before = time.time()
        answer = head_of(client, since=2)
        head = Head.from_json(answer["head"])

        assert list(head.wrong(trusted(KEY))) == []
        assert (head.size, dict(head.runs)) == (3, {(CLASS, 1): 3})
        assert head.time >= before
        assert [each["from"] for each in answer["grown"]] == [2]
        assert problem(client.get("/api/v1/head", params={"since": 4})) == "conflict"
        assert client.get("/api/v1/head", params={"since": -1}).status_code == 422


def test_without_a_key_the_head_is_as_it_was_signed_last(url: str) -> None:
    with_runs(url, 2)
    with client_of(service(url), GIVEN["viewer"]) as client:
        head = Head.from_json(head_of(client)["head"])
    database = Database(url)
    with database.read() as session:
        assert head == chain.head_of(session)
    database.close()
    assert list(head.wrong(trusted(KEY))) == []


def test_a_service_without_runs_has_an_empty_chain(url: str) -> None:
    with client_of(service(url, keys=(KEY,)), GIVEN["operator"]) as client:
        assert head_of(client)["head"]["size"] == 0
        document = client.get(started(client)).raise_for_status().json()
    assert (document["head"], document["classes"]) == (None, [])


def test_what_is_given_out_is_what_the_program_checks(url: str, tmp_path: Path) -> None:
    """A campaign that certified one class, and two runs of it."""
    with_runs(url, 2)
    key = written(tmp_path, "public.pem", KEY.public_pem())
    with client_of(service(url, keys=(KEY,)), GIVEN["operator"]) as client:
        path = started(client)
        kept = written(tmp_path, "head.json", head_of(client)["head"])
        campaign = path.split("/")[4]
        client.post(f"/api/v1/campaigns/{campaign}/stop", json={"reason": "over"})
    certify(url, campaign)
    with client_of(service(url, keys=(KEY,)), GIVEN["viewer"]) as client:
        document = client.get(path, params={"since": 2}).raise_for_status().json()
        assert problem(client.get("/api/v1/campaigns/none/evidence")) == "not-found"
    file = written(tmp_path, "evidence.json", document)
    assert main([file, "--key", key, "--head", kept, "--max-age", "1h"]) == BORNE_OUT
    del document["classes"][0]["runs"][1]
    assert main([written(tmp_path, "cut.json", document), "--key", key]) == FALSE


def certify(url: str, campaign: str) -> None:
    empty: dict[str, Any] = {"language": {"faults": []}, "evidence": {"good": [], "bad": []}}
    database = Database(url, (KEY,))
    with database.change(time.time()) as change:
        row = campaigns.load(change.session, campaign)
        row.certificates = [{"request_class": CLASS, "certificate": empty}]
        chain.certify(change, {}, [CampaignCertificate(campaign, CLASS, 1, empty)])
    database.close()


def test_keys_come_from_the_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    two = key_pem() + key_pem()
    monkeypatch.setenv("LDFI_SIGNING_KEY_FILE", written(tmp_path, "keys.pem", two))
    monkeypatch.setenv("LDFI_TOKENS", "admin:0123456789abcdef")
    config = Config.load()

    assert len({key.id for key in service_of(config).keys}) == 2
    assert "PRIVATE" not in json.dumps(config.shown())
    assert "PRIVATE" not in repr(config)


@pytest.mark.parametrize("pem", ["nothing", "-----BEGIN X-----\nQQ==\n-----END X-----"])
def test_what_is_no_key_is_refused(pem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDFI_SIGNING_KEY", pem)
    monkeypatch.setenv("LDFI_TOKENS", "admin:0123456789abcdef")
    with pytest.raises(InvalidConfig, match="signing_key") as refused:
        service_of(Config.load())
    assert "QQ==" not in str(refused.value)
