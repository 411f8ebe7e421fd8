"""Large JSON documents in bounded memory.

A Jaeger export is one object with a list of traces; at five gigabytes nobody wants it in memory.
:func:`elements` finds the list and decodes its elements one after the other from a window on the
file. An element that the window cuts off cannot be told from a broken one, so the window grows
until the element is whole, the file ends, or the element is too large to be one.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any, Final

from ldfi.lineage.errors import UnreadableTraces

WINDOW: Final = 4 << 20
MAX_ELEMENT: Final = 256 << 20
"""Characters of one element (a trace, a span) above which a document is given up."""

_LIST: Final = re.compile(r'(?:[^"\[]|"(?:[^"\\]|\\.)*+")*+\[', re.DOTALL)
_NEXT_DOCUMENT: Final = re.compile(r"\n\s*(?=[{\[])")
_GAP: Final = re.compile(r"[\s,]*")


def elements(stream: IO[bytes]) -> Iterator[Any]:
    """Decode, one by one, the elements of the first list in each JSON document of a stream.

    Raises UnreadableTraces for a document that is damaged or ends in the middle of an element.
    """
    window = _Window(stream)
    while window.seek_list():
        yield from window.list_elements()
        if not window.seek_document():
            break


class _Window:
    """The part of the stream that is in memory: ``text`` from ``at`` on is still to be read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._scan = json.JSONDecoder().raw_decode
        self.text = ""
        self.at = 0

    def seek_list(self) -> bool:
        """Go behind the next opening bracket. False where there is none."""
        while True:
            found = _LIST.match(self.text, self.at)
            if found is not None:
                self.at = found.end()
                return True
            if not self._grow():
                if self.text[self.at :].strip():
                    raise UnreadableTraces("JSON without a list is not trace data")
                return False

    def list_elements(self) -> Iterator[Any]:
        """Decode the elements up to the closing bracket, and pass that."""
        while True:
            gap = _GAP.match(self.text, self.at)
            begin = gap.end() if gap else self.at
            if begin == len(self.text):
                if not self._grow():
                    raise UnreadableTraces("the document ends in the middle of a list")
                continue
            self.at = begin
            if self.text[begin] == "]":
                self.at += 1
                return
            yield self._element()

    def seek_document(self) -> bool:
        """Go to the next document, which begins on a line of its own. False at the end."""
        while True:
            found = _NEXT_DOCUMENT.search(self.text, self.at)
            if found is not None:
                self.at = found.end()
                return True
            if not self._grow():
                return False

    def _element(self) -> Any:
        while True:
            try:
                value, end = self._scan(self.text, self.at)
            except (ValueError, RecursionError) as error:
                if not self._grow():
                    raise UnreadableTraces(f"damaged in the middle: {error}") from error
            else:
                if end == len(self.text) and self._grow():
                    continue  # a number may go on
                self.at = end
                return value

    def _grow(self) -> bool:
        """Forget what was read and read on, twice as far as last time. False at the end."""
        rest = self.text[self.at :]
        if len(rest) > MAX_ELEMENT:
            raise UnreadableTraces(f"one element has more than {MAX_ELEMENT >> 20} million letters")
        more = self._stream.read(max(WINDOW, len(rest)))
        self.text, self.at = rest + self._decode.decode(more, final=not more), 0
        return bool(more)
