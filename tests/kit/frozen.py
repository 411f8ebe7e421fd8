"""A process that stands still, as one on a machine without time to spare."""

from __future__ import annotations

import os
import signal
import subprocess


def freeze(process: subprocess.Popen[bytes]) -> None:
    """Stop a child in mid-work, and return once each of its threads stands still."""
    process.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), f"it has ended instead: {status}"
