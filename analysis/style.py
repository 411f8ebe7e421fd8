"""How the page looks: on a phone and on a desk, in the light, in the dark and on paper."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#17202a;--muted:#566573;
--line:#dde3e9;--red:#b3261e;--soft:#fbe9e7;--green:#1b6e3c;--greens:#e6f4ea;--amber:#8a5a00}
@media(prefers-color-scheme:dark){:root{--page:#10151b;--card:#19212a;--text:#e8edf2;--muted:#9fb0bf;
--line:#2c3844;--red:#ff8a80;--soft:#3b2020;--green:#7fd6a0;--greens:#173324;--amber:#f0c060}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,sans-serif;
overflow-wrap:anywhere}
main{max-width:1120px;margin:0 auto;padding:32px 24px 64px}
.mast,.muted{color:var(--muted);font-size:14px}
h1{font-size:40px;line-height:1.15;margin:16px 0 8px;letter-spacing:-.02em}
h2{font-size:20px;margin:0 0 8px}h3{font-size:15px;margin:16px 0 4px}p{margin:0 0 8px}
.lead{font-size:18px;color:var(--muted)}.missing{color:var(--amber)}
.hidden{border-left:4px solid var(--red);padding-left:12px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:20px;
margin-top:20px;min-width:0}
.two{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,400px);gap:0 20px;align-items:start}
ul,ol{margin:0;padding:0;list-style:none}
li{padding:10px 0;border-top:1px solid var(--line)}li:first-child{border-top:0;padding-top:2px}
li li,.plain li{padding:2px 0;border:0}
.proved{border-left:4px solid var(--green)}.red{color:var(--red)}.green{color:var(--green)}
.do{color:var(--muted)}.do b{color:var(--amber)}
.meter{display:block;width:100%;height:10px;margin:6px 0;border-radius:5px;background:var(--page)}
.meter .a{fill:var(--red)}.meter .b{fill:var(--soft);stroke:var(--red);stroke-dasharray:3 2}
.graph{display:block;width:100%;max-width:440px;height:auto;margin:0 auto 12px}
.graph text{font:12px ui-monospace,monospace;fill:var(--text)}.graph .m{font-weight:700}
.graph .e{fill:none;stroke:var(--muted);stroke-width:1.3;opacity:.6}
.s{fill:var(--card);stroke:var(--muted);stroke-width:1.5}
.untried .s{stroke-dasharray:4 3}.silent .s{fill:var(--page);stroke-width:3}
.unclear .s{stroke:var(--amber);stroke-dasharray:1 3}
.lost .s{fill:var(--soft);stroke:var(--red);stroke-width:2.5}
.harmless .s{fill:var(--greens);stroke:var(--green)}
.key b{display:inline-block;min-width:1em}
summary{cursor:pointer;font-weight:600}details details summary,.exact summary{font-weight:400;
color:var(--muted);font-size:14px}
code{font:13px/1.5 ui-monospace,monospace}
@media(max-width:900px){.two{grid-template-columns:minmax(0,1fr)}}
@media(max-width:760px){main{padding:16px 12px 40px}h1{font-size:28px}.lead{font-size:16px}
.card{padding:14px;margin-top:14px}}
@media print{body{background:#fff}.card{break-inside:avoid}}
"""

POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none';"
    f" style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)
"""What a browser may load for the page: nothing, and no style but this."""
