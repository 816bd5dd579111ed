"""What is found in a page: links, requisites, and the text that named them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """Why a page names another URL."""

    LINK = "link"
    """A reader can go there."""
    REQUISITE = "requisite"
    """The page is not shown whole without it: an image, a style sheet, a script, a frame."""


class Link(NamedTuple):
    """A URL that a page names."""

    url: str
    """Resolved, without its fragment; begins with `http:` or `https:` and is otherwise as found."""
    kind: Kind
    where: str
    """What named it, from a fixed vocabulary: `a href`, `link rel=icon`, `css url`, `Link field`."""


Found = tuple[str, Kind, str]
"""What a reader of one format hands on: a reference as written, escapes undone; why; what named it."""


_REQUISITE_RELATIONS = (
    *("stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon"),
    *("preload", "modulepreload", "prefetch", "manifest"),
)
_LINK_RELATIONS = ("canonical", "alternate", "next", "prev")
# The first two open a connection and request nothing; the others name interfaces for programs.
_IDLE_RELATIONS = frozenset(
    {"dns-prefetch", "preconnect", "pingback", "profile", "edituri", "wlwmanifest"}
)


def kind_of_relation(relations: str) -> tuple[Kind, str] | None:
    """Return what a link with *relations* (RFC 8288: words, in any case) is, and the word that says so.

    None stands for one that nothing is fetched for. A relation that is not known is a link.
    """
    words = frozenset(relations.lower().split(None, 64))
    for relation in _REQUISITE_RELATIONS:
        if relation in words:
            return Kind.REQUISITE, f" rel={relation}"
    if words & _IDLE_RELATIONS:
        return None
    for relation in _LINK_RELATIONS:
        if relation in words:
            return Kind.LINK, f" rel={relation}"
    return Kind.LINK, ""
