"""Sitemaps as XML: sitemaps.org urlset and index, RSS and Atom, read in a stream. Pure.

Nothing but the entries of a document is kept while it is read, no tree is built, and nothing is ever
fetched or looked up for it. A document type declaration is refused: no sitemap needs one, and with it go
entities, external subsets and everything that grows out of them. Namespaces are not insisted on; half
the web writes them wrong. An entry's address must be a child of its own, so that those of images or
translations inside it are not taken for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urljoin

from lxml import etree

from amicrawl.errors import InputError
from amicrawl.seed.formats import is_web
from amicrawl.seed.seed import NotASeedError, excerpt, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_TEXT = 64 * 1024
"""Characters that an address or date may have; of an entry with more, the address is empty."""

MAX_DEPTH = 256
"""Elements that may lie in one another; sitemaps need 3, and what extends them a few more."""


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """One address in a sitemap."""

    number: int
    """Which entry of its document, from 1."""
    url: str
    """As written, white space removed; those of a feed resolved, by `xml:base` too. Empty for none."""
    meta: Mapping[str, str]
    """Its other fields (`lastmod`, `changefreq`, `priority`, `pubDate`, `updated`), in order."""
    is_sitemap: bool
    """Whether the address is that of another sitemap."""


class _DocumentKind(NamedTuple):
    """What one sort of document calls its parts."""

    entry: str
    address: str
    facts: tuple[str, ...]
    is_index: bool = False


_ATOM = "{http://www.w3.org/2005/Atom"
"""The namespace of Atom, as the parser puts it; feeds of other kinds have `link` elements of it too."""
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_LONGEST_BASE = 4096
"""Characters of a base that a document declares; with a longer one, each address would be as long."""

_KINDS = {
    "urlset": _DocumentKind("url", "loc", ("lastmod", "changefreq", "priority")),
    "sitemapindex": _DocumentKind("sitemap", "loc", ("lastmod",), is_index=True),
    "rss": _DocumentKind("item", "link", ("pubDate",)),
    "RDF": _DocumentKind("item", "link", ()),
    "feed": _DocumentKind("entry", "link", ("updated",)),
}


def entries_of(blocks: Iterable[bytes], *, base: str = "") -> Iterator[SitemapEntry]:
    """Yield the entries of the XML document in *blocks*, whose own address is *base* where it has one.

    Raises NotASeedError, after the last entry that could be read, where it is not well-formed, has a
    document type declaration, or is not a sitemap. An InputError of *blocks* comes after it too.
    """
    target = _SitemapTarget(base)
    parser = etree.XMLParser(
        target=cast("Any", target),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
    )
    try:
        for block in _trimmed(blocks):
            parser.feed(block)
            yield from target.taken()
        parser.close()
        yield from target.taken()
    except etree.XMLSyntaxError as error:
        yield from target.taken()
        raise NotASeedError(f"the XML is not well-formed: {printable(error.msg)}") from error
    except (NotASeedError, InputError):
        yield from target.taken()
        raise


def _trimmed(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Drop the white space before a document: many a generator prints a line before the declaration."""
    begun = False
    for block in blocks:
        content = block if begun else block.removeprefix(b"\xef\xbb\xbf").lstrip()
        begun = begun or bool(content)
        if content:
            yield content


class _Texts:
    """The texts of one entry by the name of their element; those right in the entry have none."""

    def __init__(self, depth: int, namespace: str, base: str) -> None:
        self.depth = depth
        self.namespace = namespace
        self.base = base
        self._parts: dict[str, list[str]] = {"": []}
        self._room = MAX_TEXT

    def begin(self, name: str) -> None:
        """Begin the element *name* again, if it was there before."""
        self._parts[name] = []

    def add(self, name: str, text: str) -> None:
        self._room -= len(text)
        if self._room >= 0:
            self._parts.setdefault(name, []).append(text)

    def get(self, name: str) -> str:
        """Return the text of the element *name* without white space around it."""
        return "".join(self._parts.get(name, ())).strip()

    @property
    def overfull(self) -> bool:
        """Whether there was more text than is kept."""
        return self._room < 0

    @property
    def names(self) -> Iterable[str]:
        """The elements there are, in the order of the file."""
        return self._parts


