"""HTML as a row of tokens: text, tags and raw content, for what is drawn out of pages. Pure.

A document is cut as browsers cut it (WHATWG HTML, "tokenization"): quotes count behind an equals sign
only, comments are passed over, and the content of scripts and their like is text up to the end tag. No
tree is built: WAT and WET are defined on tags in their order, and so neither depth of nesting nor the
number of tags or attributes can cost more than the bytes they take. What reads the tokens of one page
twice reads a list of them, made once.
"""

from __future__ import annotations

import re
from enum import IntEnum
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING, Any

from amicrawl.discovery.charset import charset_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


class Kind(IntEnum):
    """What a token is."""

    TEXT = 0
    START = 1
    END = 2
    RAW = 3


Token = tuple[Kind, str, str]
"""A piece of a page: what it is; of tags and raw content the element's name, in lower case; text and raw
content as written, character references included, and of a start tag its attributes."""

TEXT, START, END, RAW = Kind


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
