"""The Collector's configuration, in a real Collector: what it keeps, and what it leaves out."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from deploy.stack.collector import FOLDER, configs
from tests.deploy.collectors import running, send, traces
from tests.deploy.programs import collector
from tests.deploy.sink import Sink, listening, until

pytestmark = pytest.mark.servers

ONLY_LDFI = "yaml:service::pipelines::traces::exporters: [otlp_http/ldfi]"
TOKEN = "ingest-0123456789abcdef"


def to_ldfi(endpoint: str, folder: Path, **variables: str) -> AbstractContextManager[str]:
    """A Collector that exports to ``endpoint`` as to the service, without Kafka."""
    return running(
        folder / "log",
        str(FOLDER / "without-kafka.yaml"),
        ONLY_LDFI,
        LDFI_ENDPOINT=endpoint,
        LDFI_INGEST_TOKEN=TOKEN,
        DECISION_WAIT="1s",
        **variables,
    )


@pytest.mark.parametrize("more", [(), (str(FOLDER / "without-kafka.yaml"),)])
def test_the_configuration_is_valid(more: tuple[str, ...]) -> None:
    checked = subprocess.run(
        [collector(), "validate", *configs(*more)],
        env={**os.environ, "LDFI_INGEST_TOKEN": TOKEN},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_every_trace_with_a_failure_context_is_kept_whole_and_no_other(tmp_path: Path) -> None:
    # Given a Collector that samples nothing that it need not keep
    sink = Sink()
    plain, treated, control, failed, own = (traces(kind, 20) for kind in range(1, 6))
    with (
        listening(sink) as endpoint,
        to_ldfi(endpoint, tmp_path, SAMPLED_PERCENT="0") as url,
    ):
        # When requests of all sorts come in, span by span
        send(url, plain)
        send(url, treated, fit_experiment="e1", fit_arm="treatment")
        send(url, control, fit_experiment="e1", fit_arm="control")
        send(url, failed, error=True)
        send(url, own, service="ldfi", fit_experiment="e1", error=True)
        expected = dict.fromkeys([*treated, *control, *failed], 3)
        # Then what matters arrives, all of it, and what does not is decided on by then too
        until(lambda: len(sink.spans) >= len(expected), 20)
        time.sleep(2.5)
    assert dict(sink.spans) == expected
    assert sink.tokens == {f"Bearer {TOKEN}"}


def test_the_share_of_the_rest_is_what_was_asked_for(tmp_path: Path) -> None:
    sink, plain = Sink(), traces(6, 20)
    with (
        listening(sink) as endpoint,
        to_ldfi(endpoint, tmp_path, SAMPLED_PERCENT="100") as url,
    ):
        send(url, plain)
        until(lambda: len(sink.spans) >= len(plain), 20)
    assert dict(sink.spans) == dict.fromkeys(plain, 3)
