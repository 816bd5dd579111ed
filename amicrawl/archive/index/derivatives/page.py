"""The pages among the records: which records are pages, their markup and their text. Pure.

A page is cut as browsers cut it (WHATWG HTML, "tokenization"): quotes count behind an equals sign only,
comments are skipped, and the content of scripts and the like is text up to the end tag. No tree is
built: WAT and WET are defined on tags in their order, and so neither depth of nesting nor the number of
tags or attributes costs more than the bytes they take.

The text is what WET holds: without scripts, style sheets and the like, with the title. The start and the
end of a block element begin a new line, a few inline elements a space; other white space and control
characters collapse to one space, and lines do not end in one. Only `pre` keeps its lines.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from amicrawl.discovery import charset_of, in_attribute, in_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amicrawl.reading import Record


PAGE_LIMIT = 10 << 20
"""Bytes of one page that are looked at."""
MOST_TAGS = 400_000
"""Tags and comments of one page that are looked at."""
MOST_ATTRIBUTES = 256
"""Attributes of one tag that are looked at."""
UNDECLARED = "cp1252"
"""What browsers take a page for that declares no character set and is not UTF-8 (western locales)."""

_DECLARES = re.compile(rb"(?i)(?:charset|encoding)\s*=\s*[\"']?utf-?8")
_SPACE = r"[ \t\n\r\f]"
_NAME = r"([A-Za-z][^ \t\n\r\f/>]*+)"
_BEHIND_NAME = r"[ \t\n\r\f/>]"
_VALUE = rf"""={_SPACE}*+(?:"[^"]*+"|'[^']*+'|(?!["']))"""
# The groups are not repeated possessively: Python before 3.11.5 loses its place where an iteration of
# one fails. But each repetition is remembered, some 250 bytes of it, until the group is through, and so
# there is an end to them; what is beyond is passed over.
_ATTRIBUTES = rf"([^>=]*+(?>(?:{_VALUE}[^>=]*+){{0,65536}})(?:{_VALUE}[^>]*+)?)"
_RAW_NAME = (
    r"([sS](?i:cript|tyle)|[tT](?i:itle|extarea)|[xX](?i:mp)|[iI](?i:frame)|[nN](?i:oembed|oframes)"
    r"|[pP](?i:laintext))"
)
"""Elements whose content is text up to their end tag, which `plaintext` has none of."""
_RAW_END = rf"/(?!(?i:plaintext))(?i:\2){_BEHIND_NAME}"
_RAW = rf"([^<]*+(?:<(?!{_RAW_END})[^<]*+){{0,1000}}(?s:.*?))(?=<{_RAW_END}|\Z)"
_COMMENT = r"!(?=--)[^-]*+(?:-(?!-!?>)[^-]*+){0,1000}(?s:.*?)(?:--!?>|\Z)"
_MARKUP = re.compile(
    rf"<(?:/{_NAME}[^>]*+>?"
    rf"|(?={_RAW_NAME}{_BEHIND_NAME}|){_NAME}{_ATTRIBUTES}>(?(2){_RAW})"
    # Here the document ends inside a tag.
    rf"|[A-Za-z](?s:.*)|{_COMMENT}|[!?/][^>]*+>?)",
    re.ASCII,
)
_WIDTH = 1 + _MARKUP.groups
_ATTRIBUTE = re.compile(
    r"([^ \t\n\r\f/>=][^ \t\n\r\f/>=]*+)"
    r"""(?:[ \t\n\r\f]*+=[ \t\n\r\f]*+(?:"([^"]*+)"|'([^']*+)'|([^ \t\n\r\f>]*+)))?"""
)


Piece = tuple[str | None, str | None, str | None, str | None, str | None, str | None]
"""Text, and the tag behind it: the name of an end tag; the name of a raw element, that of any, and its
attributes, of a start tag; and the raw content behind that. What a tag has not is None, as is all of it
for a comment. Everything is as written, character references and capitals included."""


class Pieces:
    """A page in pieces, up to `MOST_TAGS`."""

    def __init__(self, text: str) -> None:
        # One list of all is made many times as fast as a tuple for each.
        self._all: list[str | None] = _MARKUP.split(text, MOST_TAGS)
        if len(self._all) < MOST_TAGS * _WIDTH:
            self._all += [None] * (_WIDTH - 1)  # no tag is behind the last text

    def __iter__(self) -> Iterator[Piece]:
        return zip(*[iter(self._all)] * _WIDTH, strict=False)


