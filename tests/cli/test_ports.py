"""Ports that are told to processes: nobody else's, now."""

from __future__ import annotations

import socket

import pytest

from ldfi.cli import ports
from ldfi.cli.ports import free_row


def test_a_row_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a few ports, one of them in use
    with socket.create_server(("127.0.0.1", 0)) as other:
        used = other.getsockname()[1]
        monkeypatch.setattr(ports, "FIRST", used - 3)
        monkeypatch.setattr(ports, "MANY", 8)
        # Then only those beside it are found
        assert {free_row(2) for _ in range(200)} <= {used - 3, used - 2, used + 1, used + 2}
        with pytest.raises(RuntimeError, match="no 5 free ports in a row"):
            free_row(5)


def test_who_looks_at_once_finds_others() -> None:
    assert len({free_row(10) for _ in range(20)}) > 15
