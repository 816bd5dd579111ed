"""HTML: the references in a document, found by its tags. Pure, and hostile input cannot make it slow.

A document is cut into tags as browsers cut it (WHATWG HTML, "tokenization"): quotes count behind an
equals sign only, comments and the text of scripts are passed over, of two attributes of one name the
first counts. No tree is built, because references do not depend on one. So neither depth of nesting nor
number of tags nor attributes without end can cost more than the bytes they take; parsers that build
trees give up at some depth, and the rest of the page with it.

Of scripts, what they name by literals (`scripts.py`) is here; what a program puts together is not.
"""

from __future__ import annotations

import re
from html import unescape
from html.entities import html5
from itertools import islice
from typing import TYPE_CHECKING

from amicrawl.discovery import css, scripts
from amicrawl.discovery.coding import UTF_8, text_in
from amicrawl.discovery.kinds import Found, Kind, kind_of_relation
from amicrawl.urls import resolve, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Attributes = dict[bytes, bytes]

MOST_TAGS = 200_000
"""Tags of one document that are looked at, those aside that can refer to nothing."""
MOST_ATTRIBUTES = 256
"""Attributes of one tag that are looked at."""

_MOST_VALUES = 4096
"""Equals signs of one tag up to which its end is looked for; each takes memory until it is found."""

