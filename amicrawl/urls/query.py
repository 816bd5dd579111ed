"""The query of a URL: pairs, freed of tracking, sorted, in one spelling.

A decoded key or value is held as text with one character for an octet (Latin-1), because what it holds
need not be UTF-8; comparing such texts compares the octets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, unquote_to_bytes

from amicrawl.urls.octets import octets

if TYPE_CHECKING:
    from amicrawl.urls.policy import Policy

MOST_PIECES = 10_000
"""A query of more pieces than this is dropped whole: sorting it would be an attacker's pleasure."""

_MALFORMED_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
# Text that is its own decoded form and its own escaped form, as nearly all of the web's keys are.
_PLAIN = re.compile(r"[A-Za-z0-9\-._~]*")


def normalised(query: str, policy: Policy) -> str:
    """Return *query* in its one spelling, without the question mark; empty where nothing is left."""
    if not query or query.count("&") >= MOST_PIECES:
        return ""
    pairs = []
    allowed, denied = policy.allowed, policy.denied
    for piece in query.split("&"):
        # A semicolon once separated pairs; whether this one does is unknown.
        if not piece or ";" in piece:
            continue
        pair = _pair(piece)
        if pair is not None and (pair[0] in allowed if allowed else pair[0] not in denied):
            pairs.append(pair)
    if len(pairs) > 1:
        pairs.sort()
    spelled = "&".join(
        [f"{_escaped(key)}={_escaped(value)}" if value else _escaped(key) for key, value in pairs]
    )
    return spelled.lower() if policy.fold_case else spelled


def _pair(piece: str) -> tuple[str, str] | None:
    """Decode one piece; None where an escape in it is malformed."""
    key, _, value = piece.partition("=")
    if _PLAIN.fullmatch(key) and _PLAIN.fullmatch(value):
        return key, value
    if _MALFORMED_ESCAPE.search(piece):
        return None
    return _decoded(key), _decoded(value)


def _decoded(text: str) -> str:
    return unquote_to_bytes(octets(text.replace("+", " "))).decode("latin-1")


def _escaped(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else quote_plus(text, encoding="latin-1")
