"""For all tests: hypothesis sets no deadline, since how fast a machine is proves nothing."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("ldfi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ldfi")
