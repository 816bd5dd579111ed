"""Character references of HTML, such as `&amp;` and `&#38;`, resolved. Pure."""

from __future__ import annotations

import re
from html import unescape
from html.entities import html5

# Longer numbers stand for no character; `unescape` would turn a million digits into a number first.
_NUMBER = r"#(?:[xX]0*+[0-9A-Fa-f]{0,7}|0*+[0-9]{0,8});?"
_IN_TEXT = re.compile(rf"&(?:{_NUMBER}|[A-Za-z][A-Za-z0-9]{{1,31}};?)")
_IN_ATTRIBUTE = re.compile(rf"&(?:{_NUMBER}|([A-Za-z][A-Za-z0-9]{{1,31}})(;|(?![A-Za-z0-9=])))")
"""In an attribute a name without a semicolon is one only if no `=` follows: `?a=1&copy=2` is a query."""


def in_text(written: str) -> str:
    """Return text as *written* between tags with its references resolved."""
    return _IN_TEXT.sub(lambda match: unescape(match[0]), written) if "&" in written else written


def in_attribute(written: str) -> str:
    """Return the value of an attribute as *written* with its references resolved."""
    return _IN_ATTRIBUTE.sub(_character, written)


def _character(reference: re.Match[str]) -> str:
    if reference[1] is None:
        return unescape(reference[0])
    return html5.get(reference[1] + reference[2], reference[0])
