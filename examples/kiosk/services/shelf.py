"""A service that answers and asks nobody: ``python shelf.py``, ``OTEL_SERVICE_NAME`` says which."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from switch import said, serve

NAME = os.environ["OTEL_SERVICE_NAME"]


def answer(_environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    return said(start, json.dumps(f"{NAME}, as asked for").encode())


if __name__ == "__main__":
    serve(answer)
