"""Cookies of a cookies.txt file, and which of them a request carries. Pure.

    #HttpOnly_example.org <TAB> TRUE <TAB> / <TAB> TRUE <TAB> 1893456000 <TAB> sid <TAB> value
    host                        and below    path     https      expires (Unix; 0: never)

The file is Netscape's, as browsers' add-ons, curl and wget write it; what a request carries is decided
by RFC 6265, 5.4. Left out: cookies that servers set. The crawl sends what it was given, all the way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from amicrawl.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HTTP_ONLY = "#HttpOnly_"
_FIELD = re.compile(r"[!-:<-~](?:[ -:<-~]*[!-:<-~])?|")
"""What can stand in the Cookie field without becoming another cookie or another field."""


@dataclass(frozen=True, slots=True)
class Cookie:
    """One cookie and where it belongs."""

    host: str
    """Lower case, without a dot in front."""
    and_below: bool
    """Whether hosts below `host` get it too."""
    path: str
    secure: bool
    """Whether it goes over https alone."""
    expires: int
    """Unix time; 0: never."""
    name: str
    value: str

    def __repr__(self) -> str:
        return f"Cookie({self.host!r}, {self.path!r}, {self.name!r})"


def read_cookies(content: str, *, name: str) -> tuple[Cookie, ...]:
    """Return the cookies in *content*, the text of a cookies.txt.

    Raises InputError for a line that holds none, with *name* and its number and without its text.
    """
    cookies = []
    for number, line in enumerate(content.splitlines(), start=1):
        entry = line.removeprefix(_HTTP_ONLY)
        if not entry.strip() or entry.startswith("#"):
            continue
        cookie = _cookie(entry.split("\t"))
        if cookie is None:
            raise InputError(
                f"{name}, line {number}: no cookie. A cookies.txt has seven fields a line, with tabs "
                "between them; export it again."
            )
        cookies.append(cookie)
    return tuple(cookies)


def _cookie(parts: Sequence[str]) -> Cookie | None:
    # A cookie without a value is written without the tab in front of it by some.
    if len(parts) not in (6, 7):
        return None
    host, below, path, secure, expires, name = parts[:6]
    value = parts[6] if len(parts) == 7 else ""
    whole = expires.partition(".")[0]
    if not (whole.isascii() and whole.isdigit()) or not path.startswith("/"):
        return None
    if {below.upper(), secure.upper()} - {"TRUE", "FALSE"} or not host.strip(".") or "=" in name:
        return None
    if not _FIELD.fullmatch(name) or not _FIELD.fullmatch(value):
        return None
    return Cookie(
        host=host.lower().lstrip("."),
        and_below=below.upper() == "TRUE",
        path=path,
        secure=secure.upper() == "TRUE",
        expires=int(whole),
        name=name,
        value=value,
    )


def cookie_field(cookies: Iterable[Cookie], url: str, *, now: float) -> str:
    """Return the value of the `Cookie` field of a request for *url* at *now* (Unix); empty for none.

    *url* is one that can be asked for. Cookies with longer paths come first (RFC 6265, 5.4).
    """
    parts = urlsplit(url)
    host, path = (parts.hostname or "").removesuffix("."), parts.path or "/"
    fitting = [
        cookie
        for cookie in cookies
        if _covers_host(cookie, host)
        and _covers_path(cookie.path, path)
        and (parts.scheme == "https" or not cookie.secure)
        and (not cookie.expires or cookie.expires > now)
    ]
    fitting.sort(key=lambda cookie: -len(cookie.path))
    return "; ".join(
        f"{cookie.name}={cookie.value}" if cookie.name else cookie.value for cookie in fitting
    )


def _covers_host(cookie: Cookie, host: str) -> bool:
    if host == cookie.host:
        return True
    # An address has nothing below it, though its text may end like one (5.1.3).
    is_address = host.replace(".", "").isdigit() or ":" in host
    return cookie.and_below and host.endswith(f".{cookie.host}") and not is_address


def _covers_path(cookie_path: str, path: str) -> bool:
    if path == cookie_path:
        return True
    return path.startswith(cookie_path) and (cookie_path.endswith("/") or path[len(cookie_path)] == "/")
