"""Devices: simulated phones, tablets and televisions that use the application and report on it.

    python -m ldfi.demo.devices --gateway http://127.0.0.1:8080 --seconds 30

Each has an identity that stays, starts a W3C trace of its own (its own span is never exported, as
no phone's is), and judges what it gets the way an app would. What it saw goes to ``LDFI_URL`` with
``LDFI_DEVICE_TOKEN`` (or ``LDFI_TOKEN``); nobody there costs nothing but the reports.
"""

from __future__ import annotations

from ldfi.demo.devices.run import DEFAULT_RATES, Traffic, add_options, run, traffic

__all__ = ["DEFAULT_RATES", "Traffic", "add_options", "run", "traffic"]
