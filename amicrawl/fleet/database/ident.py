"""Idents: the name of a job, made of its URL exactly as ArchiveBot makes it. Pure.

An ident is the UUID (version 5) of the normalised URL, in base 36. ArchiveBot makes it again from the
URL whenever it looks at a job, so one that was made of a URL spelled differently cannot be found. The
normal form is that of the library Addressable 2.3.5 and of nothing else: `amicrawl.urls` has other ideas
of when two URLs are one, and a crawl fetches by those.
"""

from __future__ import annotations

import re
import unicodedata
import uuid
from string import ascii_letters, digits
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

import idna

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

NAMESPACE = uuid.UUID("82244de1-c354-4c89-bf2b-f153ce23af43")
SCHEMES = ("http", "https", "ftp")
LONGEST_URL = 8192
"""Characters of a URL that a job may have."""

# The version number alone keeps the first digits of a UUID from all being zero: at least 16 remain. So
# no key of ArchiveBot's can be mistaken for an ident.
_IDENT = re.compile(r"[a-z0-9]{16,25}")
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_HOST = re.compile(r"[a-z0-9._~-]+|\[[0-9a-f:.]+\]")
_ENCODED_PLUS = re.compile(r"%2[Bb]")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}

_DIGITS = digits + "abcdefghijklmnopqrstuvwxyz"
_UNRESERVED = frozenset((ascii_letters + digits + "-._~").encode())
_PCHAR = _UNRESERVED | frozenset(b"!$&'()*+,;=:@")
_QUERY = (_PCHAR | frozenset(b"/?")) - frozenset(b"&;")
_FRAGMENT = _PCHAR | frozenset(b"/?")
_RESERVED_TOO = _PCHAR | frozenset(b"/?#[]")
_TRIED = 8


def is_ident(text: str) -> bool:
    """Tell whether *text* can be the ident of a job, and so be made part of a key."""
    return _IDENT.fullmatch(text) is not None


def checked_ident(text: str) -> str:
    """Return *text*, which a user gave as an ident; raises UsageError where it cannot be one."""
    if not is_ident(text):
        shown = text if len(text) <= 40 else text[:39] + "…"
        raise UsageError(
            f"{shown!r} is not a job: give its URL, or its ident of 16 to 25 lower-case letters and "
            "digits, as `amicrawl job ls` lists it."
        )
    return text


def ident_of(normal: str) -> str:
    """Return the ident of the job for *normal*, a URL as `normalised` returns it."""
    number = uuid.uuid5(NAMESPACE, normal).int
    ident = ""
    while number:
        number, digit = divmod(number, 36)
        ident = _DIGITS[digit] + ident
    return ident


def normalised(url: str) -> str:
    """Return *url* as ArchiveBot spells it. Normalising that again changes nothing.

    Raises UsageError for anything but an http, https or ftp URL.
    """
    text = url.strip()
    if len(text) > LONGEST_URL:
        raise UsageError(f"The URL has {len(text)} characters; a job may have {LONGEST_URL}.")
    if _UNPRINTABLE.search(text):
        raise UsageError(f"{text!r} holds characters that no URL has. Check where it came from.")
    for _ in range(_TRIED):
        spelled = _normalised_once(text)
        if spelled == text:
            return text
        text = spelled
    raise UsageError(f"{url!r} changes each time it is normalised, so it can have no ident.")


def slug_of(normal: str, *, depth: str, is_list: bool = False) -> str:
    """Return what the files of a job are called after; *depth* is `inf` or `shallow`."""
    parts = _parts(normal)
    host = _netloc(parts)[1]
    if not is_list:
        return f"{_file_name(host)}-{depth}"
    last = parts.path.rpartition("/")[2]
    return f"urls-{_file_name(host)}-{_file_name(last)}-{depth}"


def base_name(slug: str, when: datetime, ident: str) -> str:
    """Return what the names of a job's files begin with; *when* it started, in UTC."""
    return f"{slug}-{when:%Y%m%d-%H%M%S}-{ident[:5]}"


class _UrlParts(NamedTuple):
    scheme: str
    authority: str
    path: str
    query: str | None
    fragment: str | None


