"""The pages among the records: which they are, and what is read of them, once for everyone. Pure."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from amicrawl.index.pages.text import plain_text, text_of_page
from amicrawl.index.pages.tokens import PAGE_LIMIT, decoded_page, tokens

if TYPE_CHECKING:
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
    """Return the page in *record*, or None where it is no HTTP response with HTML or plain text.

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
