"""Host names: from what people write to what is looked up.

`canonical_host` is UTS #46 in its look-up configuration: non-transitional, STD3 ASCII rules, hyphen,
joiner and Bidi checks, ACE labels decoded and validated, DNS lengths not checked. `lookup_name` is what
a fetch uses: it maps names the same way, but requires only characters that a name can be looked up by.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING

import idna

from amicrawl.urls.grammar import Reason, Refused
from amicrawl.urls.unicode15 import ACCEPTED, bidi_class, is_mark, is_virama, joining_type

if TYPE_CHECKING:
    from collections.abc import Iterable


LONGEST_CONVERTED = 1024
"""Characters of a name beyond ASCII, or with ACE labels, that is converted; DNS ends at 253.

The work grows with their square. Plain names have no limit, as in the software whose keys ours must
equal.
"""

_ACE = "xn--"
_LETTERS_DIGITS_HYPHENS = re.compile(r"[a-z0-9.\-\x80-\U0010ffff]*")
_WITHOUT_HYPHENS = re.compile(r"[a-z0-9.]*")
_LOOKUP_NAME = re.compile(r"[A-Za-z0-9._~\-]+")


def is_loopback(host: str) -> bool:
    """Tell whether *host*, a name or an address without brackets, is this machine to itself alone."""
    if host.casefold() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def canonical_host(name: str) -> str | Refused:
    """Return *name*, a host without port and brackets, in its one spelling.

    One trailing dot goes before mapping; a dot that mapping brings forth stays.
    """
    # Sound names are remembered. What is longer than DNS allows is hostile, and would fill the memory.
    return known_host(name) if len(name) < 256 else _canonical(name)


@lru_cache(maxsize=16_384)
def known_host(name: str) -> str | Refused:
    """Return the same for a *name* of fewer than 256 characters."""
    return _canonical(name)


def _canonical(name: str) -> str | Refused:
    name = lower(name).removesuffix(".")
    if not name:
        return Refused(Reason.NO_HOST)
    if _WITHOUT_HYPHENS.fullmatch(name):
        return name
    return _to_ascii(name)


def lower(name: str) -> str:
    """Lower-case *name* character by character, whatever stands around a character."""
    if not name.isascii():
        # The only two that str.lower() maps by what stands around them, or to two characters.
        name = name.replace("İ", "i").replace("Σ", "σ")
    return name.lower()


def _to_ascii(name: str) -> str | Refused:
    if len(name) > LONGEST_CONVERTED and (_ACE in name or not name.isascii()):
        return Refused(Reason.LONG_NAME)
    mapped = _mapped(name)
    if isinstance(mapped, Refused):
        return mapped
    if not _LETTERS_DIGITS_HYPHENS.fullmatch(mapped):
        return Refused(Reason.HOST_CHARACTER)
    right_to_left = has_right_to_left(name)
    labels: list[str] = []
    for label in mapped.split("."):
        unpacked = _unpacked(label)
        if isinstance(unpacked, Refused):
            return unpacked
        # Of a label that was written out, what counts is what stood there before mapping.
        right_to_left = right_to_left or (label.startswith(_ACE) and has_right_to_left(unpacked))
        labels.append(unpacked)
    if right_to_left and not obey_bidi_rule(labels):
        return Refused(Reason.BIDI)
    return ".".join([_encoded(label) for label in labels])


def _unpacked(label: str) -> str | Refused:
    """Return *label* decoded where it is an ACE label, if it is valid."""
    unpacked = _decoded(label) if label.startswith(_ACE) else label
    if unpacked is None:
        return Refused(Reason.PUNYCODE)
    return (fault_of(unpacked) if unpacked else None) or unpacked


def _mapped(name: str) -> str | Refused:
    """Map *name*, lower case, by UTS #46 and normalise it (NFC)."""
    if name.isascii():
        return name
    if not all(character in ACCEPTED for character in name if character > "\x7f"):
        return Refused(Reason.HOST_CHARACTER)
    return _remapped(name)


def _remapped(name: str) -> str | Refused:
    try:
        return idna.uts46_remap(name, std3_rules=False)
    except idna.IDNAError:
        return Refused(Reason.HOST_CHARACTER)


