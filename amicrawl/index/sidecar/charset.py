"""The character set of a text: what its bytes prove, else what is declared, else what they suggest.

Bytes that are ASCII or UTF-8 prove it, whatever a server says of them. Otherwise the declaration counts,
in the order of browsers, where the bytes can be decoded so. Latin-1 and Windows-1252 do not count as
declared: many servers send them by default, and any bytes can be decoded so. Such texts, and those that
declare nothing, go to a statistical detector: chardetng, where it is installed.

Pure, but for the package that is loaded.
"""

from __future__ import annotations

import codecs
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from amicrawl.discovery.charset import charset_of
from amicrawl.index.sidecar.findings import Charset

if TYPE_CHECKING:
    from amicrawl.index.sidecar.subject import Subject

CHECKED = 64 << 10
"""Bytes that have to be readable in the character set that is declared."""
SAMPLE = 6 << 10
"""Bytes that are judged by statistics, from the first on that is not ASCII: more tell no more."""
PROVEN = 0.99
DECLARED = 0.9
LIKELY = 0.8
DOUBTFUL = 0.5

_WESTERN = Charset("Windows-1252", "cp1252", DOUBTFUL)
_MARKS = (
    (b"\xef\xbb\xbf", Charset("UTF-8-SIG", "utf-8-sig", 1.0)),
    (b"\xff\xfe\x00\x00", Charset("UTF-32", "utf-32", 1.0)),
    (b"\x00\x00\xfe\xff", Charset("UTF-32", "utf-32", 1.0)),
    (b"\xff\xfe", Charset("UTF-16", "utf-16", 1.0)),
    (b"\xfe\xff", Charset("UTF-16", "utf-16", 1.0)),
)
_ASCII = Charset("ascii", "ascii", 1.0)
_UTF_8 = Charset("utf-8", "utf-8", PROVEN)
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_ESCAPES = (b"\x1b$", b"\x1b(J")
_SPELLED = {
    "utf-16-be": "UTF-16BE",
    "utf-16-le": "UTF-16LE",
    "iso2022_jp": "ISO-2022-JP",
    "cp932": "SHIFT_JIS",
    "euc_jp": "EUC-JP",
    "cp949": "EUC-KR",
    "gb18030": "GB18030",
    "big5hkscs": "Big5",
    "cp874": "TIS-620",
    "cp866": "IBM866",
    "koi8-r": "KOI8-R",
    "koi8-u": "KOI8-U",
    "mac-roman": "MacRoman",
    "mac-cyrillic": "MacCyrillic",
}
"""chardet's names for codecs; those of Windows and ISO are made up of theirs."""
_CODECS = {
    "big5": "big5hkscs",
    "euc-jp": "euc_jp",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "ibm866": "cp866",
    "iso-2022-jp": "iso2022_jp",
    "iso-8859-8-i": "iso8859-8",
    "macintosh": "mac-roman",
    "shift_jis": "cp932",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
}
"""Codecs for the names of WHATWG's Encoding Standard that Python has others for, or other readings."""


class Statistics(Protocol):
    """Detects character sets by statistics."""

    version: str

    def guess(self, sample: bytes, *, is_cut: bool, top_level_domain: str) -> tuple[str, bool]:
        """Return a name of the Encoding Standard, and whether it is more than a guess.

        A sample that *is_cut* may end inside a character.
        """
        ...


class Chardetng:
    """Firefox's detector for pages that declare nothing (package chardetng-py)."""

    def __init__(self) -> None:
        """Raise ImportError where the package is not installed."""
        self._detector: Any = import_module("chardetng_py").EncodingDetector
        self.version = "chardetng"

    def guess(self, sample: bytes, *, is_cut: bool, top_level_domain: str) -> tuple[str, bool]:
        """Return a name of the Encoding Standard, and whether it is more than a guess."""
        detector = self._detector()
        detector.feed(sample, last=not is_cut)
        domain = top_level_domain.encode("ascii") or None
        name, sure = detector.guess_assess(tld=domain, allow_utf8=False)
        return name, sure


class CharsetDetector:
    """Finds the character set of a text."""

    def __init__(self, statistics: Statistics | None = None) -> None:
        self._statistics = statistics
        self.version = "declared" if statistics is None else f"declared+{statistics.version}"

    def charset(self, subject: Subject) -> Charset | None:
        """Return the character set of *subject*, a text; None where it is empty."""
        content = subject.content
        if not content:
            return None
        if (proven := _proven(content, is_whole=subject.is_whole)) is not None:
            return proven
        codec = charset_of(content, subject.content_type)
        if codec not in ("utf-8", "cp1252") and _reads(content, codec):
            return Charset(spelled(codec), codec, DECLARED)
        if self._statistics is None:
            return _WESTERN
        return self._suggested(content, subject)

    def _suggested(self, content: bytes, subject: Subject) -> Charset:
        assert self._statistics is not None
        first = _NOT_ASCII.search(content)
        start = max(0, first.start() - 64) if first else 0
        sample = content[start : start + SAMPLE]
        name, sure = self._statistics.guess(
            sample,
            is_cut=start + SAMPLE < len(content) or not subject.is_whole,
            top_level_domain=subject.top_level_domain,
        )
        codec = _CODECS.get(name.lower(), name)
        try:
            codec = codecs.lookup(codec).name
        except LookupError:
            return _WESTERN
        return Charset(spelled(codec), codec, LIKELY if sure else DOUBTFUL)


def spelled(codec: str) -> str:
    """Return chardet's name for *codec*, as Python calls it."""
    if codec in _SPELLED:
        return _SPELLED[codec]
    if codec.startswith("cp125"):
        return f"Windows-{codec[2:]}"
    return f"ISO-8859-{codec[8:]}" if codec.startswith("iso8859-") else codec


def read(content: bytes, charset: Charset) -> str:
    """Return *content* as text; what is not of *charset* becomes a replacement character."""
    try:
        return content.decode(charset.codec, "replace")
    except (LookupError, UnicodeError):  # UTF-16 without its mark, and codecs that stumble
        return content.decode("latin-1")


def _proven(content: bytes, *, is_whole: bool) -> Charset | None:
    for mark, charset in _MARKS:
        if content.startswith(mark):
            return charset
    if content.isascii():
        if any(escape in content for escape in _ESCAPES) and _reads(content, "iso2022_jp"):
            return Charset("ISO-2022-JP", "iso2022_jp", PROVEN)
        return _ASCII
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        # One that was cut may end inside a character; one that is whole may not.
        if is_whole or error.start < len(content) - 3:
            return None
    return _UTF_8


def _reads(content: bytes, codec: str) -> bool:
    try:
        content[:CHECKED].decode(codec)
    except UnicodeDecodeError as error:
        return len(content) > CHECKED and error.start >= CHECKED - 4
    except (LookupError, UnicodeError):
        return False
    return True
