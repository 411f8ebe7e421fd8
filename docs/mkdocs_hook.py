"""mkdocs: what is right for pages of a repository but not for a site of its own.

Pages link to files of the repository beside them (``../compose.yaml``). A site has no such files,
so there the link becomes the file's path. A file that is not there fails a strict build, as any
broken link does.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>(?:\.\./)+[^)#\s]*)(?:#[^)]*)?\)")
_log = logging.getLogger("mkdocs.hooks.repository")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turn a page's links out of the documentation into paths; called by mkdocs for each page."""
    here = (ROOT / "docs" / page.file.src_uri).parent

    def path_alone(link: re.Match[str]) -> str:
        target = (here / link["path"]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return link[0]
        path = target.relative_to(ROOT)
        if not target.exists() and not (ROOT / "ldfi" / path).exists():  # as in an sdist
            _log.warning("%s links to %s, which is not there", page.file.src_uri, link["path"])
        text = link["text"].strip("`")
        named = path.as_posix()
        return f"`{named}`" if named.endswith(text) else f"{link['text']} (`{named}`)"

    return _LINK.sub(path_alone, markdown)
