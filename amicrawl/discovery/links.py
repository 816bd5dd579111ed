"""Links of a page: bytes in, resolved URLs out, whatever the bytes are. Pure.

    text/html, XHTML, SVG      `markup.py`
    text/css                   `css.py`
    JavaScript                 `scripts.py`
    XML                        sitemaps and feeds, by the reader of seed lists; media of feeds
    XSLT                       what it imports, and the elements of pages that it makes, `markup.py`
    robots.txt                 its Sitemap lines
    sitemaps of text           their lines
    web manifests              their icons
    header fields              Link and Refresh, of any response

Other types cost a look at their name. Bounded in bytes, links, and characters; one pass without going
back, so in time as well. Nothing here raises on what a server sent.

Whether a link is wanted is decided in `scope.py` and `ignores.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes

from amicrawl.discovery import css, markup, scripts
from amicrawl.discovery.coding import UTF_8, charset_of, markup_in, payload_of, text_in
from amicrawl.discovery.kinds import Found, Kind, Link, kind_of_relation
from amicrawl.jsontext import parsed
from amicrawl.seed import NotASeedError, entries_of
from amicrawl.urls import WHITE_SPACE, Base, resolve, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amicrawl.capture import Capture


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """How much of one page is looked at."""

    payload: int = 10 << 20
    """Bytes; what comes behind them is not read."""
    links: int = 20_000
    """Different references that are taken from it."""
    url: int = 4096
    """Characters of one URL; a longer one is dropped."""
    characters: int = 16 << 20
    """Characters of all its URLs together."""


DEFAULTS = LinkLimits()
_SITEMAP = LinkLimits(payload=50 << 20, links=50_000, characters=64 << 20)
"""What the sitemap protocol allows for one file."""
_GZIP = frozenset({"application/gzip", "application/x-gzip"})

_LONGEST_FIELD = 65_536
"""Bytes of one header field that are looked at."""
_REPEATED = 5
"""Times as many references, those that are repeated or lead nowhere too, as there may be links."""
_MANIFEST = "application/manifest+json"
_ROBOTS, _SITEMAP_OF_TEXT = "text/x-robots", "text/x-sitemap"
"""What robots.txt and a sitemap of lines are read as; no server calls them so."""
_IS_SITEMAP = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex)\b")
_KNOWN = {
    **{
        f"{kind}/{prefix}{name}": "text/javascript"
        for kind in ("text", "application")
        for prefix in ("", "x-")
        for name in ("javascript", "ecmascript")
    },
    **dict.fromkeys(
        ("text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml", "image/svg+xml"),
        "text/html",
    ),
    **dict.fromkeys(("text/xml", "application/xml", "text/xsl"), "application/xml"),
    "text/css": "text/css",
    _MANIFEST: _MANIFEST,
}
"""What media types are read as."""
_UNNAMED = frozenset({"", "unknown/unknown", "application/unknown", "*/*"})
_LOOKS_LIKE_HTML = re.compile(
    rb"(?i)<(?:!doctype html|html|head|body|script|title|!--|table|div|a)\b|<!--"
)
_LOOKS_LIKE_XML = re.compile(rb"(?i)<(?:\?xml|rss|feed|rdf:rdf|urlset|sitemapindex)\b|<\?xml")
_XSLT = b"http://www.w3.org/1999/XSL/Transform"
_XHTML = re.compile(rb"(?i)<(?:[a-z]+:)?(?:html|svg)[\s>]")
_IN_ENTRY = re.compile(
    rb"<(?:\w+:\w*loc>\s*+(?:<!\[CDATA\[\s*+)?|xhtml:link(?=\s)[^<>]*?\shref\s*+=\s*+[\"'])"
    rb"([^\s\"'<>\]]++)"
)
"""The address of an image, a video or a translation of a sitemap's entry."""
_NAMED_SITEMAP = re.compile(r"/[^/]*sitemap[^/]*\.txt\Z", re.IGNORECASE)
_NAMED_MANIFEST = re.compile(r"(?:\.webmanifest|/(?:site\.)?manifest\.json)\Z", re.IGNORECASE)
_LINE = rb"(?i)(?:\A(?:\xef\xbb\xbf)?|[\r\n])[ \t]*"
_WEB_LINE = re.compile(_LINE + rb"(https?://[^\s]+)")
_MOST_IN_MANIFEST = 10_000
_MEDIUM = re.compile(
    rb"<(enclosure|media:content|media:thumbnail|itunes:image|(?:atom:)?link)(?=\s)([^<>]{0,4096}+)>"
)
_MEDIUM_ADDRESS = re.compile(rb"""\s(?:url|href)\s*+=\s*+["']([^"'<>]*+)""")
_IS_ENCLOSURE = re.compile(rb"""\srel\s*+=\s*+["']enclosure["']""")
_SITEMAP_LINE = re.compile(_LINE + rb"sitemap[ \t]*:[ \t]*([^\s#]+)")
_BLANKS = b" \t\r\n\f\xef\xbb\xbf\0"
_TRIMMED = WHITE_SPACE + "".join(map(chr, range(0x20)))
_LINE_BREAKS = str.maketrans("", "", "\t\n\r")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_WEB = re.compile(r"[hH][tT][tT][pP][sS]?:")
_COMPLETE = re.compile(r"[hH][tT][tT][pP][sS]?://[^/?]")
_SURPLUS_SLASHES = re.compile(r"((?:[hH][tT][tT][pP][sS]?:)?//)/+")
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")
_PLAIN = re.compile(r"(?:[hH][tT][tT][pP][sS]?://|[/?.])[!-\"$-\[\]-~]*+\Z")
"""A reference that is already as browsers read it; most are."""
_LINK_VALUE = re.compile(r"""<([^<>]*+)>((?>(?:[^,"<]++|"(?:[^"\\]|\\.)*+"?)*))""", re.DOTALL)
_RELATION = re.compile(r"""(?i);\s*+rel\s*+=\s*+(?:"([^"]*+)|([^\s;,]++))""")


