"""The character set of a text, and its languages.

The character set is what the bytes prove, else what is declared, else what the bytes suggest.

Bytes that are ASCII or UTF-8 prove it, whatever a server says of them. Otherwise the declaration counts,
in the order of browsers, where the bytes can be decoded so. Latin-1 and Windows-1252 do not count as
declared: many servers send them by default, and any bytes can be decoded so. Such texts, and those that
declare nothing, go to a statistical detector: chardetng, where it is installed.

Up to three languages are found by CLD2 (package pycld2). The text is decoded by the character set that
was found, and CLD2 gets further hints: the top-level domain, `Content-Language`, the character set; in
markup it sees `lang` itself. Pure, but for the packages that are loaded.
"""

from __future__ import annotations

import codecs
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from amicrawl.archive.index.sidecar.findings import Charset, Language, Languages
from amicrawl.discovery import charset_of

if TYPE_CHECKING:
    from amicrawl.archive.index.sidecar.subject import Subject


CHECKED = 64 << 10
"""Bytes that have to be readable in the character set that is declared."""
SAMPLE = 6 << 10
"""Bytes that are judged by statistics, from the first one that is not ASCII; more do not help."""
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


class Chardetng:
    """Firefox's detector for pages that declare nothing (package chardetng-py)."""

    def __init__(self) -> None:
        """Raise ImportError where the package is not installed."""
        self._detector: Any = import_module("chardetng_py").EncodingDetector
        self.version = "chardetng"

    def guess(self, sample: bytes, *, is_cut: bool, top_level_domain: str) -> tuple[str, bool]:
        """Return a name of the Encoding Standard, and whether it is more than a guess.

        A sample that *is_cut* may end inside a character.
        """
        detector = self._detector()
        detector.feed(sample, last=not is_cut)
        domain = top_level_domain.encode("ascii") or None
        name, sure = detector.guess_assess(tld=domain, allow_utf8=False)
        return name, sure


class CharsetDetector:
    """Finds the character set of a text."""

    def __init__(self, statistics: Chardetng | None = None) -> None:
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


LEAST_SHARE = 5
"""Percent of a text below which a language, but for the first, is not one of its languages.

CLD2 names up to three, some of which cover nothing: words of a menu, names, code. Of 2,000 pages of
manuals in some twenty languages, 349 had a language with a share below this; hardly any was there.
"""
TEXT_LIMIT = 128 << 10
"""Bytes of a page that are read: CLD2 needs no more to be sure."""

_CONTROLS = bytes(sorted({*range(0x20), 0x7F} - {0x09, 0x0A, 0x0D}))
_NOT_INTERCHANGED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_PLANE_ENDS = re.compile(
    "[" + "".join(f"{chr(p << 16 | 0xFFFE)}{chr(p << 16 | 0xFFFF)}" for p in range(1, 17)) + "]"
)
_HINTS = {
    "SHIFT_JIS": "SJS",
    "EUC-JP": "EUC-JP",
    "ISO-2022-JP": "JIS",
    "EUC-KR": "EUC-KR",
    "GB18030": "GB18030",
    "Big5": "BIG5",
    "KOI8-R": "KOI8R",
    "Windows-1251": "CP1251",
}
"""CLD2's names for the character sets that speak for a language."""


class Cld2:
    """Google's Compact Language Detector 2."""

    def __init__(self) -> None:
        """Raise ImportError where the package is not installed."""
        self._cld2: Any = import_module("pycld2")
        self._encodings = frozenset(self._cld2.ENCODINGS)
        self.version = f"cld2 {self._cld2.VERSION}, shares from {LEAST_SHARE} %"

    def languages(self, subject: Subject, charset: Charset, *, is_markup: bool) -> Languages | None:
        """Return the languages of *subject*, whose bytes are of *charset*; None where none is known."""
        hints: dict[str, str] = {}
        if subject.top_level_domain:
            hints["hintTopLevelDomain"] = subject.top_level_domain
        if subject.language_hint:
            hints["hintLanguageHTTPHeaders"] = subject.language_hint
        encoding = _HINTS.get(charset.name, "")
        if encoding in self._encodings:
            hints["hintEncoding"] = encoding
        text = _interchanged(subject.content[:TEXT_LIMIT], charset)
        try:
            reliable, size, found = self._detect(text, hints, is_markup=is_markup)
        except self._cld2.error:
            cleaned = _cleaned(text.decode("utf-8", "replace"))
            reliable, size, found = self._detect(cleaned, hints, is_markup=is_markup)
        known = [each for each in found if each[0].lower() != "unknown"]
        languages = tuple(
            Language(name, code, covered, float(score))
            for place, (name, code, covered, score) in enumerate(known)
            if covered >= LEAST_SHARE or not place
        )
        return Languages(bool(reliable), size, languages) if languages else None

    def _detect(self, text: bytes, hints: dict[str, str], *, is_markup: bool) -> Any:
        return self._cld2.detect(text, isPlainText=not is_markup, bestEffort=True, **hints)


def _interchanged(content: bytes, charset: Charset) -> bytes:
    """Return *content* in UTF-8, without the control characters of ASCII."""
    if charset.codec != "ascii":
        content = read(content, charset).encode("utf-8", "replace")
    return content.translate(None, _CONTROLS)


def _cleaned(text: str) -> bytes:
    """Return *text* in UTF-8, without what Unicode says is not for interchange."""
    return _PLANE_ENDS.sub("", _NOT_INTERCHANGED.sub("", text)).encode("utf-8", "replace")
