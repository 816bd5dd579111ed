"""What a page's head says and where its elements point, as WAT holds it. Pure.

    {"Head": {"Title", "Base", "Metas": [...], "Link": [...], "Scripts": [...]}, "Links": [...]}

A link is an object with `path`, the element and attribute (`A@/href`), `url` as written, and what else
the element says of it. URLs are not resolved. Unlike `amicrawl.discovery`, which looks for what a crawl
can fetch, this keeps what pages say: also `mailto:`, repeated and broken addresses. What is beyond the
limits is counted under `Left-Out`, a key of ours.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from amicrawl.archive.index.derivatives.page import attributes_of
from amicrawl.discovery import css, in_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amicrawl.archive.index.derivatives.page import Piece


MOST_ENTRIES = 20_000
"""Links, metas and scripts that are taken from one page."""
MOST_CHARACTERS = 4 << 20
"""Characters that these may have together."""
LONGEST_TEXT = 128
"""Characters of a title, an anchor text, or what precedes the data of a `data:` URL."""
LONGEST_SCRIPT = 4096
"""Characters of the script in one attribute that are looked at."""
LONGEST_STYLE = 100_000
"""Characters of one style sheet that are looked at."""

_METAS = ("name", "rel", "content", "http-equiv", "property")
_ELEMENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a": (("href",), ("target", "alt", "title", "rel", "hreflang", "type")),
    "applet": (("codebase", "archive"), ()),
    "area": (("href",), ("rel",)),
    "audio": (("src",), ()),
    "blockquote": (("cite",), ()),
    "button": (("formaction",), ()),
    "del": (("cite",), ()),
    "div": (("onclick",), ()),
    "embed": (("src",), ()),
    "form": (("action",), ("target", "method")),
    "frame": (("src",), ()),
    "iframe": (("src",), ()),
    "img": (("src", "longdesc"), ("alt", "title")),
    "input": (("src", "formaction", "onclick"), ()),
    "ins": (("cite",), ()),
    "menuitem": (("icon",), ()),
    "object": (("codebase", "cdata", "data"), ()),
    "q": (("cite",), ()),
    "source": (("src",), ()),
    "track": (("src",), ()),
    "video": (("src", "poster"), ()),
}
"""Attributes that point somewhere, and those that say something about the first of them."""
_OF_ANY = ("background", "data-href", "data-uri")
_ANY = frozenset(_OF_ANY)
# Each begins with its first letter, which is what makes a search quick.
_POINTS = re.compile(r"[oObBdD](?i:nclick|ackground|ata-href|ata-uri)")
"""What those elements have to have that are many and seldom point somewhere, as `div`."""
_ONCLICK = re.compile(
    r"""(?:\blocation(?:\.href)?\s*+=|\bwindow\.open\s*+\(|\blocation\.(?:assign|replace)\s*+\()"""
    r"""\s*+(?:'([^'\n]++)'|"([^"\n]++)")"""
)


def html_metadata(pieces: Iterable[Piece]) -> dict[str, Any]:
    """Return what the page of *pieces* says in its head, and its links in their order."""
    reader = _PageReader()
    # Of some thousand tags a page, most are not relevant; those are skipped here.
    for text, end, _, name, written, raw in pieces:
        if text and reader.anchor is not None:
            reader.anchor_text.append(text)
        if name is not None:
            element = name.lower()
            if element in _READ or (written and _may_point(written)):
                reader.start(element, written or "")
            if raw is not None:
                reader.raw(element, raw)
        elif end is not None and end in _ENDS:
            reader.end(end.lower())
    return reader.metadata()


def _may_point(written: str) -> bool:
    # The tags of a page have a few dozen ways to be written. A long one would fill the memory.
    return _points(written) if len(written) < 256 else _POINTS.search(written) is not None


@lru_cache(maxsize=1024)
def _points(written: str) -> bool:
    return _POINTS.search(written) is not None


