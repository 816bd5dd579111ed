"""What a sidecar found, as fields of a CDXJ line. Pure.

    mime-detected       what libmagic says, else what amicrawl's signatures or PRONOM's say
    puid                PRONOM's identifier
    charset             the name, without its confidence
    languages           up to three ISO 639-3 codes, `eng,zho`, those of most text first
    soft-404-detected   a probability; left out where it is exactly 0

They go behind the fields that a line has; one that is there already is written over in its place.
"""

from __future__ import annotations

import json
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

import orjson

from amicrawl.index.sidecar.findings import CHARSET, LANGUAGES, PUID, SOFT_404, TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDED = ("mime-detected", "puid", "charset", "languages", "soft-404-detected")
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
    if codes := _languages(found.get(LANGUAGES)):
        fields["languages"] = codes
    probability = found.get(SOFT_404)
    if type(probability) in (int, float) and probability and isfinite(probability):
        fields["soft-404-detected"] = probability
    return fields


def written(fields: Mapping[str, Any]) -> bytes:
    """Return *fields* as they stand within an object."""
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
    """Return the CDXJ *line*, which has *fields*, with those of *addition*, as `written` made it.

    What the line says already stays as it is spelled, unless a field is there twice now, or *anew* asks
    for the whole object to be written again.
    """
    if not addition:
        return line if not anew else _again(line, fields, addition)
    body = line.rstrip()
    if anew or not fields or not _ADDED.isdisjoint(fields):
        return _again(line, fields, addition)
    return b"%s, %s}" % (body[:-1], addition)


def _again(line: bytes, fields: dict[str, Any], addition: bytes) -> bytes:
    key, timestamp, _ = line.split(b" ", 2)
    fields = fields | orjson.loads(b"{%s}" % addition)
    return b"%s %s %s" % (key, timestamp, json.dumps(fields).encode("ascii"))


def language_code(code: str) -> str | None:
    """Return the ISO 639-3 code of *code*, as CLD2 writes languages; None where it has none."""
    base = code.partition("-")[0].lower()
    return _CODES.get(base) or (base if base in _THREE_LETTERS else None)


def _languages(found: object) -> str:
    listed = found.get("languages") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        return ""
    return languages_of(
        tuple(
            each.get("code")
            for each in listed[:MOST_LANGUAGES]
            if isinstance(each, dict) and isinstance(each.get("code"), str)
        )
    )


@lru_cache(maxsize=4096)
def languages_of(codes: tuple[str, ...]) -> str:
    """Return what is said of the languages with *codes*, as CLD2 writes them, no more than three."""
    return ",".join(filter(None, map(language_code, codes)))