# The group is not repeated possessively: Python before 3.11.5 loses its place where an iteration of
# one fails. What follows it never fails, so that nothing is tried again.
_ATTRIBUTES = rb"""[^>=]*+(?:=[ \t\n\r\f]*+(?:"[^"]*+"|'[^']*+'|(?!["']))[^>=]*+){0,%d}""" % _MOST_VALUES
_NAMES = (
    rb"a|applet|area|audio|base|bgsound|body|embed|feimage|form|frame|iframe|ilayer|image|img|input|layer"
    rb"|link|meta|noembed|noframes|object|param|plaintext|script|source|style|textarea|title|track|use|video"
    rb"|xmp"
)
_OPEN_QUOTE = rb"""[^<>"']*+(?:"[^"<>]*+"[^<>"']*+|'[^'<>]*+'[^<>"']*+){0,64}(?:"[^"<>]*+|'[^'<>]*+)>"""
"""What a tag has up to a `>` between quotes, as in `class="[&>p]:mt-4"`: its end may be further on."""
# Read in lower case. Of the tags that can refer to nothing, only those are stopped at that contain what
# could be taken for a tag; the rest of a page runs through at the speed of the search.
_MARKUP = re.compile(
    rb"<(?:!--|[!?][^>]*+|(?=(?:" + _NAMES + rb")[ \t\n\r\f/>]"
    rb"|[a-z][^ \t\n\r\f/<>]*+[ \t\n\r\f/](?:[^<>]*?(?:<|style|background)|" + _OPEN_QUOTE + rb"))"
    rb"([a-z][^ \t\n\r\f/>]*+)(" + _ATTRIBUTES + rb")(>)?)"
)
_ATTRIBUTE = re.compile(
    rb"([^ \t\n\r\f/>=][^ \t\n\r\f/>=]*+)"
    rb"""(?:[ \t\n\r\f]*+=[ \t\n\r\f]*+(?:"([^"]*+)"|'([^']*+)'|([^ \t\n\r\f>]*+)))?"""
)
_OTHER = rb"""(?:[ \t\n\r\f]++(?!href|style|background|xlink)[a-z][a-z0-9-]*+="[^"]*+"){0,16}"""
_ANCHOR = re.compile(_OTHER + rb"""[ \t\n\r\f]++href="([^"&]*+)\"""" + _OTHER + rb"""[ \t\n\r\f]*+\Z""")
"""The attributes of an `a` as nearly all are written: nothing to be undone, and one reference."""
_END_OF_COMMENT = re.compile(rb"--!?>")
_RAW = {
    name: re.compile(rb"</" + name + rb"(?=[ \t\n\r\f/>])")
    for name in (*(b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed"),)
}
"""Elements whose content is text up to their end tag. That of `noframes` is one to a browser, and the
page itself to those who had none for frames."""
_CLOSED = re.compile(rb"(?:\A|[ \t\n\r\f\"'])/\Z")
"""What a tag ends in that is its element's end as well: a slash that is part of no value."""
_MOST_NESTED = 3
"""Documents in the `srcdoc` of a document, one in the other, that are looked at."""
_WHOLE = re.compile(r"\s*https?://", re.IGNORECASE)
_LONGEST_BASE = 4096
"""Characters of a base address in a `srcdoc`; with a longer one, each reference would be as long."""
_IMAGE_OF_PAGE = frozenset(
    {
        *(b"og:image", b"og:image:url", b"og:image:secure_url", b"twitter:image", b"twitter:image:src"),
        b"msapplication-tileimage",
    }
)
"""What a `meta` is called that names a picture of the page, for previews and tiles."""

_REFRESH = re.compile(
    r"""(?i)\s*[0-9.]+\s*(?:[;,]\s*|\s)(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|([^\s"'].*))""", re.DOTALL
)
_CANDIDATE = re.compile(r"[\s,]*+(\S++)")
_DESCRIPTORS = re.compile(r"[^,(]*+(?:\([^)]*+\)?[^,(]*+)*+")

_PROLOG = re.compile(
    rb"[\s\xef\xbb\xbf]*+<"
    rb"(?:!--.*?-->|\?xml-stylesheet(?=\s)(.*?)\?>|(?!!--)[?!][^>\[]*+(?:\[.*?\]\s*+)?>)",
    re.DOTALL,
)
"""A comment, an instruction or the type before the first element of an XML document."""
_LONGEST_PROLOG = 4096
_PART_OF_XSLT = re.compile(
    rb"<!--(?:[\s\S]*?-->|[\s\S]*+)"
    rb"""|<xsl:(?:import|include)(?=\s)[^<>]*?\shref\s*+=\s*+["']([^"'<>]++)"""
    rb"""|\bdocument\(\s*+["']([^"'<>]++)"""
)
_SHEET_ADDRESS = re.compile(rb"""\shref\s*+=\s*+["']([^"']*+)""")


def refreshed(text: str) -> str:
    """Return the address in a Refresh field or its like in a document; empty where there is none."""
    match = _REFRESH.match(text[:8192])
    return next((group for group in match.groups() if group), "") if match else ""


def candidates(text: str) -> Iterator[str]:
    """Yield the addresses in a `srcset`."""
    position = 0
    while match := _CANDIDATE.match(text, position):
        url = match[1].rstrip(",")
        if url:
            yield url
        position = match.end()
        if url == match[1]:
            descriptors = _DESCRIPTORS.match(text, position)
            position = descriptors.end() if descriptors else position


def sheets_of_prolog(payload: bytes) -> list[Found]:
    """Return the style sheets that an XML document names before its first element (xml-stylesheet)."""
    found: list[Found] = []
    position = 0
    while part := _PROLOG.match(payload, position, _LONGEST_PROLOG):
        position = part.end()
        if part[1] and (address := _SHEET_ADDRESS.search(part[1])):
            found.append((unescape(text_of(address[1])), Kind.REQUISITE, "xml-stylesheet"))
    return found


def parts_of_xslt(payload: bytes) -> list[Found]:
    """Return the style sheets and documents that an XSLT style sheet reads (XSLT 1.0, 2.6 and 12.1)."""
    return [
        (unescape(text_of(part[part.lastindex])), Kind.REQUISITE, "xslt")
        for part in islice(_PART_OF_XSLT.finditer(payload), MOST_TAGS)
        if part.lastindex
    ]


class Document:
    """Walks through one document."""

    def __init__(self, payload: bytes, charset: str, nested: int = 0, *, is_xml: bool = False) -> None:
        """Read the HTML *payload*, whose markup is ASCII; values are text of *charset*.

        Where it *is_xml*, every element may end with its first tag (`<script src="x"/>`).
        """
        self.base = ""
        """The first base address in it, as written; empty where there is none, and before `found`."""
        self._nested = nested
        self._imports: dict[str, str] = {}
        self._payload = payload
        self._charset = charset
        self._is_xml = is_xml
        self._in_picture = False
        self._looked_at = 0

    def found(self) -> Iterator[Found]:
        """Yield its references in order; `base` is known when they are through."""
        # Only ASCII letters change, so places in one are places in the other.
        lowered = self._payload.lower()
        position = 0
        for _ in range(MOST_TAGS):
            tag = _MARKUP.search(lowered, position)
            if tag is None:
                return
            position = tag.end()
            name = tag[1]
            if name is None:
                if position - tag.start() == 4 and tag[0] == b"<!--":
                    end = _END_OF_COMMENT.search(lowered, position - 2)
                    position = end.end() if end else len(lowered)
                continue
            if tag[3] is None:
                if tag[2].count(b"=") < _MOST_VALUES:
                    return  # the document ends inside a tag
                position = lowered.find(b">", position) + 1
                if not position:
                    return
            written = self._payload[tag.start(2) : tag.end(2)]
            if name == b"a" and (anchor := _ANCHOR.match(written)):
                yield text_in(anchor[1], self._charset), Kind.LINK, "a href"
                continue
            yield from self._of_tag(name, written) if written else ()
            if name in _RAW and not (_CLOSED.search(written) and self._ends_at_once(lowered, position)):
                end = _RAW[name].search(lowered, position)
                if name in (b"style", b"script"):
                    content = self._payload[position : end.start() if end else len(lowered)]
                    yield from self._text(name, written, content)
                position = end.end() if end else len(lowered)
            elif name == b"plaintext":
                return

    def _ends_at_once(self, lowered: bytes, position: int) -> bool:
        """Return whether an element whose first tag ends in a slash, at *position*, ends with it.

        HTML has none such; XML has, and so have drawings within HTML: `<svg><title/>`.
        """
        if not self._is_xml:
            # Each byte is looked at once: what is known of the bytes before stays.
            begun = lowered.rfind(b"<svg", self._looked_at, position)
            ended = lowered.rfind(b"</svg", self._looked_at, position)
            if begun != ended:
                self._in_picture = begun > ended
            self._looked_at = position
        return self._is_xml or self._in_picture

    def _of_tag(self, name: bytes, written: bytes) -> Iterator[Found]:
        attributes: Attributes = {}
        for match in islice(_ATTRIBUTE.finditer(written), MOST_ATTRIBUTES):
            attributes.setdefault(
                match[1].lower(), match[match.lastindex or 1] if match.lastindex != 1 else b""
            )
        if special := _SPECIAL.get(name):
            yield from special(self, attributes)
        for attribute, kind, where in _ADDRESSES.get(name, ()):
            if attribute in attributes:
                yield self._value(attributes, attribute), kind, where
        for attribute, where in _SETS.get(name, ()):
            if attribute in attributes:
                for url in candidates(self._value(attributes, attribute)):
                    yield url, Kind.REQUISITE, where
        if b"background" in attributes:
            yield self._value(attributes, b"background"), Kind.REQUISITE, "background"
        if b"style" in attributes:
            yield from css.references(self._value(attributes, b"style"))

    def _value(self, attributes: Attributes, name: bytes) -> str:
        text = text_in(attributes.get(name, b""), self._charset)
        return in_attribute(text) if "&" in text else text

    def _base(self, attributes: Attributes) -> Iterator[Found]:
        if not self.base:
            self.base = self._value(attributes, b"href")
        return iter(())

    def _link(self, attributes: Attributes) -> Iterator[Found]:
        if (relation := kind_of_relation(self._value(attributes, b"rel"))) is not None:
            kind, word = relation
            yield self._value(attributes, b"href"), kind, f"link{word}"

    def _text(self, name: bytes, written: bytes, content: bytes) -> Iterator[Found]:
        if name == b"style":
            yield from css.references(text_in(content, self._charset))
        elif b'"imports"' in content and b"importmap" in written.lower():
            entries = scripts.import_map(content)
            if len(self._imports) < scripts.MOST_IN_MAP:
                self._imports.update(entries)
            for package, address in entries.items():
                if not package.endswith("/"):
                    yield address, Kind.REQUISITE, "import map"
        else:
            yield from scripts.references(content, self._charset, imports=self._imports)

    def _iframe(self, attributes: Attributes) -> Iterator[Found]:
        if b"srcdoc" in attributes and self._nested < _MOST_NESTED:
            content = self._value(attributes, b"srcdoc").encode("utf-8", "surrogateescape")
            inside = Document(content, UTF_8, self._nested + 1)
            for reference, kind, where in inside.found():
                # Addresses are relative to this document's base, unless there is a whole one in it.
                has_base = len(inside.base) < _LONGEST_BASE and _WHOLE.match(inside.base)
                is_here = not has_base or reference.lstrip()[:1] == "#"
                yield reference if is_here else resolve(inside.base, reference), kind, where

    def _meta(self, attributes: Attributes) -> Iterator[Found]:
        called = attributes.get(b"property") or attributes.get(b"name")
        if called is not None and called.strip().lower() in _IMAGE_OF_PAGE:
            yield self._value(attributes, b"content"), Kind.REQUISITE, "meta image"
        if attributes.get(b"http-equiv", b"").strip().lower() == b"refresh":
            yield refreshed(self._value(attributes, b"content")), Kind.LINK, "meta refresh"

    def _form(self, attributes: Attributes) -> Iterator[Found]:
        if attributes.get(b"method", b"get").strip().lower() in (b"get", b""):
            yield self._value(attributes, b"action"), Kind.LINK, "form action"

    def _applet(self, attributes: Attributes) -> Iterator[Found]:
        """Yield the archives of a Java applet, or its class where it has none (HTML 4.01, 13.4)."""
        base = self._value(attributes, b"codebase").strip()
        archives = self._value(attributes, b"archive").replace(",", " ").split()
        code = self._value(attributes, b"code").strip().removesuffix(".class").replace(".", "/")
        classes = [f"{code}.class"] if code else []
        for name in archives or classes:
            yield f"{base.rstrip('/')}/{name}" if base else name, Kind.REQUISITE, "applet"

    def _param(self, attributes: Attributes) -> Iterator[Found]:
        if attributes.get(b"name", b"").strip().lower() in (b"movie", b"src"):
            yield self._value(attributes, b"value"), Kind.REQUISITE, "param value"

    def _input(self, attributes: Attributes) -> Iterator[Found]:
        if attributes.get(b"type", b"").strip().lower() == b"image":
            yield self._value(attributes, b"src"), Kind.REQUISITE, "input src"


_SPECIAL: dict[bytes, Callable[[Document, Attributes], Iterator[Found]]] = {
    b"applet": Document._applet,  # noqa: SLF001
    b"param": Document._param,  # noqa: SLF001
    b"base": Document._base,  # noqa: SLF001
    b"link": Document._link,  # noqa: SLF001
    b"meta": Document._meta,  # noqa: SLF001
    b"form": Document._form,  # noqa: SLF001
    b"iframe": Document._iframe,  # noqa: SLF001
    b"input": Document._input,  # noqa: SLF001
}


def _addresses(name: str, links: str = "", requisites: str = "") -> tuple[tuple[bytes, Kind, str], ...]:
    return tuple(
        (attribute.encode(), kind, f"{name} {attribute}")
        for kind, attributes in ((Kind.LINK, links), (Kind.REQUISITE, requisites))
        for attribute in attributes.split()
    )


# `data-src` and its like hold the address of an image until a script puts it in place; half the web's
# images are named nowhere else.
_ADDRESSES = {
    name.encode(): _addresses(name, links, requisites)
    for name, links, requisites in (
        ("a", "href xlink:href", ""),
        ("area", "href", ""),
        ("audio", "", "src"),
        ("bgsound", "", "src"),
        ("embed", "", "src"),
        ("feimage", "", "href xlink:href"),
        ("frame", "longdesc", "src"),
        ("iframe", "longdesc", "src data-src"),
        ("ilayer", "", "src"),
        ("image", "", "href xlink:href src"),
        ("img", "longdesc", "src lowsrc data-src data-original"),
        ("layer", "", "src"),
        ("object", "", "data"),
        ("script", "", "src href xlink:href"),
        ("source", "", "src data-src"),
        ("track", "", "src"),
        ("use", "", "href xlink:href"),
        ("video", "", "src poster data-src"),
    )
}
_SETS = {
    b"img": ((b"srcset", "img srcset"), (b"data-srcset", "img data-srcset")),
    b"source": ((b"srcset", "source srcset"), (b"data-srcset", "source data-srcset")),
    b"link": ((b"imagesrcset", "link imagesrcset"),),
}


# Longer numbers stand for no character; `unescape` would turn a million digits into a number first.
_NUMBER = r"#(?:[xX]0*+[0-9A-Fa-f]{0,7}|0*+[0-9]{0,8});?"
_IN_TEXT = re.compile(rf"&(?:{_NUMBER}|[A-Za-z][A-Za-z0-9]{{1,31}};?)")
_IN_ATTRIBUTE = re.compile(rf"&(?:{_NUMBER}|([A-Za-z][A-Za-z0-9]{{1,31}})(;|(?![A-Za-z0-9=])))")
"""In an attribute a name without a semicolon is one only if no `=` follows: `?a=1&copy=2` is a query."""


def in_text(written: str) -> str:
    """Return text as *written* between tags with its references resolved."""
    return _IN_TEXT.sub(lambda match: unescape(match[0]), written) if "&" in written else written


def in_attribute(written: str) -> str:
    """Return the value of an attribute as *written* with its references resolved."""
    return _IN_ATTRIBUTE.sub(_character, written)


def _character(reference: re.Match[str]) -> str:
    if reference[1] is None:
        return unescape(reference[0])
    return html5.get(reference[1] + reference[2], reference[0])
