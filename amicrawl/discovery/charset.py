"""The character set of a payload from its byte order mark, Content-Type, or own declaration.

The order is that of browsers (WHATWG HTML, "determining the character encoding"). Without any of
the three it is UTF-8. Only the character sets of the web are known; Python's others decode what no
browser would, some of them at a cost.
"""

from __future__ import annotations

import codecs
import re

UTF_8 = "utf-8"

_MARKS = ((b"\xef\xbb\xbf", UTF_8), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_PARAMETER = re.compile(r"""(?i)charset\s*=\s*["']?([A-Za-z0-9_:.+-]{1,40})""")
_DECLARED = re.compile(
    rb"""(?i)<meta[^>]{0,300}?\scharset\s*=\s*["']?([A-Za-z0-9_:.+-]{1,40})"""
    rb"""|<meta[^>]{0,300}?[\s;"']charset\s*=\s*([A-Za-z0-9_:.+-]{1,40})"""
    rb"""|<\?xml[^>]{0,100}?\sencoding\s*=\s*["']([A-Za-z0-9_:.+-]{1,40})"""
    rb"""|\A@charset "([A-Za-z0-9_:.+-]{1,40})";"""
)
_LOOKED_AT = 2048
"""Bytes in which a document has to declare its character set; browsers want it in the first 1,024."""

_KNOWN = frozenset(
    [UTF_8, "cp866", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp874"]
    + [f"cp125{number}" for number in range(9)]
    + [f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)]
    + ["gb18030", "big5hkscs", "euc_jp", "cp932", "iso2022_jp", "cp949", "utf-16-le", "utf-16-be"]
)
# What pages call Latin-1 is Windows-1252 in every browser; the others are subsets of their heirs too.
_HEIRS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
_NOT_ASCII_INSIDE = frozenset({"utf-16-le", "utf-16-be", "iso2022_jp"})
"""In these, a byte that looks like ASCII need not be."""


def charset_of(payload: bytes, content_type: str = "") -> str:
    """Return the name, as Python has it, of the character set of *payload*, sent as *content_type*."""
    for mark, charset in _MARKS:
        if payload.startswith(mark):
            return charset
    sent = _PARAMETER.search(content_type)
    if sent and (known := _known(sent[1])):
        return known
    declared = _DECLARED.search(payload[:_LOOKED_AT])
    if declared is None:
        return UTF_8
    charset = _known(next(filter(None, declared.groups())).decode("ascii")) or UTF_8
    # A declaration that could be read as ASCII is not in UTF-16, whatever it says.
    return UTF_8 if charset.startswith("utf-16") else charset


def _known(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    name = _HEIRS.get(name, name)
    return name if name in _KNOWN else None


def transcoded(payload: bytes, charset: str) -> tuple[bytes, str]:
    """Return *payload* so that markup in it is ASCII, and the character set that it then has."""
    if charset not in _NOT_ASCII_INSIDE:
        return payload, charset
    return payload.decode(charset, "replace").encode(), UTF_8


def decoded(octets: bytes, charset: str) -> str:
    """Return *octets* as text; one that is not of *charset* becomes a lone surrogate, where it can."""
    if octets.isascii():
        return octets.decode("ascii")
    try:
        return octets.decode(charset, "surrogateescape")
    except UnicodeDecodeError:  # stateful character sets can stumble over octets below 0x80
        return octets.decode(charset, "replace")