def _parts(text: str) -> _UrlParts:
    match = _PARTS.fullmatch(text)
    if match is None or match[1].lower() not in SCHEMES:
        raise UsageError(
            f"{text!r} cannot be the URL of a job, which begins with http://, https:// or ftp://."
        )
    return _UrlParts(match[1].lower(), *match.groups()[1:])


def _normalised_once(text: str) -> str:
    parts = _parts(text)
    path = "/".join(_component(segment, _PCHAR) for segment in parts.path.strip().split("/"))
    normal = f"{parts.scheme}://{''.join(_netloc(parts))}{_without_dots(path) or '/'}"
    if parts.query is not None:
        normal += "?" + "&".join(_query_piece(piece) for piece in parts.query.split("&"))
    if parts.fragment is not None:
        normal += "#" + _component(parts.fragment.strip(), _FRAGMENT)
    return normal


def _netloc(parts: _UrlParts) -> tuple[str, str, str]:
    """Return user info with its `@`, host, and port with its colon; each may be empty but the host."""
    user_info, at, rest = parts.authority.rpartition("@")
    host, port = rest, ""
    if not rest.endswith("]") and ":" in rest:
        host, _, port = rest.rpartition(":")
    if port and not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise UsageError(f"{port!r} in {parts.authority!r} is not a port.")
    is_written = bool(port) and int(port) != _DEFAULT_PORTS[parts.scheme]
    user, colon, password = user_info.partition(":")
    secret = _component(user.strip(), _UNRESERVED) + colon + _component(password.strip(), _UNRESERVED)
    return (
        secret + "@" if at and secret.strip(":") else "",
        _host(host),
        f":{int(port)}" if is_written else "",
    )


def _host(written: str) -> str:
    host = unquote_to_bytes(written.strip().lower()).decode("utf-8", "replace").lower()
    if not host.isascii():
        host = ".".join(_label(label) for label in re.split("[.。．｡]", host))
    if host.endswith(".") and not host.endswith(".."):
        host = host[:-1]
    if _HOST.fullmatch(host) is None:
        raise UsageError(f"{written!r} is not a host. Check the URL.")
    return host


def _label(label: str) -> str:
    """Return one label of a host name in ASCII; leniently, as names are that are really requested."""
    try:
        return idna.encode(label, uts46=True).decode() if label else ""
    except idna.IDNAError:
        plain = unicodedata.normalize("NFKC", label).lower()
        return plain if plain.isascii() else "xn--" + plain.encode("punycode").decode()


def _query_piece(piece: str) -> str:
    """Normalise what stands between two `&`, where an encoded plus and a plain one differ."""
    # Addressable takes the three characters `%2B` for that also where they are what is left of `%252B`.
    decoded = b"%2B".join(unquote_to_bytes(part) for part in _ENCODED_PLUS.split(piece))
    kept = re.split(rb"%2[Bb]", decoded)
    allowed = _QUERY if _is_utf8(decoded) else _RESERVED_TOO
    return "%2B".join(_encoded(_composed(part), allowed) for part in kept)


def _component(text: str, allowed: frozenset[int]) -> str:
    decoded = unquote_to_bytes(text)
    # What is not UTF-8 is encoded by Addressable as if it were a whole URL.
    return _encoded(_composed(decoded), allowed if _is_utf8(decoded) else _RESERVED_TOO)


def _is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


def _composed(octets: bytes) -> bytes:
    return unicodedata.normalize("NFKC", octets.decode()).encode() if _is_utf8(octets) else octets


def _encoded(octets: bytes, allowed: frozenset[int]) -> str:
    return "".join(chr(octet) if octet in allowed else f"%{octet:02X}" for octet in octets)


def _without_dots(path: str) -> str:
    """Return *path* without the segments `.` and `..` and what the latter take back."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for place, segment in enumerate(segments):
        if segment not in {".", ".."}:
            kept.append(segment)
            continue
        if segment == ".." and kept:
            kept.pop()
        if place == len(segments) - 1:
            kept.append("")
    return "".join("/" + segment for segment in kept)


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._%~-]+", "-", text)[:100]
