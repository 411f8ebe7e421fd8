"""What every page does before its own work: who is logged in, may they, did they mean it.

Roles are those of the API and are checked by the same code: a page asks for one with
``caller: Viewer`` (or ``Operator``, ``Admin``) of :mod:`ldfi.experiments.api.auth`. On a router it
is one argument: ``APIRouter(route_class=PageRoute)``.
"""

from __future__ import annotations

import hmac
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse

from ldfi.dashboards.csp import confined
from ldfi.dashboards.forms import read_form
from ldfi.dashboards.render import error_page, rendered
from ldfi.dashboards.sessions import CSRF_FIELD, CSRF_HEADER, Session, resume
from ldfi.error_words import faults
from ldfi.errors import ExperimentsError
from ldfi.experiments.api.problems import Problem, problem_of
from ldfi.experiments.api.routes import CHANGING, GuardedRoute, Handler


class PageRoute(GuardedRoute):
    """A page, or a form's target. Whoever is not logged in is asked to; errors are pages too."""

    def __init__(self, path: str, endpoint: Any, **options: Any) -> None:
        super().__init__(path, endpoint, **{**options, "include_in_schema": False})

    def get_route_handler(self) -> Handler:
        """Make what FastAPI calls for a request."""
        guarded, guards = super().get_route_handler(), self.guards()

        async def page(request: Request) -> Response:
            try:
                caller = await resume(request)
                if guards and caller is None:
                    return confined(_asked_to_log_in(request))
                return confined(await guarded(request))
            except Problem as problem:
                return confined(error_page(request, problem))
            except RequestValidationError as error:
                return confined(error_page(request, _invalid(error)))
            except ExperimentsError as error:
                problem_page = problem_of(error)
                if problem_page is None:
                    raise
                return confined(error_page(request, problem_page))

        return page

    def handler(self) -> Handler:
        """Wrap the route's own work. The body is read by then."""
        handle = super().handler()

        async def meant(request: Request) -> Response:
            if request.method in CHANGING:
                await _check_csrf(request)
            return await handle(request)

        return meant


def _asked_to_log_in(request: Request) -> Response:
    """Send them to the login page, and from there back to where they wanted to go.

    A browser that follows a link from elsewhere sends no ``SameSite=Strict`` cookie. It is told to
    ask again, now from a page of ours, and then sends it.
    """
    if request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site":
        return rendered(request, "again.html")
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={"HX-Redirect": "/login"})
    to = request.url.path
    if request.url.query:
        to += f"?{request.url.query}"
    query = f"?next={quote(to, safe='')}" if request.method == "GET" and to != "/" else ""
    return RedirectResponse(f"/login{query}", status_code=303)


async def _check_csrf(request: Request) -> None:
    """Refuse a form that was not one of ours, or of another session: raises Problem 403."""
    session: Session | None = getattr(request.state, "session", None)
    sent = request.headers.get(CSRF_HEADER) or (await read_form(request)).text(CSRF_FIELD)
    if session is None or not hmac.compare_digest(sent.encode(), session.csrf.encode()):
        raise Problem(
            403, "forbidden", "the form is out of date: go back, load the page again, and repeat"
        )
    site = request.headers.get("sec-fetch-site", "same-origin")
    if site not in {"same-origin", "none"}:
        raise Problem(403, "forbidden", f"the form was sent from another site ({site})")


def _invalid(error: RequestValidationError) -> Problem:
    return Problem(422, "invalid", "; ".join(faults(error)))
