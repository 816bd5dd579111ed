"""Payloads as they can be read: content codings undone, and the character set of what is then there.

Of gzip, deflate, br and zstd (RFC 9110, 8.4.1), content and transfer codings alike, everything is
decoded piece by piece and up to a limit, so that a few kilobytes that stand for gigabytes cost no more
than a page of that limit. What is broken is decoded as far as it goes. What is not a coding (`utf-8`,
`none`) is passed over, as in browsers, and a body that is not in its coding is taken as it stands:
recorders store bodies decoded under such fields.

The character set is that of the byte order mark, of Content-Type, or of the document's own declaration,
in the order of browsers (WHATWG HTML, "determining the character encoding"). Without any of the three it
is UTF-8. Only the character sets of the web are known; Python's others decode what no browser would,
some of them at a cost. Pure.
"""

from __future__ import annotations

import codecs
import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import brotli
import zstandard

from amicrawl.message import codings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amicrawl.capture import Capture

_MOST_CODINGS = 2
"""Nested codings; no honest server sends more."""
_MOST_MEMBERS = 10_000
"""Members of a gzip body; each costs some microseconds, even where it holds nothing."""
_PIECE = 65_536
_OVERHEAD = 1 << 20
"""Bytes that a coded stream may have besides twice those that it stands for."""
_WINDOW = 8 << 20
"""Bytes that a zstd frame may require a reader to hold (RFC 8878, 3.1.1.1.2)."""


_BEGINNINGS = {b"gzip": b"\x1f\x8b", b"x-gzip": b"\x1f\x8b", b"zstd": b"\x28\xb5\x2f\xfd"}
_UNREAD = frozenset(
    b"aes128gcm bzip2 compress dcb dcz exi lzma pack200-gzip sdch x-bzip2 x-compress xz".split()
)
"""Codings that are not decoded."""


class _Decoder(Protocol):
    def __call__(self, piece: bytes) -> Iterator[bytes]:
        """Yield what *piece* stands for; raises what the library raises."""


def decoded(blocks: Iterable[bytes], codings: bytes, *, limit: int) -> bytes:
    """Return up to *limit* bytes of *blocks* without its *codings*, as `codings_of` has them.

    Empty where one of the codings is known by name only, or there are too many of them.
    """
    stream = iter(blocks)
    if codings:
        names = [name.strip().lower() for name in codings.split(b",") if name.strip()]
        names = [name for name in names if name in _DECODERS or name in _UNREAD]
        if len(names) > _MOST_CODINGS or not _UNREAD.isdisjoint(names):
            return b""
        for name in reversed(names):
            stream = _through(stream, name, most=2 * limit + _OVERHEAD)
    pieces: list[bytes] = []
    size = 0
    for piece in stream:
        pieces.append(piece)
        size += len(piece)
        if size >= limit:
            break
    return b"".join(pieces)[:limit]


def payload_of(capture: Capture, limit: int) -> bytes:
    """Return at most *limit* bytes of the body of *capture*, its codings undone as far as they go."""
    payload = decoded(capture.payload(), codings_of(capture.noted), limit=limit)
    if payload.startswith(b"\x1f\x8b"):
        # A sitemap in a file of its own packing, or a page that was packed without a word of it.
        payload = decoded([payload], b"gzip", limit=limit)
    return payload


def _through(stream: Iterator[bytes], name: bytes, *, most: int) -> Iterator[bytes]:
    """Yield what *stream* is without its coding *name*, until that ends or is broken.

    At most *most* bytes of it are read: codings have ways to say nothing at any length. A stream that is
    not coded at all comes as it is.
    """
    decode = _DECODERS[name]()
    held: list[bytes] | None = []
    try:
        for block in stream:
            if held is not None:
                held.append(block)
            for start in range(0, len(block), _PIECE):
                for piece in decode(block[start : start + _PIECE]):
                    if piece:
                        held = None
                    yield piece
            most -= len(block)
            if most < 0:
                return
            if held is not None and sum(map(len, held)) > _PIECE:
                held = None
    except (zlib.error, brotli.error, zstandard.ZstdError, EOFError, ValueError):
        # What could be decoded has been.
        if held and not b"".join(held).startswith(_BEGINNINGS.get(name, ())):
            yield from held
            yield from stream


