"""Which extra of the package brings a module that is not there.

A plain install is what a service under test carries, and has no command line. Needs nothing but the
standard library: it is what still runs where everything else is missing.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

EXTRAS: Final = {
    "service": (
        *(
            "alembic",
            "backports.zstd",
            "cronsim",
            "fastapi",
            "httptools",
            "httpx",
            "httpx_sse",
            "itsdangerous",
        ),
        *("jinja2", "jsonpath_rfc9535", "networkx", "opentelemetry.proto"),
        *("prometheus_client", "pydantic", "pydantic_settings", "pysat", "rich", "sqlalchemy"),
        *("sse_starlette", "tenacity", "typer", "tzdata", "uvicorn", "yaml"),
    ),
    "demo": (
        "opentelemetry.exporter.otlp.proto.http",
        "opentelemetry.instrumentation.asgi",
        "opentelemetry.instrumentation.httpx",
        "opentelemetry.sdk",
        "starlette",
    ),
    "grpc": ("google.rpc", "grpc"),
    "kafka": ("kafka",),
    "png": ("resvg_py",),
    "postgresql": ("psycopg",),
    "signing": ("cryptography",),
}
"""The modules of each extra that we import."""


def advice(module: str | None) -> str | None:
    """Return what to install where a module is missing; None where no extra of ours brings it."""
    for extra, modules in EXTRAS.items():
        if module is not None and any(f"{each}.".startswith(f"{module}.") for each in modules):
            return f"{module} is not installed: pip install 'ldfi[{extra}]'"
    return None


def need(extra: str) -> None:
    """Look whether everything of an extra is there, before anything is begun that needs it.

    Raises ModuleNotFoundError as the import would.
    """
    for module in EXTRAS[extra]:
        if not _found(module):
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False