class _SitemapTarget:
    """Receives what the parser finds; the public methods, `taken` aside, are those that lxml calls."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._kind = _KINDS["urlset"]
        self._depth = 0
        self._texts: _Texts | None = None
        self._element = ""
        self._count = 0
        self._found: list[SitemapEntry] = []

    def taken(self) -> list[SitemapEntry]:
        """Hand over the entries found since the last call."""
        found, self._found = self._found, []
        return found

    def doctype(self, name: str, _public: str | None, _system: str | None) -> None:
        raise NotASeedError(f"it has a document type declaration ({excerpt(name)}), which is refused")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            # libxml2 has such a limit for trees only, and keeps the name of every open element.
            raise NotASeedError(f"its elements lie more than {MAX_DEPTH} deep")
        namespace, _, name = tag.rpartition("}")
        if self._depth == 1:
            if name not in _KINDS:
                raise NotASeedError(f"its root element is {excerpt(name)}, which no sitemap has")
            self._kind = _KINDS[name]
            self._base = _declared(self._base, attributes)
        elif self._texts is None:
            # The address of a feed's channel is collected like an entry's: those may be relative to it.
            is_channel_link = self._depth == 3 and name == "link" and namespace != _ATOM
            if is_channel_link or (name == self._kind.entry and self._depth <= 3):
                self._texts = _Texts(self._depth, namespace, _declared(self._base, attributes))
        elif self._depth == self._texts.depth + 1 and namespace == self._texts.namespace:
            self._start_field(self._texts, name, attributes)

    def _start_field(self, texts: _Texts, name: str, attributes: Mapping[str, str]) -> None:
        if name == self._kind.address and "href" in attributes:
            if attributes.get("rel", "alternate") == "alternate" and not texts.get(name):
                texts.add(name, attributes["href"])
        elif name in (self._kind.address, "guid", *self._kind.facts):
            self._element = name
            texts.begin(name)

    def data(self, data: str) -> None:
        texts = self._texts
        if (
            texts is not None
            and (self._element or self._depth == texts.depth)
            and self._depth <= texts.depth + 1
        ):
            texts.add(self._element, data)

    def end(self, tag: str) -> None:
        texts = self._texts
        if texts is not None and self._depth <= texts.depth + 1:
            self._element = ""
            if self._depth == texts.depth:
                self._texts = None
                if tag.rpartition("}")[2] == self._kind.entry:
                    self._found.append(self._entry(texts))
                else:
                    self._base = texts.get("") or self._base
        self._depth -= 1

    def close(self) -> None:
        """Nothing to hand over: `taken` has done it."""

    def _entry(self, texts: _Texts) -> SitemapEntry:
        self._count += 1
        kind = self._kind
        url = texts.get(kind.address)
        if not url:
            # RSS 2.0: a guid may be the address, or just any words; an index may have it without `loc`.
            url = guid if is_web(guid := texts.get("guid")) else texts.get("")
        if kind.address == "link" and texts.base and url:
            url = _resolved(texts.base, url)
        meta = {name: text for name in texts.names if name in kind.facts and (text := texts.get(name))}
        if texts.overfull:
            url, meta = "", {}
        return SitemapEntry(self._count, url, meta, kind.is_index)


def _declared(base: str, attributes: Mapping[str, str]) -> str:
    """Return the base inside an element with *attributes*, outside of which it is *base* (XML Base)."""
    declared = attributes.get(_BASE, "")
    return _resolved(base, declared) if len(declared) <= _LONGEST_BASE else base


def _resolved(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:  # no host that could be one; the check of the URL says so later
        return url