def names_links(url: str, content_type: str) -> bool:
    """Tell whether links are looked for in a page at *url* with that Content-Type."""
    return _read_as(url, content_type) in _READ


def links_of(
    capture: Capture, url: str, *, is_sitemap: bool, document: str = ""
) -> tuple[list[Link], bytes]:
    """Return the links of the page at *url* that *capture* brought, and its payload, codings undone.

    That is empty where links are not looked for in it.
    *document* is the URL of the page that needs it, where it is a requisite.
    """
    content_type = capture.content_type
    limits = _SITEMAP if is_sitemap else DEFAULTS
    if is_sitemap:
        content_type = "application/xml"
    read_as = _read_as(url, content_type)
    payload = payload_of(capture, limits.payload) if read_as in _READ else b""
    if is_sitemap and not payload.lstrip(_BLANKS).startswith(b"<"):
        read_as = _SITEMAP_OF_TEXT
    links = extract(
        payload,
        url=url,
        content_type=content_type,
        fields=capture.noted,
        limits=limits,
        document=document,
        read_as=read_as,
    )
    return links, payload


def _read_as(url: str, content_type: str) -> str:
    """Return what a page at *url* with that Content-Type is read as: one of `_READ`, or another type."""
    media_type = content_type.partition(";")[0].strip().lower()
    if known := _KNOWN.get(media_type):
        return known
    if media_type in _UNNAMED or media_type.endswith("+xml"):
        return "application/xml" if media_type not in _UNNAMED else ""
    path = url.partition("?")[0]
    if media_type == "text/plain":
        if path.endswith("/robots.txt"):
            return _ROBOTS
        if _NAMED_SITEMAP.search(path):
            return _SITEMAP_OF_TEXT
    if media_type in _GZIP and path.endswith(".xml.gz"):
        return "application/xml"
    return _MANIFEST if _NAMED_MANIFEST.search(path) else media_type


