"""What the detectors find: as the block of a metadata record, and as fields of a CDXJ line. Pure.

A block is lines joined by line feeds, the last without one; a line is there where something was found:

    Identified-Payload-Type: {"fido": "text/html", "python-magic": "text/html"}
    Preservation-Identifier: fmt/99
    Charset-Detected: {"encoding": "ascii", "confidence": 1.0}
    Languages-cld2: {"reliable": true, "text-bytes": 16199, "languages": [{"name": "ENGLISH", ...}]}
    Soft-404-Detected: 0.022243
    Detection-Error: {"charset": "ValueError"}

The fields come after those that a line has; one that is there already is overwritten in its place:

    mime-detected       what libmagic says, else what amicrawl's signatures or PRONOM's say
    puid                PRONOM's identifier
    charset             the name, without its confidence
    languages           up to three ISO 639-3 codes, `eng,zho`, those of most text first
    language-shares     percent of the text that each of them covers, `83,12`; not where one is unknown
    soft-404-detected   a probability; left out where it is exactly 0
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPES = "Identified-Payload-Type"
PUID = "Preservation-Identifier"
CHARSET = "Charset-Detected"
LANGUAGES = "Languages-cld2"
SOFT_404 = "Soft-404-Detected"
ERROR = "Detection-Error"
SOURCE_FILE = "WARC-Source-Filename"
SOURCE_OFFSET = "WARC-Source-Offset"
"""Fields of a record that tie it to its source where that has no identifiers."""


OFF_BY_DEFAULT = ("soft-404",)
"""Detectors that run only where a user requests them: this one marks one page of a manual in ten."""


class Charset(NamedTuple):
    """A character set."""

    name: str
    """As chardet spells it: `ascii`, `utf-8`, `Windows-1252`."""
    codec: str
    """The codec of Python that reads it."""
    confidence: float
    """0 to 1."""


class Language(NamedTuple):
    """One of the languages of a text, under the names that CLD2 has for its figures."""

    name: str
    code: str
    """CLD2's: ISO 639-1 mostly, but `iw`, `zh-Hant`, `xx-Cher`."""
    covered: int
    """Percent of the text."""
    score: float


class Languages(NamedTuple):
    """The languages of a text."""

    reliable: bool
    text_bytes: int
    """Bytes of text in UTF-8, markup left out."""
    languages: tuple[Language, ...]
    """Up to three, the one that covers most first."""


class TypeIdentity(NamedTuple):
    """What one detector of types takes a payload for."""

    media_type: str = ""
    puid: str = ""
    """PRONOM's identifier; empty where there is none."""


@dataclass(slots=True)
class Findings:
    """All that was found out about one payload."""

    types: dict[str, str] = field(default_factory=dict)
    """Media types by the detector that says so, `fido` first."""
    puid: str = ""
    charset: Charset | None = None
    languages: Languages | None = None
    soft_404: float | None = None
    """The probability that the page says that there is no such page."""
    errors: dict[str, str] = field(default_factory=dict)
    """Detectors that failed, and at what."""

    def is_empty(self) -> bool:
        """Return whether there is nothing to say."""
        return not (self.types or self.puid or self.charset or self.languages or self.errors) and (
            self.soft_404 is None
        )


def encode_block(found: Findings) -> bytes:
    """Return the block of a metadata record that holds *found*."""
    lines = []
    if found.types:
        lines.append(f"{TYPES}: {_json(found.types)}")
    if found.puid:
        lines.append(f"{PUID}: {found.puid}")
    if found.charset is not None:
        charset = {"encoding": found.charset.name, "confidence": found.charset.confidence}
        lines.append(f"{CHARSET}: {_json(charset)}")
    if found.languages is not None:
        lines.append(f"{LANGUAGES}: {_json(_languages(found.languages))}")
    if found.soft_404 is not None:
        lines.append(f"{SOFT_404}: {_json(found.soft_404)}")
    if found.errors:
        lines.append(f"{ERROR}: {_json(found.errors)}")
    return "\n".join(lines).encode("ascii", "replace")


def parse_block(block: bytes) -> dict[str, Any]:
    """Return the lines of *block* by name: JSON as what it stands for, anything else as text.

    A line without a colon is passed over, and of repeated names the first counts. Sidecars of other
    tools read the same way.
    """
    fields: dict[str, Any] = {}
    for line in block.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if colon and name not in fields:
            fields[name] = _value(value.strip())
    return fields


def _value(text: str) -> Any:
    try:
        # Not `json`, which takes numbers that no float holds, and halves of a surrogate pair.
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _languages(found: Languages) -> dict[str, Any]:
    return {
        "reliable": found.reliable,
        "text-bytes": found.text_bytes,
        "languages": [
            {"name": name, "code": code, "text-covered": covered, "score": score}
            for name, code, covered, score in found.languages
        ],
    }


def _json(value: Mapping[str, Any] | float) -> str:
    return json.dumps(value)


SHARES = "language-shares"
"""The field that merge_cdxj does not write."""
ADDED = ("mime-detected", "puid", "charset", "languages", SHARES, "soft-404-detected")
"""The fields, in their order."""
MOST_LANGUAGES = 3

_ADDED = frozenset(ADDED)