def tags(text: str) -> Iterator[Piece]:
    """Yield the tags of the page *text* as pieces without text, for those who do not read all of it."""
    for tag in _MARKUP.finditer(text):
        end, raw_name, name, attributes, raw = tag.groups()
        yield "", end, raw_name, name, attributes, raw


def decoded_page(content: bytes, content_type: str) -> tuple[str, str]:
    """Return *content* as text, and the character set it was read in, as browsers would.

    A byte order mark counts first, then *content_type*, then the page's own word. A page that says
    nothing is UTF-8 where it is valid as that, and `UNDECLARED` otherwise.
    """
    content = content[:PAGE_LIMIT]
    charset = charset_of(content, content_type)
    if charset == "utf-8" and not _declares(content, content_type):
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as error:
            # A page that was cut may end inside a character; then there are whole ones before.
            is_cut = error.start >= len(content) - 3 and not content[: error.start].isascii()
            charset = charset if is_cut else UNDECLARED
    return content.decode(charset, "replace").removeprefix("\ufeff"), charset


def _declares(content: bytes, content_type: str) -> bool:
    return (
        content.startswith(b"\xef\xbb\xbf")
        or _DECLARES.search(content_type.encode("ascii", "replace")) is not None
        or _DECLARES.search(content[:2048]) is not None
    )


def attributes_of(written: str) -> dict[str, str]:
    """Return the attributes of a start tag as *written*, names in lower case; the first counts."""
    found: dict[str, str] = {}
    # A list of all is made at once where they cannot be too many: each takes two characters at least.
    few = len(written) < 2 * MOST_ATTRIBUTES
    each: Iterable[Any] = (
        _ATTRIBUTE.findall(written)
        if few
        else (match.groups("") for match in islice(_ATTRIBUTE.finditer(written), MOST_ATTRIBUTES))
    )
    for written_name, in_two, in_one, bare in each:
        name = written_name.lower()
        if name not in found:
            value = in_two or in_one or bare
            found[name] = in_attribute(value) if "&" in value else value
    return found


_PAGES = ("text/html", "application/xhtml+xml")


class ExtractedPage:
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
    def pieces(self) -> Pieces:
        """Text and tags of an HTML document."""
        return Pieces(self.decoded)

    @cached_property
    def text(self) -> str:
        """What a reader would see of it; empty where there is nothing to read."""
        if self.is_html:
            return text_of_page(self.pieces)
        return plain_text(self.decoded)


def page_of(record: Record) -> ExtractedPage | None:
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
    return ExtractedPage(record.content(PAGE_LIMIT), declared, is_html=is_html)


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
# Only from where blanks begin: a million of them are not looked through a million times.
_LINE_END = re.compile(r"(?<![ \t])[ \t]*+\r?\n")


def text_of_page(pieces: Iterable[Piece]) -> str:
    """Return the text that *pieces* hold, lines separated by line feeds, without one at the end."""
    lines: list[str] = []
    line: list[str] = []
    is_kept = False
    for text, end, _, name, _, raw in pieces:
        if text:
            line.append(in_text(text))
        if (written := name or end) is None:
            continue
        element = written.lower()
        if element in _BLOCKS:
            if line:
                lines.append(_line_of("".join(line), is_kept=is_kept))
                line.clear()
            if element == "pre":
                is_kept = name is not None
        elif element in _SPACED:
            line.append(" ")
        if raw and element not in _HIDDEN:
            line.append(in_text(raw))
    lines.append(_line_of("".join(line), is_kept=is_kept))
    return "\n".join(filter(None, lines))


def _line_of(written: str, *, is_kept: bool) -> str:
    """Return one line of what is *written* between two blocks, or its own lines where they are kept."""
    if is_kept:
        return _LINE_END.sub("\n", _CONTROLS.sub(" ", written)).removeprefix("\n").rstrip()
    line = " ".join(written.split())
    # What is printable has no control character.
    if not line.isprintable() and _CONTROLS.search(line):
        line = " ".join(_CONTROLS.sub(" ", line).split())
    return line


def plain_text(text: str) -> str:
    """Return the plain *text* with line feeds for line ends, and blanks for control characters."""
    return _CONTROLS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
