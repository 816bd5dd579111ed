"""The path of a URL: escaping, dot segments, and the spellings that mean the same.

The order matters and is part of the rules: a path is escaped, then freed of dot segments, then its
escapes are normalised. What an escape hid is not looked at again, so `/a/%2e%2e/b` ends as `/a/../b`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes, unquote_to_bytes

from amicrawl.urls.octets import octets

if TYPE_CHECKING:
    from amicrawl.urls.policy import Policy

_TOLERATED = re.compile(r"[A-Za-z0-9\-._~$&+,/:;=@!'()*\[\]%]*")
_SAFE = "$&+,/:;=@"
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_SLASHES = re.compile(r"/{2,}")
_INDEX_FILES = ("index.html", "index.htm", "index.php", "default.asp", "default.aspx")

_NORMAL_ESCAPES = {
    f"%{octet:02X}": chr(octet) if re.match(r"[A-Za-z0-9\-._~]", chr(octet)) else f"%{octet:02X}"
    for octet in range(256)
}


def escaped_path(path: str) -> str:
    """Return *path*, whose escapes are well-formed, with everything escaped that must be.

    One character that must be escaped makes the whole path be decoded and escaped anew, so `!` stays in
    `/a!b` but not in `/a b!`.
    """
    if _TOLERATED.fullmatch(path):
        return path
    return quote_from_bytes(unquote_to_bytes(octets(path)), _SAFE)


def merge(base: str, path: str) -> str:
    """Return the path that *path* means on a page at *base* (RFC 3986, section 5.2.3)."""
    if not path:
        return base
    if path.startswith("/"):
        return path
    return base[: base.rfind("/") + 1] + path


def remove_dot_segments(path: str) -> str:
    """Return *path* without `.` and `..` segments (RFC 3986, section 5.2.4), beginning with a slash.

    Empty segments stay. An empty path stays empty.
    """
    if not path or (path.startswith("/") and "/." not in path):
        return path
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == ".":
            # A slash follows it, so that a segment kept after it is not the first.
            kept = kept or [""]
        elif segment == "..":
            if kept:
                kept.pop()
        else:
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    plain = "/".join(kept)
    return plain if plain.startswith("/") else "/" + plain


def normalised(path: str, policy: Policy) -> str:
    """Return the escaped *path* in its one spelling, folded as *policy* says."""
    path = path or "/"
    if "%" in path:
        path = _ESCAPE.sub(lambda match: _NORMAL_ESCAPES[match[0].upper()], path)
    if policy.collapse_slashes:
        path = _SLASHES.sub("/", path)
    if policy.fold_index_file:
        directory, slash, name = path.rpartition("/")
        if name in _INDEX_FILES:
            path = directory + slash
    if policy.fold_trailing_slash and len(path) > 1:
        path = path.removesuffix("/")
    return path.lower() if policy.fold_case else path
