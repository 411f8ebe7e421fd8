"""The old place of ``tests.kit.service``: to be deleted when no test imports it any more."""

from tests.kit.service import (
    GIVEN,
    application,
    bearer,
    client_of,
    live_through,
    problem,
    service,
)

__all__ = ["GIVEN", "application", "bearer", "client_of", "live_through", "problem", "service"]
