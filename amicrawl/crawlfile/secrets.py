"""Secrets by reference: a crawl file and the settings say where one is kept, never what it is.

    env:NAME     the environment variable NAME
    file:PATH    what the file holds, without the line end behind it

Left out: what the secret is for. Nothing here keeps, logs or repeats a secret, in errors neither.

Cookies are in a cookies.txt file, as browsers' add-ons, curl and wget write it (Netscape's format):

    #HttpOnly_example.org <TAB> TRUE <TAB> / <TAB> TRUE <TAB> 1893456000 <TAB> sid <TAB> value
    host                        and below    path     https      expires (Unix; 0: never)

Which of them a request carries is decided by RFC 6265, 5.4. Left out: cookies that servers set.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


ENV = "env:"
FILE = "file:"
SIZE_LIMIT = 16 * 1024**2
"""Bytes of the largest file that is read; a cookies.txt of a browser has some thousand lines."""
_OTHERS = stat.S_IROTH | stat.S_IWOTH


def is_reference(written: str) -> bool:
    """Return whether *written* says where a secret is, and not what it is."""
    return written.startswith((ENV, FILE)) and bool(written.partition(":")[2].strip())


def resolve(reference: str, base: Path, *, of: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the secret that *reference* points at; a relative path starts from *base*.

    *of*: which setting it is, for the errors. *environment* replaces that of the process. Raises
    InputError where there is no such variable or file, or where others on this machine may read the
    file; UsageError where *reference* is none.
    """
    if not is_reference(reference):
        # What was written instead may be the secret itself, so it is not repeated.
        raise UsageError(f'{of} is a secret, given by reference: write "env:NAME" or "file:PATH".')
    if reference.startswith(ENV):
        name = reference.removeprefix(ENV)
        found = (os.environ if environment is None else environment).get(name)
        if found is None:
            raise InputError(
                f"{of}: the environment variable {name} is not set. Set it and start again."
            )
        return found
    path = base / reference.removeprefix(FILE)
    if complaint := exposure(path):
        raise InputError(f"{of}: {complaint}")
    try:
        return _content(path)
    except InputError as error:
        raise InputError(f"{of}: {error}") from error


def exposure(path: Path) -> str:
    """Return what is wrong with who may read or change *path*; empty where nothing is."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return ""
    if mode & _OTHERS:
        return f"{path} holds a secret, and others may read or change it. Run: chmod o-rw {path}"
    return ""


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
        if len(content) > SIZE_LIMIT:
            raise InputError(f"{path} is larger than {SIZE_LIMIT} bytes. Check the path.")
        return content.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check the path.") from error
    except UnicodeDecodeError:
        # The cause would show the bytes.
        raise InputError(f"{path} is not UTF-8 text. Check the path.") from None


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
    whole = expires.partition(".")[0] or "0"  # empty: as Python writes a cookie of a session
    if not (whole.isascii() and whole.isdigit() and len(whole) < 19) or not path.startswith("/"):
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

    *url* is one that can be requested. Cookies with longer paths come first (RFC 6265, 5.4).
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