class _Inflate:
    """gzip, zlib, and the bare deflate that servers also mean by `deflate`."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._decoder = zlib.decompressobj(window)
        self._start: bytes | None = b""
        """Octets of the beginning of a stream, while they are too few to tell its kind."""
        self._members = 0

    def __call__(self, piece: bytes) -> Iterator[bytes]:
        piece = piece if self._start is None else self._begun(self._start + piece)
        while piece:
            before = self._decoder.copy()
            try:
                yield self._decoder.decompress(piece, _PIECE)
            except zlib.error:
                # What was decoded before the fault, as of a wrong checksum, did not come out.
                for place in range(len(piece)):
                    yield before.decompress(piece[place : place + 1], _PIECE)
                raise
            piece = self._decoder.unconsumed_tail
            if self._decoder.eof:
                if self._window <= zlib.MAX_WBITS:
                    raise EOFError
                # A gzip body may have several members.
                piece = self._begun(self._decoder.unused_data)

    def _begun(self, piece: bytes) -> bytes:
        """Return *piece*, which begins a stream, or nothing while it is too short to tell its kind."""
        if len(piece) < 2:
            self._start = piece
            return b""
        self._start = None
        if self._window <= zlib.MAX_WBITS:
            self._decoder = zlib.decompressobj(self._window if _is_zlib(piece) else -zlib.MAX_WBITS)
            return piece
        self._members += 1
        if not piece.startswith(b"\x1f\x8b") or self._members > _MOST_MEMBERS:
            raise EOFError  # other bytes behind its end do not belong to it
        self._decoder = zlib.decompressobj(self._window)
        return piece


def _is_zlib(piece: bytes) -> bool:
    """Return whether *piece* begins with a header of RFC 1950."""
    return piece[0] & 0x0F == 8 and (piece[0] << 8 | piece[1]) % 31 == 0


class _Brotli:
    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()

    def __call__(self, piece: bytes) -> Iterator[bytes]:
        output = self._decoder.process(piece, output_buffer_limit=_PIECE)
        # It may be ready for more input while there is still output to be had of what it has.
        while output:
            yield output
            if self._decoder.is_finished():
                raise EOFError
            output = self._decoder.process(b"", output_buffer_limit=_PIECE)


class _Zstd:
    """zstd by its buffers: its own streams would make whatever a block stands for at once, 128 KiB."""

    def __init__(self) -> None:
        self._decoder = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()

    def __call__(self, piece: bytes) -> Iterator[bytes]:
        # A block of 4 bytes may stand for 128 KiB: fed in steps, one step stays within megabytes.
        for start in range(0, len(piece), 256):
            yield self._decoder.decompress(piece[start : start + 256])
            if self._decoder.eof:
                raise EOFError


_DECODERS: dict[bytes, Callable[[], _Decoder]] = {
    b"gzip": lambda: _Inflate(16 + zlib.MAX_WBITS),
    b"x-gzip": lambda: _Inflate(16 + zlib.MAX_WBITS),
    b"deflate": lambda: _Inflate(zlib.MAX_WBITS),
    b"br": _Brotli,
    b"zstd": _Zstd,
}


UTF_8 = "utf-8"

_MARKS = ((b"\xef\xbb\xbf", UTF_8), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_PARAMETER = re.compile(r"""(?i)charset\s*=\s*["']?([A-Za-z0-9_:.+-]{1,40})""")
_DECLARED = re.compile(
    rb"""(?i)<meta[^>]{0,300}?\scharset\s*=\s*["']?([A-Za-z0-9_:.+-]{1,40})"""
    rb"""|<meta[^>]{0,300}?[\s;"']charset\s*=\s*([A-Za-z0-9_:.+-]{1,40})"""
    rb"""|<\?xml[^>]{0,100}?\sencoding\s*=\s*["']([A-Za-z0-9_:.+-]{1,40})"""
    rb"""|\A@charset "([A-Za-z0-9_:.+-]{1,40})";"""
)
_LOOKED_AT = 2048
"""Bytes in which a document has to declare its character set; browsers want it in the first 1,024."""

