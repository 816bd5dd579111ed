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
_ROOTED = re.compile(r"/(?![/.])(?:[!\"$-.0->@-~]|/(?!\.))*+(?:\?[!\"$-~]*+)?\Z")
"""An absolute path without dot segments, in printable ASCII, with or without a query."""
_STRAY_OCTET = re.compile("[\udc80-\udcff]")


def resolve(base: str, location: str | bytes) -> str:
    """Return the URL that *location* means as an answer from *base*, without its fragment.

    An octet that is not UTF-8 comes back percent-encoded, so the result can always be written down.
    """
    return Base(base).resolve(location)


class Base:
    """A URL, parsed once, for all references that are resolved against it."""

    __slots__ = ("_authority", "_origin", "_path", "_query", "_scheme")

    def __init__(self, url: str) -> None:
        page = _BASE.match(text_of(url).strip(WHITE_SPACE))
        self._scheme, self._authority, self._path, self._query = page.groups("") if page else [""] * 4
        self._origin = _written(self._scheme + self._authority)

    def resolve(self, location: str | bytes) -> str:
        """Return the URL that *location* means here, as `resolve` does."""
        if isinstance(location, str) and self._origin and _ROOTED.match(location):
            # Most references: a path that needs nothing but the origin before it.
            return self._origin + location
        text = text_of(location).strip(WHITE_SPACE).partition("#")[0]
        return _written(self._resolved(text))

    def _resolved(self, text: str) -> str:
        if not self._scheme or _SCHEME.match(text):
            return text
        if text.startswith("//"):
            return self._scheme + text
        origin = self._scheme + self._authority
        if not text:
            return f"{origin}{self._path}{self._query}"
        relative, mark, rest = text.partition("?")
        path = _without_dot_segments(merge(self._path, relative)) if relative else self._path
        return f"{origin}{path}{mark}{rest}"


def _written(url: str) -> str:
    """Return *url* with octets that are not UTF-8 percent-encoded."""
    if url.isascii():
        return url
    return _STRAY_OCTET.sub(lambda match: f"%{ord(match[0]) - 0xDC00:02X}", url)


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
