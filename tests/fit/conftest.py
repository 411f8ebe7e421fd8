from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import context
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from ldfi import fit
from ldfi.fit import hosts, patching
from ldfi.fit.clients import patch_all
from ldfi.fit.runtime import Runtime, activate
from tests.fit.applications import KEYS, Recorded, recording
from tests.fit.clients.contract import Requests


@pytest.fixture
def recorded() -> Recorded:
    """A tracer that samples nothing but what ``fit`` keeps."""
    return recording(fit.Sampler(ParentBased(ALWAYS_OFF)))


@pytest.fixture
def installed() -> Iterator[None]:
    """``fit`` as service ``api``, with a key."""
    activate(Runtime("api", KEYS))
    hosts.withhold()
    patch_all()
    token = context.attach(context.Context())
    yield
    context.detach(token)
    activate(None)
    patching.stop_waiting()
    patching.take_out_all()


@pytest.fixture
def recorded_by(installed: None) -> Requests:
    """Requests of service ``api``, and the lineage that reads them."""
    return Requests()