def extract(
    payload: bytes,
    *,
    url: str,
    content_type: str = "",
    fields: Iterable[tuple[bytes, bytes]] = (),
    limits: LinkLimits = DEFAULTS,
    document: str = "",
    read_as: str | None = None,
) -> list[Link]:
    """Return the links of the page at *url*, each once a kind, in the order of the page.

    *payload* is the message body without transfer and content coding; *fields* are the header fields
    as `header_fields` gives them. References to the page itself by a fragment are none. *document* is
    the URL of the page that this one is a script or an XSLT style sheet of. *read_as* is what the page
    is read as, where that is known; else *url* and *content_type* say it.
    """
    payload = payload[: limits.payload]
    read_as = (_read_as(url, content_type) if read_as is None else read_as) or _sniffed(payload)
    is_other_xml = read_as == "application/xml"
    is_xml = is_other_xml or content_type.partition(";")[0].strip().lower().endswith("xml")
    is_xslt = is_other_xml and _XSLT in payload[:4096]
    in_header = _of_fields(fields)
    if is_xml:
        in_header += markup.sheets_of_prolog(payload)
    if is_xslt:
        in_header += markup.parts_of_xslt(payload)
    of_header = _gathered(in_header, limits) if in_header else {}, url, UTF_8
    if read_as == "text/html" or is_xslt or (is_other_xml and _XHTML.search(payload[:1024])):
        payload, charset = markup_in(payload, content_type)
        html = markup.Document(payload, charset, is_xml=is_xml)
        found = html.found()
        if is_xslt:
            # Its elements become part of the page; in their attributes, {...} is an expression.
            found, url = (each for each in found if "{" not in each[0]), document or url
        gathered = _gathered(found, limits)
        base = _reference(html.base, limits) if html.base else ""
        page = resolve(url, base) if base and len(base) <= limits.url else url
        return _resolved((of_header, (gathered, page, charset)), limits)
    if read_as == "text/css":
        charset = charset_of(payload, content_type)
        of_sheet = _gathered(css.references(text_in(payload, charset)), limits)
        return _resolved((of_header, (of_sheet, url, charset)), limits)
    read = _READ.get(read_as)
    gathered = _gathered(read(payload, url), limits) if read is not None else {}
    workers = {name: where for name, where in gathered.items() if where == "script worker"}
    others = {name: where for name, where in gathered.items() if where != "script worker"}
    return _resolved((of_header, (others, url, UTF_8), (workers, document or url, UTF_8)), limits)


def _sniffed(payload: bytes) -> str:
    """Return the media type of a page that was sent without one."""
    start = payload[:1024].lstrip(_BLANKS)
    if _LOOKS_LIKE_XML.match(start):
        return "application/xml"
    return "text/html" if _LOOKS_LIKE_HTML.match(start) else ""


def _entries(payload: bytes, url: str) -> Iterator[Found]:
    blocks = (payload[start : start + 65_536] for start in range(0, len(payload), 65_536))
    try:
        for entry in entries_of(blocks, base=url):
            yield entry.url, Kind.LINK, "sitemap" if entry.is_sitemap else "feed or sitemap"
    except NotASeedError:
        pass  # what could be read has been
    if _IS_SITEMAP.search(payload, 0, 1024):
        for address in _IN_ENTRY.finditer(payload):
            yield unescape(text_of(address[1])), Kind.LINK, "feed or sitemap"
    else:
        yield from _media(payload)


def _media(payload: bytes) -> Iterator[Found]:
    """Yield the media of a feed: enclosures, pictures of entries and of the whole."""
    for medium in _MEDIUM.finditer(payload):
        address = _MEDIUM_ADDRESS.search(medium[2])
        if address and (not medium[1].endswith(b"link") or _IS_ENCLOSURE.search(medium[2])):
            yield unescape(text_of(address[1])), Kind.REQUISITE, "feed media"


def _of_robots(payload: bytes, _: str) -> Iterator[Found]:
    return ((text_of(line[1]), Kind.LINK, "robots.txt") for line in _SITEMAP_LINE.finditer(payload))


def _of_lines(payload: bytes, _: str) -> Iterator[Found]:
    lines = _WEB_LINE.finditer(payload)
    return ((text_of(line[1]), Kind.LINK, "feed or sitemap") for line in lines)


def _icons(payload: bytes, _: str) -> Iterator[Found]:
    """Yield the icons of a web manifest, those of its shortcuts too."""
    try:
        said = parsed(payload, most=_MOST_IN_MANIFEST)
    except ValueError:
        return
    shortcuts = said.get("shortcuts") if isinstance(said, dict) else None
    for holder in (said, *(shortcuts if isinstance(shortcuts, list) else ())):
        icons = holder.get("icons") if isinstance(holder, dict) else None
        for icon in icons if isinstance(icons, list) else ():
            if isinstance(icon, dict) and isinstance(icon.get("src"), str):
                yield icon["src"], Kind.REQUISITE, "manifest icon"


_READ: dict[str, Callable[[bytes, str], Iterator[Found]] | None] = {
    "": None,
    "text/html": None,
    "text/css": None,
    "application/xml": _entries,
    "text/javascript": lambda payload, _: scripts.references(payload),
    _MANIFEST: _icons,
    _ROBOTS: _of_robots,
    _SITEMAP_OF_TEXT: _of_lines,
}
"""What is looked into, and what reads it; HTML and CSS have character sets of their own."""


