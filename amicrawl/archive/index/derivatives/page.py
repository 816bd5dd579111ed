"""The pages among the records: which records are pages, their tokens and their text. Pure.

Tokens are text, tags and raw content, cut as browsers cut them (WHATWG HTML, "tokenization"): quotes
count behind an equals sign only, comments are skipped, and the content of scripts and the like is text
up to the end tag. No tree is built: WAT and WET are defined on tags in their order, and so neither depth
of nesting nor the number of tags or attributes costs more than the bytes they take.

The text is what WET holds: without scripts, style sheets and the like, with the title. The start and the
end of a block element begin a new line, a few inline elements a space; other white space and control
characters collapse to one space, and lines do not end in one. Only `pre` keeps its lines.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cached_property
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING, Any

from amicrawl.discovery import charset_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amicrawl.reading import Record


PAGE_LIMIT = 10 << 20
"""Bytes of one page that are looked at."""
MOST_TOKENS = 400_000
"""Tokens of one page that are looked at."""
MOST_ATTRIBUTES = 256
"""Attributes of one tag that are looked at."""
UNDECLARED = "cp1252"
"""What browsers take a page for that declares no character set and is not UTF-8 (western locales)."""

_DECLARES = re.compile(rb"(?i)(?:charset|encoding)\s*=\s*[\"']?utf-?8")
_MOST_VALUES = 65_536
# The group is not repeated possessively: Python before 3.11.5 loses its place where an iteration of
# one fails. What follows it never fails, so that nothing is tried again; but each repetition is
# remembered, some 250 bytes of it, and so there is an end to them.
_ATTRIBUTES = (
    r"""[^>=]*+(?:=[ \t\n\r\f]*+(?:"[^"]*+"|'[^']*+'|(?!["']))[^>=]*+){0,""" + f"{_MOST_VALUES}}}"
)
_MARKUP = re.compile(
    r"<(?:(!--)|/([A-Za-z][^ \t\n\r\f/>]*+)[^>]*+>?|[!?/][^>]*+>?"
    r"|([A-Za-z][^ \t\n\r\f/>]*+)(" + _ATTRIBUTES + r")(>)?)"
)
_ATTRIBUTE = re.compile(
    r"([^ \t\n\r\f/>=][^ \t\n\r\f/>=]*+)"
    r"""(?:[ \t\n\r\f]*+=[ \t\n\r\f]*+(?:"([^"]*+)"|'([^']*+)'|([^ \t\n\r\f>]*+)))?"""
)
_END_OF_COMMENT = re.compile(r"--!?>")
_RAW = {
    name: re.compile(rf"</{name}(?=[ \t\n\r\f/>])", re.IGNORECASE | re.ASCII)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
"""Elements whose content is text up to their end tag."""
# Longer numbers stand for no character; `unescape` would turn a million digits into a number first.
_CHARACTER = re.compile(r"&(?:#0*+[0-9]{1,8};?|#[xX]0*+[0-9A-Fa-f]{1,7};?|[A-Za-z][A-Za-z0-9]{1,31};?)")


class TokenKind(IntEnum):
    """What a token is."""

    TEXT = 0
    START = 1
    END = 2
    RAW = 3


Token = tuple[TokenKind, str, str]
"""A piece of a page: what it is; of tags and raw content the element's name, in lower case; text and raw
content as written, character references included, and of a start tag its attributes."""

TEXT, START, END, RAW = TokenKind


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


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of the page *text*, up to `MOST_TOKENS`."""
    return islice(_tokens(text), MOST_TOKENS)


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    search = _MARKUP.search
    while tag := search(text, position):
        start = tag.start()
        if start > position:
            yield (TEXT, "", text[position:start])
        position = tag.end()
        comment, end, name, attributes, closed = tag.groups()
        if name is not None:
            if closed is None:
                if attributes.count("=") < _MOST_VALUES:
                    return  # the document ends inside a tag
                position = text.find(">", position) + 1 or len(text)
            name = name.lower()
            yield (START, name, attributes)
            if (raw := _RAW.get(name)) is not None:
                ending = raw.search(text, position)
                stop = ending.start() if ending else len(text)
                yield (RAW, name, text[position:stop])
                position = stop
            elif name == "plaintext":
                break
        elif end is not None:
            yield (END, end.lower(), "")
        elif comment is not None:
            ending = _END_OF_COMMENT.search(text, position - 2)
            position = ending.end() if ending else len(text)
    if position < len(text):
        yield (TEXT, "", text[position:])


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
            found[name] = characters(value) if "&" in value else value
    return found


def characters(written: str) -> str:
    """Return text as *written* with its character references resolved."""
    return _CHARACTER.sub(lambda match: unescape(match[0]), written) if "&" in written else written


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
    def tokens(self) -> list[Token]:
        """The tokens of an HTML document."""
        return list(tokens(self.decoded))

    @cached_property
    def text(self) -> str:
        """What a reader would see of it; empty where there is nothing to read."""
        if self.is_html:
            return text_of_page(self.tokens)
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
_LINE_END = re.compile(r"[ \t]*\r?\n")

_NOTHING, _BLANK, _LINE = range(3)


def text_of_page(tokens: Iterable[Token]) -> str:
    """Return the text that *tokens* hold, lines separated by line feeds, without one at the end."""
    writer = _TextWriter()
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


class _TextWriter:
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
