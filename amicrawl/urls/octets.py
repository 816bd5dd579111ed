"""URLs as text and as octets.

URLs arrive as bytes that claim to be UTF-8. As text, an octet that is not part of valid UTF-8 is kept
as the lone surrogate that Python's `surrogateescape` makes of it (U+DC80 to U+DCFF), so nothing is
lost. Any other lone surrogate stands for no octet at all and counts as U+FFFD, as it does in browsers.
"""

from __future__ import annotations

import re

WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""The characters with the Unicode property White_Space: what is trimmed from both ends of a URL."""

_STRAY_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def octets(text: str) -> bytes:
    """Return the octets that *text* stands for; never fails."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _STRAY_SURROGATE.sub("\ufffd", text).encode("utf-8", "surrogateescape")


def text_of(url: str | bytes) -> str:
    """Return *url* as text in which every lone surrogate stands for one octet that is not UTF-8."""
    if isinstance(url, str):
        if url.isascii():
            return url
        url = octets(url)
    return url.decode("utf-8", "surrogateescape")
