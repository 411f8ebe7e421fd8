"""Pages as files of their own: everything inline, nothing asked of anybody, to be kept and sent."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from ldfi.dashboards.assets import FOLDER
from ldfi.dashboards.csp import confined
from ldfi.dashboards.render import environment
from ldfi.experiments.telemetry import clock


def page_file(request: Request, template: str, name: str, **shown: Any) -> HTMLResponse:
    """Render a template that extends ``file.html``, to be saved as ``name`` with ``.html``.

    It links to the service only where ``LDFI_PUBLIC_URL`` says how that is reached.
    """
    base = request.app.state.public_url or None
    text = (
        environment()
        .get_template(template)
        .render(
            style=_style(),
            at=clock.now(),
            base=base,
            trace_url=request.app.state.trace_url,
            called=request.app.state.called,
            **shown,
        )
    )
    saved = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    headers = {"Content-Disposition": f'attachment; filename="{saved}.html"'}
    response = confined(HTMLResponse(text, headers=headers))
    assert isinstance(response, HTMLResponse)  # noqa: S101
    return response


@cache
def _style() -> Markup:
    """Read our own sheets. They are no text of anybody else's, so they are not escaped."""
    return Markup("\n").join(
        Markup((FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704
        for name in ("style.css", "detail.css")
    )