_KNOWN = frozenset(
    [UTF_8, "cp866", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp874"]
    + [f"cp125{number}" for number in range(9)]
    + [f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)]
    + ["gb18030", "big5hkscs", "euc_jp", "cp932", "iso2022_jp", "cp949", "utf-16-le", "utf-16-be"]
)
# What pages call Latin-1 is Windows-1252 in every browser; the others are subsets of their heirs too.
_HEIRS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
_LABELS = {
    **dict.fromkeys(("x-sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("x-euc-jp", "cseucpkdfmtjapanese"), "euc_jp"),
    **dict.fromkeys(("x-gbk", "gb_2312", "gb_2312-80", "csgb2312"), "gb18030"),
    **dict.fromkeys(("cn-big5", "x-x-big5"), "big5hkscs"),
    **dict.fromkeys(
        ("windows-949", "cseuckr", "csksc56011987", "iso-ir-149", "ks_c_5601-1989", "ksc_5601"), "cp949"
    ),
    **dict.fromkeys(("windows-874", "dos-874"), "cp874"),
    **dict.fromkeys(("iso-8859-8-i", "logical", "visual"), "iso8859-8"),
    **dict.fromkeys(("koi", "koi8"), "koi8-r"),
    "koi8-ru": "koi8-u",
    **dict.fromkeys(("x-mac-cyrillic", "x-mac-ukrainian"), "mac-cyrillic"),
    **dict.fromkeys(("x-mac-roman", "csmacintosh"), "mac-roman"),
    **{f"x-cp125{number}": f"cp125{number}" for number in range(9)},
}
"""Labels of the web (WHATWG Encoding, "names and labels") that Python does not know."""
_NOT_ASCII_INSIDE = frozenset({"utf-16-le", "utf-16-be", "iso2022_jp"})
"""In these, a byte that looks like ASCII need not be."""


def charset_of(payload: bytes, content_type: str = "") -> str:
    """Return the name, as Python has it, of the character set of *payload*, sent as *content_type*."""
    for mark, charset in _MARKS:
        if payload.startswith(mark):
            return charset
    sent = _PARAMETER.search(content_type)
    if sent and (known := _known(sent[1])):
        return known
    declared = _DECLARED.search(payload[:_LOOKED_AT])
    if declared is None:
        return UTF_8
    charset = _known(next(filter(None, declared.groups())).decode("ascii")) or UTF_8
    # A declaration that could be read as ASCII is not in UTF-16, whatever it says.
    return UTF_8 if charset.startswith("utf-16") else charset


@lru_cache(maxsize=256)
def _known(label: str) -> str | None:
    label = label.lower()
    try:
        name = codecs.lookup(_LABELS.get(label, label)).name
    except (LookupError, ValueError):
        return None
    name = _HEIRS.get(name, name)
    return name if name in _KNOWN else None


def markup_in(payload: bytes, content_type: str) -> tuple[bytes, str]:
    """Return *payload*, sent as *content_type*, so that markup in it is ASCII, and its character set."""
    charset = charset_of(payload, content_type)
    if charset not in _NOT_ASCII_INSIDE:
        return payload, charset
    return payload.decode(charset, "replace").encode(), UTF_8


def text_in(octets: bytes, charset: str) -> str:
    """Return *octets* as text; one that is not of *charset* becomes a lone surrogate, where it can."""
    if octets.isascii():
        return octets.decode("ascii")
    try:
        return octets.decode(charset, "surrogateescape")
    except UnicodeDecodeError:  # stateful character sets can stumble over octets below 0x80
        return octets.decode(charset, "replace")
