"""Shape: URLs that only a loop can have generated, recognised from the URL alone. Pure.

    http://example.org/a/b/a/b/a/b/a/b     a relative link that leads ever deeper
    http://example.org/login?back=%252525  an address that wraps itself

Unlike the traps of calendars and shops, of which a host has to show several, one such URL is enough.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum


class Shape(StrEnum):
    """What is wrong with a URL, worded to follow "trap: "."""

    TOO_LONG = "it is longer than a URL that a person made"
    TOO_DEEP = "its path has too many segments"
    REPEATED_RUN = "its path repeats itself"
    REPEATED_SEGMENT = "one segment occurs too often in its path"
    TOO_MANY_ARGUMENTS = "its query has too many arguments"
    REPEATED_ARGUMENT = "one argument occurs too often in its query"
    NESTED_ESCAPES = "its escapes are escaped again and again"
    NEEDLESS_ESCAPES = "its path escapes what needs no escape"
    NESTED_URLS = "it carries addresses inside addresses"


@dataclass(frozen=True, slots=True)
class ShapeLimits:
    """What a URL may have; 0 switches a limit off."""

    characters: int = 2048
    segments: int = 20
    run_repeats: int = 3
    """Times that a run of segments may stand in a row; a run of numerals may four times as often."""
    longest_run: int = 4
    """Segments of a run that is looked for."""
    segment_repeats: int = 3
    """Times that one segment may occur anywhere; of numerals, any number of times."""
    arguments: int = 24
    argument_repeats: int = 5
    """Times that one argument of a query may occur."""
    nested_escapes: int = 3
    """Times that a percent sign may have been escaped on top of itself."""
    nested_in_path: int = 6
    """Percent signs that may have been escaped in a path, each as often as it was."""
    needless_escapes: int = 6
    """Letters, digits, hyphens, periods, underlines and tildes (RFC 3986, 2.3) of a path that may be
    escaped."""
    nested_urls: int = 3
    """Addresses that may follow the first within the URL, archived pages having one or two."""


DEFAULTS = ShapeLimits()

_NESTED_ESCAPE = re.compile(r"%((?:25)++)")
_NEEDLESS_ESCAPE = re.compile(r"(?i)%(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e)")
_ADDRESS = re.compile(r"(?i)https?(?::|%(?:25)*+3a)(?:/|%(?:25)*+2f)")


def verdict(url: str, *, limits: ShapeLimits = DEFAULTS) -> str | None:
    """Return what is wrong with the shape of *url*, a member of `Shape`, or None if nothing is."""
    if limits.characters and len(url) > limits.characters:
        return Shape.TOO_LONG
    start = url.find("/", url.find("://") + 3)
    path, _, query = (url[start:] if start >= 0 else "").partition("#")[0].partition("?")
    wrong = _of_path(path, limits)
    if wrong is None and query:
        wrong = _of_query(query, limits)
    # Another address in it has a colon, or an escaped one.
    if wrong is None and ("%" in url or url.count(":") > 1):
        wrong = _of_nesting(url, path, limits)
    return wrong


def _of_path(path: str, limits: ShapeLimits) -> Shape | None:
    segments = [segment for segment in path.split("/") if segment]
    if limits.segments and len(segments) > limits.segments:
        return Shape.TOO_DEEP
    if len(segments) <= min(limits.run_repeats, limits.segment_repeats):
        return None
    if limits.run_repeats and _has_run(segments, limits):
        return Shape.REPEATED_RUN
    worded = Counter(segment for segment in segments if not segment.isdigit())
    if limits.segment_repeats and worded and max(worded.values()) > limits.segment_repeats:
        return Shape.REPEATED_SEGMENT
    return None


def _has_run(segments: list[str], limits: ShapeLimits) -> bool:
    """Return whether a run of segments follows upon itself too often; linear in the segments."""
    for length in range(1, limits.longest_run + 1):
        equal = 0
        for place in range(length, len(segments)):
            # As many segments as equal the one *length* before them, so many are part of a repetition.
            equal = equal + 1 if segments[place] == segments[place - length] else 0
            allowed = limits.run_repeats
            if equal >= length * allowed:
                run = segments[place - length + 1 : place + 1]
                if not all(map(str.isdigit, run)) or equal >= length * allowed * 4:
                    return True
    return False


def _of_query(query: str, limits: ShapeLimits) -> Shape | None:
    arguments = query.split("&")
    if limits.arguments and len(arguments) > limits.arguments:
        return Shape.TOO_MANY_ARGUMENTS
    if limits.argument_repeats and len(arguments) > limits.argument_repeats:
        names = Counter(argument.partition("=")[0] for argument in arguments)
        if max(names.values()) > limits.argument_repeats:
            return Shape.REPEATED_ARGUMENT
    return None


def _of_nesting(url: str, path: str, limits: ShapeLimits) -> Shape | None:
    if limits.nested_escapes and "%25" in url:
        deepest = max(len(match[1]) // 2 for match in _NESTED_ESCAPE.finditer(url))
        if deepest > limits.nested_escapes:
            return Shape.NESTED_ESCAPES
    if "%" in path:
        # An address in a query may have been escaped twice in good faith, colons, slashes and all.
        nested = sum(len(match[1]) // 2 for match in _NESTED_ESCAPE.finditer(path))
        if 0 < limits.nested_in_path < nested:
            return Shape.NESTED_ESCAPES
        if 0 < limits.needless_escapes < len(_NEEDLESS_ESCAPE.findall(path)):
            return Shape.NEEDLESS_ESCAPES
    if limits.nested_urls and len(_ADDRESS.findall(url)) - 1 > limits.nested_urls:
        return Shape.NESTED_URLS
    return None
