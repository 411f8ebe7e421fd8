"""Text that would do harm in a page that took it for more than text, and where it may come from.

Each would set ``window.hacked``, or leave an element of the class ``hostile`` behind, or break what
carries it (a page, a script, an event stream). Names of spans, of services and of paths come from
the systems under test and from whoever sends them requests: none can be trusted.
"""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Page

from ldfi.testing.programs import Call, Step

PAYLOADS: Final = (
    "<script class=hostile>window.hacked=1</script>",
    '"><img class=hostile src=x onerror="window.hacked=1">',
    "'><svg class=hostile onload='window.hacked=1'>",
    "</title></style></textarea><b class=hostile>bold</b>",
    "</script><script class=hostile>window.hacked=1</script>",
    '" autofocus class="hostile" onfocus="window.hacked=1" x="',
    "<iframe class=hostile srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "javascript:window.hacked=1//",
    "<a class=hostile href='//evil.example/'>click</a>",
    "<div class=hostile hx-get='/tokens' hx-trigger='load' hx-on::load='window.hacked=1'></div>",
    "{{7*7}}{% include '/etc/passwd' %}${window.hacked=1}",
    "&lt;i class=hostile&gt;&#x3c;script&#x3e;window.hacked=1&#x3c;/script&#x3e;",
    "--><b class=hostile>after a comment</b><!--",
    "a\n\nevent: halted\ndata: <b class=hostile>a second event</b>\n\n",
    "\u202egnp.elif\u2066 <b class=hostile>turned round</b>",
    "__proto__",
    "constructor",
    "x" * 300 + "<b class=hostile>long</b>",
)
LINE: Final = tuple(payload for payload in PAYLOADS if "\n" not in payload)
"""Those that fit on a line."""

_CRITICAL = {0, 1, 4, 15}
"""Points whose failure hurts, so that there are findings with hostile names."""

PROGRAM: Final = Call(
    "root",
    tuple(
        Step("critical" if at in _CRITICAL else "optional", (Call(payload),))
        for at, payload in enumerate(PAYLOADS)
    ),
)
SMALL: Final = Call("root", (Step("critical", (Call(PAYLOADS[0]),)),))
PATHS: Final = ("/<svg/onload=window.hacked=1>", "/<script>window.hacked=1</script>")
"""Paths that are names of classes as they are: no part of them looks like an id."""


def harm(page: Page) -> list[str]:
    """What hostile text has achieved on a page: nothing, or what."""
    done: list[str] = page.evaluate(
        """() => [
            ...(window.hacked ? ['a script ran'] : []),
            ...(({}).polluted ? ['the prototype of all objects was changed'] : []),
            ...[...document.querySelectorAll(
                '.hostile, iframe, object, embed, base,'
                + 'script:not([src], [type="application/json"])')]
                .map(each => 'injected: ' + each.outerHTML.slice(0, 200)),
            ...[...document.querySelectorAll('a[href], form[action]')]
                .map(each => each.getAttribute('href') ?? each.getAttribute('action'))
                .filter(to => !/^(?:\\/(?!\\/)|#|\\?|$)/.test(to))
                .map(to => 'leads elsewhere: ' + to),
            ...[...document.querySelectorAll('*')]
                .filter(each => each.getAttributeNames().some(name => /^on|^hx-on/.test(name)))
                .map(each => 'has a handler: ' + each.outerHTML.slice(0, 200)),
        ]"""
    )
    return done
