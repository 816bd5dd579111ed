"""What makes a label of a host name valid: UTS #46, section 4.1, with hyphen, joiner and Bidi checks.

The rules for zero-width joiners (RFC 5892, appendix A) are read as leniently as in the software whose
keys ours must equal: between a non-joiner and what follows it, only a left-joining letter or the end of
the label is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.urls.refusal import Reason, Refused
from amicrawl.urls.unicode15 import bidi_class, is_mark, is_virama, joining_type

if TYPE_CHECKING:
    from collections.abc import Iterable

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
            # Behind a virama a joiner asks for nothing more; elsewhere something must follow it.
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
