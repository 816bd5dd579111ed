"""The media type of a payload by its bytes: libmagic where it is installed, else a table of signatures.

libmagic is loaded through python-magic. It looks at no more than `LOOKED_AT` bytes: what
identifies types is at the beginning, and its tests of text take time that grows with the input.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from amicrawl.archive.index.sidecar.findings import TypeIdentity

LOOKED_AT = 64 << 10
"""Bytes from the beginning that are looked at."""
_TEXT_LOOKED_AT = 4 << 10
"""Bytes of a text: that is how far libmagic looks for what makes a text HTML, and it is faster."""

_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/x-wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypqt", "video/quicktime"),
    (4, b"ftypM4A", "audio/x-m4a"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"OggS", "application/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"MThd", "audio/midi"),
    (0, b"FLV\x01", "video/x-flv"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"\x00\x00\x01\x00", "image/vnd.microsoft.icon"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"%!PS", "application/postscript"),
    (0, b"{\\rtf", "text/rtf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (0, b"Rar!\x1a\x07", "application/x-rar"),
    (257, b"ustar", "application/x-tar"),
    (0, b"wOFF", "font/woff"),
    (0, b"wOF2", "font/woff2"),
    (0, b"OTTO", "font/otf"),
    (0, b"\x00\x01\x00\x00\x00", "font/ttf"),
    (0, b"\x00asm", "application/wasm"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/x-dosexec"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (0, b"CWS", "application/x-shockwave-flash"),
    (0, b"FWS", "application/x-shockwave-flash"),
)
"""Offset, bytes there, media type as libmagic has it; the first that is met counts."""
_OF_LETTERS = frozenset({"application/pdf", "application/postscript", "text/rtf"})
"""Those that a file of letters alone may be of; of the others, `BMW` and `MZ is` are none."""
_XML_DIALECTS = (
    (b"<svg", "image/svg+xml"),
    (b"<html", "text/html"),
    (b"<rss", "application/rss+xml"),
    (b"<feed", "application/atom+xml"),
)
_HEAD = 1445
"""Bytes in which browsers look for what a resource is (WHATWG MIME Sniffing, "resource header")."""
_HTML = re.compile(
    rb"(?i)\s*+(?>(?:<!--.{0,1000}?-->\s*+){0,8})<(?:!doctype html|html|head|script|iframe|h1|div|font"
    rb"|table|a|style|title|b|body|br|p)[\s>]",
    re.DOTALL,
)
_XML = re.compile(rb"\s*<\?xml[\s]")
_PROLOG = (
    rb"(?>(?:\xef\xbb\xbf|\s++|<\?.*?\?>|<!--.*?-->"
    rb"|(?i:<!doctype)\s[^\[>]{0,1024}+(?>(?:\[.*?\]\s*+)?)>)*)"
)
"""The XML declaration, comments, instructions and the document type."""
_BEGINNINGS = {
    # Behind an XML declaration: comments and instructions, then the document type or the root of a page.
    "application/xhtml+xml": re.compile(
        rb"(?:\xef\xbb\xbf)?\s*+<\?xml\s[^<>]{0,1024}+>(?>(?:\s++|<!--.*?-->|<\?[^<>]{0,1024}+>)*)"
        rb"<(?:!doctype\s++)?html[\s>\[]",
        re.DOTALL | re.IGNORECASE,
    ),
    # Comments and white space, then an at-rule, or a selector and the first of its declarations.
    "text/css": re.compile(
        rb"(?>(?:\xef\xbb\xbf|\s++|/\*.*?\*/|<!--|-->)*)"
        rb"(?:@(?:charset|import|namespace|media|supports|font-face|page|layer|container|property"
        rb"|(?:-[a-z]++-)?(?:keyframes|document|viewport))\b"
        rb"|[^{}<;]{1,4096}+\{(?>(?:\s++|/\*.*?\*/)*)(?:[-_a-zA-Z*][-\w]{0,60}+\s*+:|\}))",
        re.DOTALL,
    ),
    "image/svg+xml": re.compile(_PROLOG + rb"<(?:[a-zA-Z]\w{0,20}+:)?svg[\s/>]", re.DOTALL),
    "application/atom+xml": re.compile(
        _PROLOG + rb"<(?:[a-zA-Z]\w{0,20}+:)?feed\s[^>]{0,4096}?http://www\.w3\.org/2005/Atom\b",
        re.DOTALL,
    ),
    # The second is that of RSS 1.0.
    "application/rss+xml": re.compile(
        _PROLOG + rb"<(?:rss[\s>]|rdf:RDF\s[^>]{0,4096}?http://purl\.org/rss/1\.0/)", re.DOTALL
    ),
    "application/json": re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:\{\s*+(?:\"|\})|\[\s*+[\[{\"\]0-9-])"),
}
"""How texts have to begin that libmagic takes for plain text, for scripts, or for XML of no kind."""
XML_KINDS = ("application/xhtml+xml", "application/rss+xml", "application/atom+xml")
"""Those of them that libmagic calls XML."""
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_DOCTYPE = re.compile(rb"(?i)<!doctype html[ \t\r\n>]")
_OF_TEXTS = bytes([*range(7, 11), 12, 13, 27, *range(32, 127), *range(128, 256)])
"""The octets that libmagic allows in a text."""


def begins_as(media_type: str, content: bytes) -> bool:
    """Return whether *content* begins as a text of *media_type*, one of `_BEGINNINGS`, has to."""
    beginning = _BEGINNINGS.get(media_type)
    return beginning is not None and beginning.match(content[:LOOKED_AT]) is not None


class Libmagic:
    """The library behind `file`.

    It takes a text that begins as HTML documents do for HTML, whatever else is in it: with any of the
    17,310 printable literals of its own signatures in such a page, its result changed in 5 of 51,930
    pages. So it does one whose root is `html` behind an XML declaration for XML: in 30 of 51,825 pages
    it did not, and took the page for what was drawn or named inside, as `<svg`. As these are most of
    what there is, and take it longest, it does not run then.
    """

    name = "python-magic"

    def __init__(self) -> None:
        """Raise ImportError where the package or the library is not installed."""
        magic: Any = import_module("magic")
        self._magic: Any = magic.Magic(mime=True)
        self.version = f"libmagic {magic.version()}"

    def identify(self, content: bytes, *, is_whole: bool) -> TypeIdentity:
        """Return the media type of *content*."""
        del is_whole  # the beginning is enough
        begin = content[:_TEXT_LOOKED_AT]
        is_text = not begin.translate(None, _OF_TEXTS)
        if is_text and _DOCTYPE.match(begin):
            return TypeIdentity("text/html")
        if is_text and begins_as("application/xhtml+xml", begin):
            return TypeIdentity("text/xml")
        return TypeIdentity(self.type_of(content))

    def type_of(self, content: bytes) -> str:
        """Return what the library itself says of *content*."""
        begin = content[:_TEXT_LOOKED_AT]
        if b"\x00" in begin:
            begin = content[:LOOKED_AT]
        return str(self._magic.from_buffer(begin))


class Signatures:
    """The formats of the web, by a table."""

    name = "amicrawl"
    version = "signatures 3"

    def identify(self, content: bytes, *, is_whole: bool) -> TypeIdentity:
        """Return the media type of *content*."""
        del is_whole  # the beginning is enough
        head = content[:_HEAD]
        is_text = not _BINARY.search(head)
        for offset, signature, media_type in _SIGNATURES:
            may_be_words = is_text and signature.isascii() and media_type not in _OF_LETTERS
            if content.startswith(signature, offset) and not may_be_words:
                return TypeIdentity(media_type)
        if head.startswith(_WIDE_MARKS):
            head = head[2:].replace(b"\x00", b"")
        head = head.removeprefix(b"\xef\xbb\xbf")
        if _XML.match(head):
            lower = head.lower()
            return TypeIdentity(next((kind for tag, kind in _XML_DIALECTS if tag in lower), "text/xml"))
        if _HTML.match(head):
            return TypeIdentity("text/html")
        if begins_as("image/svg+xml", content):
            return TypeIdentity("image/svg+xml")
        if _BINARY.search(head):
            return TypeIdentity("application/octet-stream")
        return TypeIdentity("application/json" if begins_as("application/json", head) else "text/plain")
