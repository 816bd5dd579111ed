"""The pages among the records: which records are pages, their tokens and their text. Pure.

The text is what WET holds: without scripts, style sheets and the like, with the title. The start and the
end of a block element begin a new line, a few inline elements a space; other white space and control
characters collapse to one space, and lines do not end in one. Only `pre` keeps its lines.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from amicrawl.index.pages.tokens import PAGE_LIMIT, RAW, START, TEXT, characters, decoded_page, tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.index.pages.tokens import Token
    from amicrawl.index.reading.records import Record


_PAGES = ("text/html", "application/xhtml+xml")


class Page:
    """An HTML document or a plain text."""

    def __init__(self, content: bytes, content_type: str, *, is_html: bool) -> None:
        self._content = content
        self._content_type = content_type
        self.is_html = is_html

    @cached_property
    def decoded(self) -> str:
        """The content as characters, read as browsers would."""
        return decoded_page(self._content, self._content_type)[0]

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens of an HTML document."""
        return list(tokens(self.decoded))

    @cached_property
    def text(self) -> str:
        """What a reader would see of it; empty where there is nothing to read."""
        if self.is_html:
            return text_of_page(self.tokens)
        return plain_text(self.decoded)


def page_of(record: Record) -> Page | None:
    """Return the page in *record*, or None where it is not an HTTP response with HTML or plain text.

    What the crawler identified (WARC-Identified-Payload-Type) counts before what the server declared.
    At most `PAGE_LIMIT` bytes of it are looked at.
    """
    if record.type != "response" or not record.is_http:
        return None
    declared = (record.http_field(b"content-type") or b"").decode("latin-1")
    identified = record.fields.get("warc-identified-payload-type", "").partition(";")[0].strip().lower()
    is_html = identified in _PAGES if identified else "html" in declared.lower()
    media_type = identified or declared.partition(";")[0].strip().lower()
    if not is_html and media_type != "text/plain":
        return None
    return Page(record.content(PAGE_LIMIT), declared, is_html=is_html)


_BLOCK_NAMES = """
address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset
figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li
listing main menu nav noframes noscript ol optgroup option p plaintext pre section summary table
tbody tfoot th thead title tr ul xmp
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_SPACED_NAMES = """
applet audio button canvas embed iframe img input label object select td textarea video
"""
_SPACED = frozenset(_SPACED_NAMES.split())
_HIDDEN = frozenset({"script", "style", "iframe", "noembed", "noframes"})
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_LINE_END = re.compile(r"[ \t]*\r?\n")

_NOTHING, _BLANK, _LINE = range(3)


def text_of_page(tokens: Iterable[Token]) -> str:
    """Return the text that *tokens* hold, lines separated by line feeds, without one at the end."""
    writer = _Writer()
    for kind, name, written in tokens:
        if kind is TEXT:
            if not written.isspace() or writer.is_raw:
                writer.text(written)
            elif not writer.gap:
                writer.gap = _BLANK
        elif kind is RAW:
            if name not in _HIDDEN:
                writer.text(written)
        elif name in _BLOCKS:
            writer.gap = _LINE
            if name == "pre":
                writer.is_raw = kind is START
        elif not writer.gap and name in _SPACED:
            writer.gap = _BLANK
    return "".join(writer.pieces)


def plain_text(text: str) -> str:
    """Return the plain *text* with line feeds for line ends, and blanks for control characters."""
    return _CONTROLS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


class _Writer:
    """Pieces of text, and what stands between the last one and the next."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.gap = _NOTHING
        self.is_raw = False

    def text(self, written: str) -> None:
        text = characters(written) if "&" in written else written
        # What is printable has no control character, and no white space but blanks.
        if not text.isprintable() and _CONTROLS.search(text):
            text = _CONTROLS.sub(" ", text)
        if self.is_raw:
            self._raw(text)
            return
        words = text.split()
        if not words:
            self.gap = self.gap or _BLANK
            return
        # There is nothing before the first piece.
        if self.pieces and (self.gap or text[0].isspace()):
            self.pieces.append("\n" if self.gap == _LINE else " ")
        self.pieces.append(" ".join(words))
        self.gap = _BLANK if text[-1].isspace() else _NOTHING

    def _raw(self, text: str) -> None:
        lines = _LINE_END.sub("\n", text)
        if self.gap == _LINE:
            lines = lines.removeprefix("\n")
        if not lines.strip():
            return
        self._begin()
        self.pieces.append(lines.rstrip())
        ends_in_line = "\n" in lines[len(lines.rstrip()) :]
        self.gap = _LINE if ends_in_line else (_BLANK if lines[-1] == " " else _NOTHING)

    def _begin(self) -> None:
        if self.pieces and self.gap:
            self.pieces.append("\n" if self.gap == _LINE else " ")
        self.gap = _NOTHING
