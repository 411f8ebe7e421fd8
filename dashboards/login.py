"""Logging in with one of the API's tokens, or with a link that was made with one, and out."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from ldfi.dashboards.forms import Submitted
from ldfi.dashboards.links import ours
from ldfi.dashboards.render import rendered
from ldfi.dashboards.route import PageRoute
from ldfi.dashboards.sessions import Sessions, sessions
from ldfi.experiments.api.auth import Viewer, recognise
from ldfi.experiments.api.by_namespace import PARAMETER
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.routes import GuardedRoute
from ldfi.experiments.cluster.tokens import Caller
from ldfi.experiments.store.tokens import namespace_in

router = APIRouter(route_class=PageRoute)
api = APIRouter(prefix="/api/v1", route_class=GuardedRoute, include_in_schema=False)


@api.post("/login-links")
async def make_link(request: Request, caller: Viewer) -> dict[str, str]:
    """Make a link with which one browser can log in as the caller, once and soon."""
    return {"path": login_path(sessions(request), caller.id)}


def login_path(sessions: Sessions, who: str) -> str:
    """Make a path on which one browser can log in, once and soon, as who holds this token."""
    of_namespace = {PARAMETER: sessions.namespace} if sessions.namespace else {}
    return f"/login?{urlencode({'link': sessions.link(who), **of_namespace})}"


@router.get("/login")
async def login(
    request: Request,
    to: Annotated[str, Query(alias="next", max_length=2000)] = "/",
    link: Annotated[str, Query(max_length=500)] = "",
) -> Response:
    """Show the form. Whoever is logged in already goes on.

    A link asks for a click, so that a program that looks at it in advance does not use it up.
    """
    if getattr(request.state, "caller", None) is not None:
        return RedirectResponse(ours(to), status_code=303)
    return _form(request, to, link=link)


@router.post("/login")
async def log_in(request: Request, form: Submitted) -> Response:
    """Check a token and begin a session. Attempts that fail are limited as the API's are."""
    to = form.text("next", "/")
    if form.text("link"):
        who = await run_in_threadpool(sessions(request).redeem, form.text("link"))
        if who is None:
            return _form(request, to, "This link is used or old. `ldfi open` makes another.")
        return _begun(request, to, who)
    elsewhere = namespace_in(form.text("token"))
    if elsewhere is not None and elsewhere != sessions(request).namespace:
        query = urlencode({PARAMETER: elsewhere, "next": ours(to)})
        return RedirectResponse(f"/login?{query}", status_code=303)
    try:
        caller: Caller = await recognise(request, form.text("token"))
    except Problem as problem:
        if problem.status != 401:
            raise
        return _form(request, to, "This token is unknown, expired or revoked.")
    if not caller.may("viewer"):
        return _form(
            request, to, f"This token is for machines ({caller.role}). Log in with a person's."
        )
    return _begun(request, to, caller.id)


def _begun(request: Request, to: str, who: str) -> Response:
    response = RedirectResponse(ours(to), status_code=303)
    sessions(request).begin(response, request, who)
    return response


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """End the session."""
    response = RedirectResponse("/login", status_code=303)
    await run_in_threadpool(sessions(request).end, response, request.state.session)
    return response


def _form(request: Request, to: str, problem: str = "", link: str = "") -> Response:
    """Show the form, in a session of nobody's: its CSRF token must have been given to this
    browser."""
    begun = Response()
    known = getattr(request.state, "session", None)
    request.state.session = known or sessions(request).begin(begun, request)
    status = 403 if problem else 200
    response = rendered(request, "login.html", status, problem=problem, link=link, to=ours(to))
    if known is None:
        response.headers["set-cookie"] = begun.headers["set-cookie"]
    return response
