"""Session identifiers in URLs: the fixed patterns of old web frameworks that `surt.py` takes out.

Each pattern is taken out once, at its last place. The work is linear in the length of the URL.
"""

from __future__ import annotations

import re

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
