"""What people come for is done from the first page in two clicks at most, and from the command line
in one command; both say the same."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urljoin

import httpx

from tests.dashboards.browsing import Browser, Markup, Site, text_of
from tests.kit.cli import At

CLICKS = 2
LINK = re.compile(r"<a\b[^>]*?\bhref=\"([^\"]*)\"[^>]*>(.*?)</a>", re.S)
FORM = re.compile(r"<form\b([^>]*)>(.*?)</form>", re.S)


class Walk:
    """Somebody who begins at the first page and clicks, without a script."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.clicks = 0
        self.page = browser.get("/")

    @property
    def said(self) -> str:
        """What the page shows."""
        return text_of(self.page)

    def follow(self, words: str) -> str:
        """Click the first link whose words match; returns what is shown then."""
        found = [to for to, said in LINK.findall(self.page.text) if re.search(words, _text(said))]
        assert found, f"{self.page.url} has no link {words!r}"
        return self._shown(self._browser.get(urljoin(str(self.page.url), unescape(found[0]))))

    def submit(self, button: str, **typed: str) -> str:
        """Send the form that has this button, with what stands in its fields or is ``typed``."""
        form = [each for each in FORM.findall(self.page.text) if button in _text(each[1])][-1]
        fields = {
            each["name"] or "": each.get("value") or "" for each in Markup(form[1]).every("input")
        } | typed
        ((_, about),) = Markup(f"<form{form[0]}>").tags
        where, send = about["action"] or "", self._browser.client
        if about["method"] == "post":
            return self._shown(send.post(where, data=fields))
        return self._shown(send.get(where, params=fields))

    def _shown(self, page: httpx.Response) -> str:
        self.clicks += 1
        assert self.clicks <= CLICKS, "it takes more clicks"
        if page.is_redirect:
            page = self._browser.get(page.headers["location"])
        assert page.status_code == 200, page.text
        self.page = page
        return self.said


def _text(html: str) -> str:
    return Markup(html).text


def at(here: Site) -> At:
    """The command line of an operator there."""
    return At(here.url, columns=300)


def test_was_it_us(here: Site, operator: Browser) -> None:
    walk = Walk(operator)
    answer = at(here).json("was-it-us")
    assert answer["words"] in walk.said, "it stands on the first page"
    earlier = walk.submit("Was it us?", since="2026-01-01 00:00")
    done = at(here).run("was-it-us", "--from", "2026-01-01T00:00Z")
    assert (done.returncode, done.stdout.splitlines()[0] in earlier) == (1, True)


def test_stop_it(here: Site, operator: Browser) -> None:
    walk = Walk(operator)
    walk.submit("Halt everything")
    assert "Everything is halted" in walk.submit("Halt everything", reason="checkout is slow")
    assert at(here).json("status")["halted"] == "checkout is slow"
    at(here)("resume")
    at(here)("halt", "once more")
    assert "once more" in Walk(operator).said


def test_what_is_worst_and_whose_it_is(here: Site, operator: Browser) -> None:
    worst = at(here).json("findings")["items"][0]
    shown = at(here)("findings", "--limit", "1")
    assert worst["sentence"] in shown
    owner = ", ".join(worst["owners"]) or "nobody"
    assert owner in shown
    walk = Walk(operator)
    assert f"Owner {owner}" in walk.follow(f"^{re.escape(worst['sentence'])}")


def test_what_if_something_goes_down(here: Site, operator: Browser) -> None:
    answers = at(here).json("whatif", "--down", "playlist", code=1)
    together = [
        (each["request_class"], point)
        for each in answers
        for point in set(each["hurts"]) - set(each["anyway"])
    ]
    walk = Walk(operator)
    walk.follow("^Map$")
    said = walk.follow("^playlist$")
    assert "If playlist is down" in said
    assert together
    for name, point in together:
        lost = point.partition("http:GET:")[2].partition("/")[0]
        assert f"{name} is lost if {lost} fails too" in said


def test_file_it(here: Site, operator: Browser) -> None:
    worst = at(here).json("findings")["items"][0]
    issue = at(here).json("findings", "issue", worst["id"])
    walk = Walk(operator)
    said = walk.follow(f"^{re.escape(worst['sentence'])}")
    assert "File an issue" in said, "which is the second click: it unfolds"
    page = unescape(walk.page.text)
    assert issue["title"] in page
    assert issue["body"].strip() in page
