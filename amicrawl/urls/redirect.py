"""Where a redirect leads: the Location field against the URL that answered.

The target is a URL as found, like a seed: what can be kept of its spelling is kept. An absolute one is
taken as it stands; a relative one is resolved by RFC 3986, section 5.2, and keeps empty segments, empty
queries and parameters. Whether it can be fetched is asked elsewhere.
"""

from __future__ import annotations

import re

from amicrawl.urls.octets import WHITE_SPACE, text_of
from amicrawl.urls.path import merge

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BASE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)(//[^/?#]*)?([^?#]*)(\?[^#]*)?")
_STRAY_OCTET = re.compile("[\udc80-\udcff]")


def resolve(base: str, location: str | bytes) -> str:
    """Return the URL that *location* means as an answer from *base*, without its fragment.

    An octet that is not UTF-8 comes back percent-encoded, so the result can always be written down.
    """
    text = text_of(location).strip(WHITE_SPACE).partition("#")[0]
    return _STRAY_OCTET.sub(
        lambda match: f"%{ord(match[0]) - 0xDC00:02X}", _resolved(text_of(base), text)
    )


def _resolved(base: str, text: str) -> str:
    page = _BASE.match(base.strip(WHITE_SPACE))
    if page is None or _SCHEME.match(text):
        return text
    scheme, authority, path, query = page[1], page[2] or "", page[3], page[4] or ""
    if text.startswith("//"):
        return scheme + text
    if not text:
        return f"{scheme}{authority}{path}{query}"
    relative, mark, rest = text.partition("?")
    if relative:
        path = _without_dot_segments(merge(path, relative))
    return f"{scheme}{authority}{path}{mark}{rest}"


def _without_dot_segments(path: str) -> str:
    # Not `path.remove_dot_segments`: that one drops an empty segment that RFC 3986 would keep, because
    # the keys of existing frontier files do.
    kept: list[str] = []
    segments = path.removeprefix("/").split("/")
    for segment in segments:
        if segment == "..":
            if kept:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
