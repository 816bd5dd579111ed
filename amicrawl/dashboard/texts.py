"""Texts from the web and from Redis, made fit to be sent as UTF-8 and to be linked to. Pure.

Nothing is escaped here: templates and the browser's DOM do that. What goes is what no page can carry
(half surrogates), and what shows a text in another order than it is in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST = 8192
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def plain(text: str, *, limit: int = LONGEST) -> str:
    r"""Return *text*, cut to *limit*, with controls and marks that turn around shown as `\x1b`."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isascii() and cut.isprintable():
        return cut
    return _ODD.sub(_shown, cut)


def link(url: str) -> str | None:
    """Return *url* where a click may follow it: http or https, with a host; else None."""
    if (
        len(url) > LONGEST
        or not url.isprintable()
        or not url.casefold().startswith(("http://", "https://"))
    ):
        return None
    try:
        return url if urlsplit(url).hostname else None
    except ValueError:
        return None


def whole(value: Any) -> int | None:
    """Return *value* if it is a whole number of sane size, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        return None
    return int(value)


def fraction(value: Any) -> float | None:
    """Return *value* if it is a number of sane size, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**53:
        return None
    return float(value)


def text_of(said: Mapping[str, Any], name: str, *, limit: int = LONGEST) -> str:
    """Return the text *name* of *said*, empty where it is none."""
    value = said.get(name)
    return plain(value, limit=limit) if isinstance(value, str) else ""


def _shown(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")