def _of_fields(fields: Iterable[tuple[bytes, bytes]]) -> list[Found]:
    """Read the Link (RFC 8288) and Refresh fields."""
    found: list[Found] = []
    for name, value in fields:
        lowered = name.lower()
        if lowered == b"link":
            for link in _LINK_VALUE.finditer(text_of(value[:_LONGEST_FIELD])):
                relation = _RELATION.search(link[2])
                words = (relation[1] or relation[2] or "") if relation else ""
                if (kind := kind_of_relation(words)) is not None:
                    found.append((link[1], kind[0], f"Link field{kind[1]}"))
        elif lowered == b"refresh":
            address = markup.refreshed(text_of(value[:_LONGEST_FIELD]))
            found.append((address, Kind.LINK, "Refresh field"))
    return found


def _gathered(found: Iterable[Found], limits: LinkLimits) -> dict[tuple[str, Kind], str]:
    """Return what of *found* can refer to a page of the web, each reference once a kind."""
    gathered: dict[tuple[str, Kind], str] = {}
    for text, kind, where in islice(found, _REPEATED * limits.links):
        is_plain = _PLAIN.match(text) and len(text) <= limits.url
        if reference := text if is_plain else _reference(text, limits):
            gathered.setdefault((reference, kind), where)
            if len(gathered) >= limits.links:
                break
    return gathered


def _reference(text: str, limits: LinkLimits) -> str:
    """Return *text* as browsers read it (WHATWG URL), or an empty text if it leads to no page.

    Line breaks in it stand for nothing, and a backslash in its path is a slash.
    """
    reference = text.strip(_TRIMMED)
    if not reference or reference[0] == "#" or len(reference) > limits.url:
        return ""
    if _SCHEME.match(reference) and not _WEB.match(reference):
        return ""
    reference = reference.translate(_LINE_BREAKS).partition("#")[0]
    if "\\" in reference:
        path, mark, query = reference.partition("?")
        reference = path.replace("\\", "/") + mark + query
    return reference


def _resolved(
    parts: Iterable[tuple[dict[tuple[str, Kind], str], str, str]], limits: LinkLimits
) -> list[Link]:
    """Return the links of *parts*: references, their base, and the character set of their queries."""
    kept: dict[tuple[str, Kind], Link] = {}
    room = limits.characters
    for gathered, page, charset in parts:
        if not gathered:
            continue
        base = Base(page)
        for (reference, kind), where in gathered.items():
            if reference[0] != "/" or reference[1:2] == "/":
                reference = _completed(reference, page)  # noqa: PLW2901
            if charset != UTF_8 and not reference.isascii():
                reference = _query_encoded(reference, charset)  # noqa: PLW2901
            url = base.resolve(reference)
            if len(url) > limits.url or not _COMPLETE.match(url) or (url, kind) in kept:
                continue
            room -= len(url)
            if room < 0 or len(kept) >= limits.links:
                return list(kept.values())
            kept[url, kind] = Link(url, kind, where)
    return list(kept.values())


def _completed(reference: str, base: str) -> str:
    """Return a *reference* with the slashes before its host as browsers read them (WHATWG URL)."""
    if surplus := _SURPLUS_SLASHES.match(reference):
        # Two slashes or more begin a host (WHATWG URL, "special authority ignore slashes state").
        reference = surplus[1] + reference[surplus.end() :]
    if _WEB.match(reference) and not _COMPLETE.match(reference):
        reference = _with_slashes(reference, base)
    return reference


def _with_slashes(reference: str, base: str) -> str:
    """Return a *reference* with a scheme and without its two slashes as browsers read it (WHATWG URL).

    With the scheme of *base* it is relative, which is how one once wrote that; else a slip of the pen.
    """
    scheme, _, rest = reference.partition(":")
    if rest.startswith("//"):
        return reference
    if base.lower().startswith(f"{scheme.lower()}:"):
        return rest
    return f"{scheme}://{rest.lstrip('/')}"


def _query_encoded(reference: str, charset: str) -> str:
    """Encode a query as a browser sends it: in the character set of the page; paths go in UTF-8."""
    path, mark, query = reference.partition("?")
    return path + mark + _BEYOND_ASCII.sub(lambda match: _percent_encoded(match[0], charset), query)


def _percent_encoded(text: str, charset: str) -> str:
    octets = bytearray()
    for character in text:
        if "\udc80" <= character <= "\udcff":
            octets.append(ord(character) - 0xDC00)
            continue
        try:
            octets += character.encode(charset)
        except UnicodeEncodeError:
            octets += b"&#%d;" % ord(character)
    return quote_from_bytes(bytes(octets), safe="")