# ISO 639-1 and the terminology code of ISO 639-3, two letters and three at a time; the last rows hold
# what language detectors say besides: withdrawn codes.
_TWO_TO_THREE = """
aaaar ababk aeave afafr akaka amamh anarg arara asasm avava ayaym azaze babak bebel bgbul bibis bmbam
bnben bobod brbre bsbos cacat ceche chcha cocos crcre csces cuchu cvchv cycym dadan dedeu dvdiv dzdzo
eeewe elell eneng eoepo esspa etest eueus fafas ffful fifin fjfij fofao frfra fyfry gagle gdgla glglg
gngrn guguj gvglv hahau hihin hohmo hrhrv hthat huhun hyhye hzher iaina idind ieile igibo iiiii
ikipk ioido isisl itita iuiku jajpn jvjav kakat kgkon kikik kjkua kkkaz klkal kmkhm knkan kokor krkau
kskas kukur kvkom kwcor kykir lalat lbltz lglug lilim lnlin lolao ltlit lulub lvlav mgmlg mhmah mimri
mkmkd mlmal mnmon mrmar msmsa mtmlt mymya nanau nbnob ndnde nenep ngndo nlnld nnnno nonor nrnbl nvnav
nynya ococi ojoji omorm orori ososs papan pipli plpol pspus ptpor quque rmroh rnrun roron rurus rwkin
sasan scsrd sdsnd sesme sgsag sisin skslk slslv smsmo snsna sosom sqsqi srsrp ssssw stsot susun svswe
swswa tatam tetel tgtgk ththa titir tktuk tltgl tntsn toton trtur tstso tttat twtwi tytah uguig ukukr
ururd uzuzb veven vivie vovol wawln wowol xhxho yiyid yoyor zazha zhzho zuzul
heheb iwheb jwjav jiyid inind moron shhbs
"""
_CODES = {pair[:2]: pair[2:] for pair in _TWO_TO_THREE.split()}
_OTHERS = """
ceb chr cop crs fil got haw hmn kha lif lua luo mfe new nso pam raj rup sco sux syr tlh tum war zxx
"""
_THREE_LETTERS = frozenset(_OTHERS.split())


def added_fields(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the sidecar's *found*, by the names of its lines, gives."""
    fields: dict[str, Any] = {}
    types = found.get(TYPES)
    if isinstance(types, dict) and isinstance(
        kind := types.get("python-magic") or types.get("amicrawl") or types.get("fido"), str
    ):
        fields["mime-detected"] = kind
    if isinstance(puid := found.get(PUID), str):
        fields["puid"] = puid
    charset = found.get(CHARSET)
    if isinstance(charset, dict) and isinstance(name := charset.get("encoding"), str):
        fields["charset"] = name
    fields |= _language_fields(found.get(LANGUAGES))
    probability = found.get(SOFT_404)
    if type(probability) in (int, float) and probability and isfinite(probability):
        fields["soft-404-detected"] = probability
    return fields


def written(fields: Mapping[str, Any]) -> bytes:
    """Return *fields* as JSON, without the braces of the object."""
    probability = fields.get("soft-404-detected")
    if probability is None:
        return _written(tuple(fields.items()))
    # It is the last, and hardly ever the same twice.
    rest = _written(tuple(fields.items())[:-1])
    last = b'"soft-404-detected": %s' % repr(probability).encode("ascii")
    return b"%s, %s" % (rest, last) if rest else last


@lru_cache(maxsize=16_384)
def _written(items: tuple[tuple[str, str], ...]) -> bytes:
    # What is found repeats: most pages of a site are alike.
    return json.dumps(dict(items))[1:-1].encode("ascii")


def with_fields(line: bytes, fields: dict[str, Any], addition: bytes, *, anew: bool = False) -> bytes:
    """Return the CDXJ *line*, which has *fields*, with those of *addition*, as `written` returns them.

    The line's own fields keep their spelling, unless one of them is replaced, or *anew* names the
    whole object to be serialized again, with no other fields than merge_cdxj gives it.
    """
    if not addition:
        return line if not anew else _again(line, fields, addition, as_merge_cdxj=True)
    body = line.rstrip()
    if anew or not fields or not _ADDED.isdisjoint(fields):
        return _again(line, fields, addition, as_merge_cdxj=anew)
    return b"%s, %s}" % (body[:-1], addition)


def _again(line: bytes, fields: dict[str, Any], addition: bytes, *, as_merge_cdxj: bool) -> bytes:
    key, timestamp, _ = line.split(b" ", 2)
    added = orjson.loads(b"{%s}" % addition)
    if as_merge_cdxj:
        added.pop(SHARES, None)
    fields = fields | added
    return b"%s %s %s" % (key, timestamp, json.dumps(fields).encode("ascii"))


def language_code(code: str) -> str | None:
    """Return the ISO 639-3 code of *code*, as CLD2 writes languages; None where it has none."""
    base = code.partition("-")[0].lower()
    return _CODES.get(base) or (base if base in _THREE_LETTERS else None)


def _language_fields(found: object) -> dict[str, str]:
    listed = found.get("languages") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        return {}
    known = [
        each
        for each in listed[:MOST_LANGUAGES]
        if isinstance(each, dict) and isinstance(each.get("code"), str)
    ]
    covered = tuple(each.get("text-covered") for each in known)
    shares = tuple(each for each in covered if type(each) is int)
    return language_fields(tuple(each["code"] for each in known), shares)


def language_fields(codes: tuple[str, ...], shares: tuple[int, ...]) -> dict[str, str]:
    """Return `languages` and `language-shares` for CLD2's *codes*, at most three, and percents.

    Shares are left out unless each code has one from 0 to 100.
    """
    known = [(place, code) for place, each in enumerate(codes) if (code := language_code(each))]
    if not known:
        return {}
    fields = {"languages": ",".join(code for _, code in known)}
    if len(shares) == len(codes) and all(0 <= share <= 100 for share in shares):
        fields[SHARES] = ",".join(str(shares[place]) for place, _ in known)
    return fields
