"""Django with Celery, Redis and psycopg2, of which nothing is prepared but what the page says:
explored as it runs against real servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from deploy.stack.postgresql import USER
from ldfi.cli.ports import free_row
from ldfi.explore.external.environment import variables
from ldfi.explore.external.services import Service, Services
from ldfi.explore.external.stamp import SharedKeys
from tests.fit.clients.servers import postgresql_running, redis_running

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

KEYS = SharedKeys("test:0123456789abcdef0123456789abcdef")
ROOT = Path(__file__).parents[2]
ORDER = "import os, urllib.request as u; u.urlopen(os.environ['LDFI_TARGET'] + '/order')"
WITHOUT_PSYCOPG_3 = "import sys; sys.modules['psycopg'] = None"  # or Django takes that
SERVE = f"{WITHOUT_PSYCOPG_3}; from tests.fit.django_shop import main; main()"


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What ``ldfi explore`` says of an order, and the ports of the two Redis."""
    folder = tmp_path_factory.mktemp("django")
    with (
        redis_running(tmp_path_factory.mktemp("broker")) as (broker, _),
        redis_running(tmp_path_factory.mktemp("cache")) as (cache, _),
        postgresql_running() as server,
    ):
        name = server.create()
        with psycopg.connect(host=str(server.folder), user=USER, dbname=name) as db:
            db.execute("CREATE TABLE orders (id serial PRIMARY KEY, product int)")
            db.execute("CREATE TABLE visits (day date)")
        first = free_row(2)
        receiving = f"127.0.0.1:{first + 1}"
        told = variables(KEYS, f"http://{receiving}")
        own = {
            "OTEL_SERVICE_NAME": "shop",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "PORT": str(first),
            "BROKER": str(broker),
            "CACHE": str(cache),
            "DATABASE_HOST": str(server.folder),
            "DATABASE": name,
            "DATABASE_USER": USER,
        }
        command = (sys.executable, "-c", SERVE)
        shop = Service("shop", command, first, "/order", own, folder=ROOT)
        services = Services(told, folder, seconds=120)
        try:
            services.start(shop)
            urllib.request.urlopen(f"{shop.url}/order").close()  # noqa: S310
            words = [
                *(sys.executable, "-m", "ldfi.cli", "explore", "--target", shop.url),
                *("--receive", receiving, "--json", "--", sys.executable, "-c", ORDER),
            ]
            done = subprocess.run(
                words,
                cwd=folder,
                env=os.environ | told | {"PYTHONPATH": own["PYTHONPATH"]},
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            services.close()
        assert done.returncode == 1, done.stdout + done.stderr
        yield json.loads(done.stdout) | {"broker": broker, "cache": cache, "database": name}


def test_a_failed_publish_is_found(explored: dict[str, Any]) -> None:
    database, broker = explored["database"], f"127.0.0.1:{explored['broker']}"
    assert explored["verdict"] == "harmful"
    assert {tuple(each["faults"]) for each in explored["findings"]} >= {
        ("error@shop>message:send:/celery",),
        (f"error@shop>db:INSERT:{database}/orders",),
        (f"error@shop>db:LPUSH:{broker}",),
    }
    [publish] = [
        each
        for each in explored["findings"]
        if each["faults"] == ["error@shop>message:send:/celery"]
    ]
    assert publish["confirmed"]
    assert publish["bad"][-1]["call"] == "shop>message:send:/celery"
    assert publish["bad"][-1]["fired"] == ["error"]


def test_every_point_is_reachable(explored: dict[str, Any]) -> None:
    database = explored["database"]
    assert set(explored["points"]) >= {
        f"shop>db:GET:localhost:{explored['cache']}",
        f"shop>db:INSERT:{database}/orders",
        f"shop>db:SELECT:{database}/visits",
        f"shop>db:LPUSH:127.0.0.1:{explored['broker']}",
        "shop>message:send:/celery",
    }
    assert explored["reason"] == ""  # nothing is without an injector
    assert (explored["open"], explored["unfired"], explored["ignored"]) == (0, [], [])