def _decoded(label: str) -> str | None:
    """Decode the ACE *label*; None where it does not decode to what mapping would leave alone."""
    basic, hyphen, rest = label[len(_ACE) :].rpartition("-")
    if hyphen and not basic:
        return None
    try:
        # What stands before the last hyphen is kept as it is, even beyond ASCII; "a" holds its place.
        decoded = f"{'a' * len(basic)}{hyphen}{rest}".encode("ascii").decode("punycode")
    except UnicodeError:
        return None
    kept = iter(basic)
    decoded = "".join([next(kept) if character == "a" else character for character in decoded])
    return decoded if _mapped(decoded) == decoded else None


def _encoded(label: str) -> str:
    return label if label.isascii() else _ACE + label.encode("punycode").decode("ascii")


def lookup_name(name: str) -> str | Refused:
    """Return *name*, a host as written, as the ASCII name that is looked up; ASCII stays as written.

    Labels that registries refuse but name servers resolve pass: underscores, hyphens anywhere.
    """
    if not name.isascii():
        if len(name) > LONGEST_CONVERTED:
            return Refused(Reason.LONG_NAME)
        mapped = _remapped(lower(name))
        if isinstance(mapped, Refused):
            return mapped
        name = ".".join(map(_encoded, mapped.split(".")))
    if not name.strip("."):
        return Refused(Reason.NO_HOST)
    return name if _LOOKUP_NAME.fullmatch(name) else Refused(Reason.HOST_CHARACTER)


_ZWNJ, _ZWJ = "\u200c", "\u200d"
_RIGHT_TO_LEFT = frozenset(("R", "AL", "AN"))
_NEUTRAL = frozenset(("ES", "CS", "ET", "ON", "BN", "NSM"))
_IN_RIGHT_TO_LEFT = _NEUTRAL | {"R", "AL", "AN", "EN"}
_IN_LEFT_TO_RIGHT = _NEUTRAL | {"L", "EN"}


def fault_of(label: str) -> Refused | None:
    """Return what is wrong with *label* (not empty, as decoded from its ACE form), or None."""
    image = label.encode()
    # The third and fourth octet, not character: so the software of the existing keys counts.
    if image[0] == 0x2D or image[-1] == 0x2D or (len(image) > 4 and image[2:4] == b"--"):
        return Refused(Reason.HYPHEN)
    if len(image) == len(label):
        return None
    if is_mark(label[0]):
        return Refused(Reason.LEADING_MARK)
    if (_ZWNJ in label or _ZWJ in label) and not _joins(label):
        return Refused(Reason.JOINER)
    return None


def _joins(label: str) -> bool:
    """Tell whether every zero-width joiner in *label* stands behind something it can act on."""
    behind_joining = behind_virama = pending = False
    for character in label:
        if character in (_ZWNJ, _ZWJ):
            if pending or not (behind_virama or (behind_joining and character == _ZWNJ)):
                return False
            # Behind a virama a joiner needs nothing more; elsewhere something must follow it.
            pending = not behind_virama
            behind_joining = behind_virama = False
            continue
        joining = joining_type(character)
        if pending and joining == "L":
            return False
        if joining != "T":
            pending = False
            behind_joining = joining in ("L", "D")
        behind_virama = is_virama(character) and not pending
    return not pending


def has_right_to_left(text: str) -> bool:
    """Tell whether a character of *text* makes its domain a Bidi domain (RFC 5893, section 1.4)."""
    return not text.isascii() and any(bidi_class(character) in _RIGHT_TO_LEFT for character in text)


def obey_bidi_rule(labels: Iterable[str]) -> bool:
    """Tell whether all of *labels*, those of a Bidi domain, keep the rule of RFC 5893, section 2."""
    return all(
        _obeys_bidi_rule([bidi_class(character) for character in label]) for label in labels if label
    )


def _obeys_bidi_rule(classes: list[str]) -> bool:
    if classes[0] in ("R", "AL"):
        allowed, final = _IN_RIGHT_TO_LEFT, _IN_RIGHT_TO_LEFT - _NEUTRAL
    elif classes[0] == "L":
        allowed, final = _IN_LEFT_TO_RIGHT, _IN_LEFT_TO_RIGHT - _NEUTRAL
    else:
        return False
    if not allowed.issuperset(classes) or {"EN", "AN"}.issubset(classes):
        return False
    last = next(kind for kind in reversed(classes) if kind != "NSM")
    return last in final
