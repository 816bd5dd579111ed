"""Markup from values: all text is escaped on the way, so nothing of an index is ever obeyed. Pure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST = 300


class Markup(str):
    """Text that is markup already. Made by this module only."""

    __slots__ = ()


def element(
    name: str, attributes: dict[str, object] | None = None, *children: str | Iterable[str]
) -> Markup:
    """Return the element *name*; children that are not `Markup` are escaped.

    An attribute of None is left out, one of True stands without value.
    """
    written = "".join(_attribute(key, value) for key, value in (attributes or {}).items())
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: str | Iterable[str]) -> Markup:
    """Return *children* one after the other."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(shown(child)))
        else:
            parts.append(joined(*child))
    return Markup("".join(parts))


def shown(text: str) -> str:
    """Return *text* with whatever does not print made visible, cut where it is very long.

    A bidirectional override would turn the letters around it, and half a surrogate is not UTF-8.
    """
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(shown_whole(str(value)))}"'


def shown_whole(text: str) -> str:
    """Return *text*, however long, with whatever does not print made visible."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
