"""SURT (Sort-friendly URI Reordering Transform): the key by which archives sort and look up captures.

    http://www.Example.com/Path/?b=2&a=1   com,example)/path?a=1&b=2

The key is lossy on purpose: scheme, `www`, case, session identifiers and the order of the query go, so
that captures of one page lie side by side. The rules are those that indexers have used for fifteen
years, their oddities included, because a key has to meet the keys of existing indexes; they differ from
the canonical form of `canonical.py` in nearly everything. Nothing here goes to the network, and nothing
raises: a URL whose port is none is its own key, which is what indexers write.

Most URLs have nothing in them that most of the rules are about. Those take a short way (`surt`), which
leads to the same key; every other URL goes through all the rules.

Inside, text holds one octet a character (Latin-1), because the rules speak of octets.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from amicrawl.urls.grammar import octets, text_of

LONGEST_CONVERTED = 1024
"""Octets of a host beyond ASCII that is converted; of a longer one, all is escaped."""

_OUTER = " \t\n\r\v\f"
_LINE_BREAKS = str.maketrans("", "", "\t\n\r")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+\-.]*:")
_REPEATED = re.compile(r"(?:https?://)+(?=https?://)")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNFIT = re.compile(r"[^!-~]|[#%]")
_UNFIT_FOR_INDEX = re.compile(r"[^!-~]")
_SLASHES = re.compile(r"/{2,}")
_WWW = re.compile(r"\Awww[0-9]*\.")
_DIGITS = re.compile(r"[0-9]+")
_NUMERIC = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_OCTAL = re.compile(r"[0-7.]+")
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_PLAIN = re.compile(r"(https?)://([!-\"$&-.0->@-~]{1,255})(/[!-\"$&->@-~]*)?(?:\?([!-\"$&-~]*))?")
"""A URL in printable ASCII without escapes and fragment: scheme, authority, path, query."""


class _Parts(NamedTuple):
    """A URL cut up for its key."""

    scheme: str
    host: str
    port: str
    path: str
    query: str


def surt(url: str | bytes) -> str:
    """Return the SURT of *url*, `tld,domain,sub)/path?query`; a hyphen where there is no URL."""
    match = _PLAIN.fullmatch(url) if isinstance(url, str) else None
    begin = site(match[1], match[2]) if match is not None else ""
    # The short way is for what no rule beyond case and order applies to.
    if match is None or not begin:
        return by_all_rules(url)
    path, query = match[3] or "/", (match[4] or "").lower()
    if "//" in path or "/." in path or ")/" in path or "id=" in query or "aspsessionid" in query:
        return by_all_rules(url)
    if len(path) > 1 and path[-1] == "/":
        path = path[:-1]
    if not query:
        return f"{begin}{path.lower()}"
    return f"{begin}{path.lower()}?{_sorted(query) if '&' in query else query}"


def by_all_rules(url: str | bytes) -> str:
    """Return the SURT of *url* by the long way, which takes nothing for granted."""
    text = text_of(url)
    if not text:
        return "-"
    if text.startswith("filedesc"):
        # The name of a file, as ARC files have it; no index has ever changed it.
        return octets(text).decode("utf-8", "replace")
    if not text.isascii():
        text = octets(text).decode("latin-1")
    parts = _cut(text.strip(_OUTER).translate(_LINE_BREAKS))
    port = _port(parts)
    if port is None:
        return _UNFIT_FOR_INDEX.sub(_escape, text)
    host = _WWW.sub("", _host(parts.host)) if parts.host else ""
    path = _path(parts.path, has_host=bool(host))
    if query := _query(parts.query):
        path = f"{path or '/'}?{query}"
    return f"{','.join(reversed(host.split('.')))}{port}){path}" if host else f"{parts.scheme}:{path}"


@lru_cache(maxsize=16_384)
def site(scheme: str, named: str) -> str:
    """Return what the key of a URL of *scheme* begins with whose authority is *named*.

    Empty where the authority alone does not tell.
    """
    parts = _cut(f"{scheme}://{named}/")
    port = _port(parts)
    host = _WWW.sub("", _host(parts.host)) if parts.path == "/" and port is not None else ""
    return f"{','.join(reversed(host.split('.')))}{port})" if host else ""


def _cut(text: str) -> _Parts:
    if not _SCHEME.match(text):
        text = "http://" + text
    if repeated := _REPEATED.match(text):
        text = text[repeated.end() :]
    scheme, _, rest = text.partition("#")[0].partition(":")
    rest, _, query = rest.partition("?")
    host = port = ""
    if rest.startswith("//"):
        named, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        host, port = _host_and_port(named.rstrip(":").rpartition("@")[2])
    if rest and not host and scheme.startswith("http"):
        # "http:////host/x", "http:host/x": what looks like a path begins with the host, port and all.
        host, _, rest = rest.lstrip("/").partition("/")
        rest = "/" + rest
    return _Parts(scheme, host, port, rest, query)


def _host_and_port(named: str) -> tuple[str, str]:
    _, bracket, literal = named.partition("[")
    if bracket:
        host, _, behind = literal.partition("]")
        return host, behind.partition(":")[2]
    host, _, port = named.partition(":")
    return host, port


def _port(parts: _Parts) -> str | None:
    """Return the port as the key has it: with its colon, or empty; None for what is none."""
    if not parts.port:
        return ""
    significant = parts.port.lstrip("0") or "0"
    if not _DIGITS.fullmatch(significant) or len(significant) > 5 or int(significant) > 65_535:
        return None
    return "" if significant in ("0", _DEFAULT_PORTS.get(parts.scheme.lower())) else ":" + significant


def _host(written: str) -> str:
    host = _decoded(written)
    if not host.isascii() and len(host) <= LONGEST_CONVERTED:
        # IDNA 2003, by the codec of the existing keys; what it refuses is escaped.
        with suppress(UnicodeError):
            host = host.encode("latin-1").decode("utf-8", "ignore").encode("idna").decode("ascii")
    host = host.replace("..", ".").strip(".")
    address = _address(host) if _NUMERIC.fullmatch(host) else None
    return _UNFIT.sub(_escape, address or host).lower()


def _address(host: str) -> str | None:
    """Return *host* as a dotted quad if it is an IPv4 address in a shorter or octal spelling."""
    first, *others = host.split(".")
    if not others:
        # However long, it is an address, of which 32 bits count: those of its last 32 digits.
        return _quad(int(first[-32:]))
    if len(others) > 3 or (first.startswith("0") and not _OCTAL.fullmatch(host)):
        return None
    numbers = [_number(part) for part in (first, *others)]
    *leading, last = [-1 if number is None else number for number in numbers]
    if any(not 0 <= number < 256 for number in leading) or not 0 <= last < 256 ** (4 - len(leading)):
        return None
    return _quad(last + sum(number << 24 - 8 * place for place, number in enumerate(leading)))


def _number(part: str) -> int | None:
    """Read one number as the C library does: octal behind a zero."""
    if not 0 < len(part) <= 12 or (part.startswith("0") and not _OCTAL.fullmatch(part)):
        return None
    return int(part, 8 if part.startswith("0") else 10)


def _quad(number: int) -> str:
    return ".".join([str(number >> shift & 0xFF) for shift in (24, 16, 8, 0)])


def _path(written: str, *, has_host: bool) -> str:
    path = _decoded(written)
    if has_host:
        path = _resolved(path)
    path = without_session_segments(_UNFIT.sub(_escape, path)).lower()
    return path.removesuffix("/") if len(path) > 1 else path


def _resolved(path: str) -> str:
    """Resolve dot segments and runs of slashes; a `..` that has nothing to undo stays."""
    if "/." in path:
        kept: list[str] = []
        for segment in path[1:].split("/"):
            if segment == ".." and kept:
                kept.pop()
            elif segment != ".":
                kept.append(segment)
        path = "/" + "/".join(kept)
    return _SLASHES.sub("/", path) if path else "/"


def _query(written: str) -> str:
    query = without_session_arguments(_UNFIT.sub(_escape, _decoded(written))).lower()
    return _sorted(query) if "&" in query else query


def _sorted(query: str) -> str:
    """Return *query* with its arguments in order; a name alone goes before it with an empty value."""
    pairs = sorted([argument.partition("=") for argument in query.split("&")])
    return "&".join(["".join(pair) for pair in pairs])


def _decoded(text: str) -> str:
    """Decode percent-escapes until none is left; linear, however deep they are nested."""
    if "%" not in text:
        return text
    text = _ESCAPE.sub(_decode, text)
    if not _ESCAPE.search(text):
        return text
    decoded: list[str] = []
    for character in text:
        decoded.append(character)
        # A decoded character can be the end of another escape.
        while len(decoded) > 2 and decoded[-3] == "%" and _ESCAPE.match(escape := "".join(decoded[-3:])):
            decoded[-3:] = [chr(int(escape[1:], 16))]
    return "".join(decoded)


def _decode(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16))


def _escape(octet: re.Match[str]) -> str:
    return f"%{ord(octet[0]):02X}"


_QUERY_PIECES = (
    re.compile(r"(?i)jsessionid=[0-9a-z]{32}\Z"),
    re.compile(r"(?i)phpsessid=[0-9a-z]{32}\Z"),
    re.compile(r"(?i)sid=[0-9a-z]{32}\Z"),
    re.compile(r"(?i)aspsessionid[a-z]{8}=[a-z]{24}\Z"),
)
_PATH_SEGMENTS = (
    re.compile(r"(?i)(?<=/)\((?:[a-z]\([0-9a-z]{24}\))+\)/"),
    re.compile(r"(?i)(?<=/)\([0-9a-z]{24}\)/"),
)
_SUFFIX = ".aspx"
_MOST_CANDIDATES = 16
"""Segments looked at for one pattern; no framework writes a path with more of them."""


def without_session_segments(path: str) -> str:
    """Return *path* without the ASP.NET session segments that stand before an `.aspx` file."""
    if ")/" in path and _SUFFIX in path.lower():
        for pattern in _PATH_SEGMENTS:
            path = _without_segment(path, pattern)
    return path


def _without_segment(path: str, pattern: re.Pattern[str]) -> str:
    lowered = path.lower()
    for match in reversed(list(pattern.finditer(path))[-_MOST_CANDIDATES:]):
        # A question mark here was escaped in the URL; what stands behind it names no file.
        end = path.find("?", match.end())
        if lowered.find(_SUFFIX, match.end() + 1, end if end >= 0 else len(path)) >= 0:
            return path[: match.start()] + path[match.end() :]
    return path


def without_session_arguments(query: str) -> str:
    """Return *query* without the session identifiers of servlet engines, PHP, ASP and ColdFusion.

    An identifier goes with the `&` behind it; what stood before it in the same argument is joined to the
    next one, as existing keys have it.
    """
    lowered = query.lower()
    if "id=" not in lowered and "aspsessionid" not in lowered:
        return query
    arguments = query.split("&")
    for pattern in _QUERY_PIECES:
        for index in range(len(arguments) - 1, -1, -1):
            if match := pattern.search(arguments[index]):
                _join(arguments, index, 1, arguments[index][: match.start()])
                break
    for index in range(len(arguments) - 2, -1, -1):
        start = arguments[index][:-1].lower().rfind("cfid=")
        if start >= 0 and re.match(r"(?i)cftoken=.", arguments[index + 1]):
            _join(arguments, index, 2, arguments[index][:start])
            break
    return "&".join(arguments)


def _join(arguments: list[str], index: int, gone: int, before: str) -> None:
    """Replace *gone* arguments from *index* on, and the one behind them, by *before* and that one."""
    behind = arguments[index + gone] if index + gone < len(arguments) else ""
    arguments[index : index + gone + 1] = [before + behind]
