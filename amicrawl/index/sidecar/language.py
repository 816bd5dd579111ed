"""The languages of a text: up to three, by CLD2 (package pycld2), with the figures that it gives.

The text is decoded by the character set that was found, and CLD2 gets further hints of its language:
the top-level domain, `Content-Language`, the character set; in markup it sees `lang` itself. Pure, but
for the package that is loaded.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from amicrawl.index.sidecar.charset import read
from amicrawl.index.sidecar.findings import Language, Languages

if TYPE_CHECKING:
    from amicrawl.index.sidecar.findings import Charset
    from amicrawl.index.sidecar.subject import Subject

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
        self.version = f"cld2 {self._cld2.VERSION}"

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
        languages = tuple(
            Language(name, code, covered, float(score))
            for name, code, covered, score in found
            if name.lower() != "unknown"
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
