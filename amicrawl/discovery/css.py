"""CSS: the URLs that a style sheet, a style element or a style attribute refers to.

Comments and strings are skipped, so that no reference is read from them. One pass
over the text; the patterns never go back, so time grows with the text and no faster.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from amicrawl.discovery.kinds import Found, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_TOKENS = 200_000
"""References, strings and comments of one style sheet that are looked at."""

_STRINGS = r""""((?:[^"\\\n]|\\[\s\S])*+)"|'((?:[^'\\\n]|\\[\s\S])*+)'"""
_TOKEN = re.compile(
    r"/\*(?:[\s\S]*?\*/|[\s\S]*+)"
    # A namespace is a name and no address.
    r"|@namespace\b[^;]*+"
    rf"|@import\s*+(?:{_STRINGS})"
    rf"|\burl\(\s*+(?:{_STRINGS}|((?>(?:[^\s\"'()\\]++|\\[0-9a-f]{{1,6}}\s?|\\[\s\S]){{1,65536}}))\s*+(?:\)|\Z))"
    r"|\b(image-set)\("
    r"""|"((?:[^"\\\n]|\\[\s\S])*+)"?|'((?:[^'\\\n]|\\[\s\S])*+)'?""",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{1,6})(?:\r\n|[ \t\r\n\f])?|(\r\n|[\s\S]))")
_ESCAPED_LETTER = re.compile(
    r"(?<!\\)\\(?:0{0,4}([46][7-9A-F]|[57][0-9A])(?![0-9A-F])(?:\r\n|[ \t\r\n\f])?|([G-Z-]))",
    re.IGNORECASE,
)
"""A letter after F, or a hyphen, as an escape, by which names like `url` may be written."""


def references(text: str) -> Iterator[Found]:
    """Yield what the CSS *text* refers to; all of it is requisite."""
    if "\\" in text:
        # No such letter continues an escape before it, so nothing else changes its meaning.
        text = _ESCAPED_LETTER.sub(lambda escape: escape[2] or chr(int(escape[1], 16)), text)
    end, in_set = 0, False
    for token in islice(_TOKEN.finditer(text), MOST_TOKENS):
        imported, other, quoted, single, bare, begins_set, *strings = token.groups()
        url = next((group for group in (imported, other) if group is not None), None)
        if url is not None:
            yield _unescaped(url), Kind.REQUISITE, "css import"
        elif (
            url := next((each for each in (quoted, single, bare) if each is not None), None)
        ) is not None:
            yield _unescaped(url), Kind.REQUISITE, "css url"
        elif begins_set:
            in_set = True
        elif in_set and any(strings):
            # A string is an image of the set where one may begin, and not the name of a type.
            before = text[end : token.start()].rstrip()
            in_set = not (";" in before or "}" in before)
            if in_set and (not before or before.endswith(",")):
                yield _unescaped(strings[0] or strings[1]), Kind.REQUISITE, "css image-set"
        end = token.end()


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        code = int(escape[1], 16)
        return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"
    # An escaped end of line continues the string and stands for nothing.
    return "" if escape[2] in ("\n", "\r", "\r\n", "\f") else escape[2]
