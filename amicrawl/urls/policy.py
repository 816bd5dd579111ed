"""Policy: what one site may add to the rules for the canonical form. All of it is off by default."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from amicrawl.urls.octets import octets

TRACKING = frozenset(
    (
        *("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"),
        *("gclid", "fbclid", "msclkid", "mc_eid", "igshid", "yclid", "_ga"),
        *("ref", "ref_src", "ref_url"),
    )
)
"""Query keys that say where a visitor came from, and nothing about the page."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How the URLs of one site are spelled. Keys are matched decoded, and case matters."""

    query_allow: frozenset[str] = frozenset()
    """If not empty, only these query keys stay, and nothing else is dropped."""
    query_deny: frozenset[str] = frozenset()
    """Query keys that are dropped, besides those of `TRACKING`."""
    fold_trailing_slash: bool = False
    fold_index_file: bool = False
    """Drop `index.html` and its like from the end of a path."""
    fold_case: bool = False
    """Lower-case path and query."""
    collapse_slashes: bool = False

    @cached_property
    def allowed(self) -> frozenset[str]:
        """`query_allow` as the query's own octets, one character each."""
        return frozenset(map(_octet_text, self.query_allow))

    @cached_property
    def denied(self) -> frozenset[str]:
        """`TRACKING` and `query_deny` as the query's own octets, one character each."""
        return TRACKING.union(map(_octet_text, self.query_deny))


DEFAULT_POLICY = Policy()


def _octet_text(key: str) -> str:
    return octets(key).decode("latin-1")