class _PageReader:
    """Walks through one page."""

    def __init__(self) -> None:
        self.anchor: dict[str, str] | None = None
        self.anchor_text: list[str] = []
        self._title: str | None = None
        self._base = ""
        self._metas: list[dict[str, str]] = []
        self._of_head: list[dict[str, str]] = []
        self._scripts: list[dict[str, str]] = []
        self._links: list[dict[str, str]] = []
        self._svg = 0
        self._entries = MOST_ENTRIES
        self._room = MOST_CHARACTERS
        self._left_out = 0

    def metadata(self) -> dict[str, Any]:
        self._end_anchor()
        head: dict[str, Any] = {}
        if self._title:
            head["Title"] = self._title
        if self._base:
            head["Base"] = self._base
        lists = {"Metas": self._metas, "Link": self._of_head, "Scripts": self._scripts}
        head |= {name: entries for name, entries in lists.items() if entries}
        found: dict[str, Any] = {}
        if head:
            found["Head"] = head
        if self._links:
            found["Links"] = self._links
        if self._left_out:
            found["Left-Out"] = str(self._left_out)
        return found

    def start(self, name: str, written: str) -> None:
        element = _ELEMENTS.get(name)
        if element is not None:
            self._element(name, element, attributes_of(written))
        elif name == "svg":
            self._svg += not written.endswith("/")
        elif (special := _SPECIAL.get(name)) is not None:
            special(self, attributes_of(written))
        else:
            self._of_any(name, attributes_of(written))

    def end(self, name: str) -> None:
        if name == "a":
            self._end_anchor()
        elif name == "svg" and self._svg:
            self._svg -= 1

    def raw(self, name: str, written: str) -> None:
        if name == "title" and not self._svg and not self._title:
            self._title = _cut(" ".join(in_text(written).split()))
        elif name == "style":
            for text, _, _ in css.references(written[:LONGEST_STYLE]):
                self._keep(self._links, {"path": "STYLE/#text", "href": _shown(text)})

    def _element(
        self, name: str, element: tuple[tuple[str, ...], tuple[str, ...]], attributes: dict[str, str]
    ) -> None:
        addresses, about = element
        if name == "a":
            self._end_anchor()
        for place, attribute in enumerate(addresses):
            if (value := attributes.get(attribute)) is None:
                continue
            if attribute == "onclick":
                for url in _of_script(value):
                    self._keep(self._links, _link(name, attribute, url))
                continue
            link = _link(name, attribute, value)
            if not place and len(attributes) > 1:
                link |= {key: attributes[key] for key in about if key in attributes}
            if self._keep(self._links, link) and name == "a":
                self.anchor = link
        if not _ANY.isdisjoint(attributes):
            self._of_any(name, attributes)

    def _of_any(self, name: str, attributes: dict[str, str]) -> None:
        for attribute in _OF_ANY:
            if attribute in attributes:
                self._keep(self._links, _link(name, attribute, attributes[attribute]))

    def _end_anchor(self) -> None:
        if self.anchor is not None and self.anchor_text:
            text = _cut(" ".join(in_text("".join(self.anchor_text)).split()))
            if text:
                self.anchor["text"] = text
                self._room -= len(text)
        self.anchor = None
        self.anchor_text = []

    def _keep(self, where: list[dict[str, str]], entry: dict[str, str]) -> bool:
        """Add *entry*, or count it as left out and return False."""
        self._room -= sum(map(len, entry.values()))
        self._entries -= 1
        if self._room < 0 or self._entries < 0:
            self._left_out += 1
            return False
        where.append(entry)
        return True

    def _html(self, attributes: dict[str, str]) -> None:
        for name in ("lang", "xml:lang"):
            if attributes.get(name):
                self._keep(self._metas, {"name": f"HTML@/{name}", "content": attributes[name]})

    def _base_of(self, attributes: dict[str, str]) -> None:
        self._base = self._base or _shown(attributes.get("href", ""))

    def _meta(self, attributes: dict[str, str]) -> None:
        meta = {name: attributes[name] for name in _METAS if name in attributes}
        if len(meta) > 1:
            self._keep(self._metas, meta)

    def _link_of(self, attributes: dict[str, str]) -> None:
        if "href" in attributes:
            link = _link("link", "href", attributes["href"])
            link |= {name: attributes[name] for name in ("rel", "type") if name in attributes}
            self._keep(self._of_head, link)

    def _script(self, attributes: dict[str, str]) -> None:
        if "src" in attributes:
            link = _link("script", "src", attributes["src"])
            if "type" in attributes:
                link["type"] = attributes["type"]
            self._keep(self._scripts, link)


_SPECIAL = {
    "base": _PageReader._base_of,  # noqa: SLF001
    "html": _PageReader._html,  # noqa: SLF001
    "link": _PageReader._link_of,  # noqa: SLF001
    "meta": _PageReader._meta,  # noqa: SLF001
    "script": _PageReader._script,  # noqa: SLF001
}
_READ = frozenset({*_ELEMENTS, *_SPECIAL, "svg"} - {"div"})
"""Elements whose start tags are read, whatever is in them."""
_ENDS = frozenset({"a", "A", *map("".join, product("sS", "vV", "gG"))})
"""Names of end tags that are read, in all ways to write them."""


def _link(name: str, attribute: str, url: str) -> dict[str, str]:
    return {"path": f"{name.upper()}@/{attribute}", "url": _shown(url)}


def _shown(url: str) -> str:
    """Return *url*, without the data if it is a `data:` URL."""
    if url[:5].lower() != "data:":
        return url
    head, comma, _ = url[:LONGEST_TEXT].partition(",")
    return head + comma


def _of_script(script: str) -> Iterator[str]:
    for match in _ONCLICK.finditer(script[:LONGEST_SCRIPT]):
        yield match[1] or match[2]


def _cut(text: str) -> str:
    return text[:LONGEST_TEXT].rstrip()
