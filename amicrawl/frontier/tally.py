"""How many different keys were seen under a subject, up to a threshold, in bounded memory.

The subjects used longest ago are forgotten first: what is forgotten has to be gathered again. A subject
takes some 170 bytes, and 8 more for each key.
"""

from __future__ import annotations

from collections import OrderedDict
from struct import Struct

_WIDTH = 8
_pack = Struct("<Q").pack


class DistinctTally:
    """Keys, 64 bits each, under at most *limit* subjects, each until it has *threshold* of them."""

    __slots__ = ("_limit", "_subjects", "_threshold")

    def __init__(self, threshold: int, *, limit: int) -> None:
        self._threshold = threshold
        self._limit = limit
        # Keys lie packed one behind the other: a set of sixteen takes ten times the room.
        self._subjects: OrderedDict[bytes, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._subjects)

    def add(self, subject: bytes, key: int) -> bool:
        """Note *key* under *subject*, and return whether that makes the threshold.

        A subject that made it is forgotten, and begins anew.
        """
        subjects = self._subjects
        keys = subjects.get(subject, b"")
        packed = _pack(key)
        if not _holds(keys, packed):
            keys += packed
        if len(keys) >= self._threshold * _WIDTH:
            subjects.pop(subject, None)
            return True
        subjects[subject] = keys
        subjects.move_to_end(subject)
        if len(subjects) > self._limit:
            subjects.popitem(last=False)
        return False


def _holds(keys: bytes, packed: bytes) -> bool:
    at = keys.find(packed)
    while at > 0 and at % _WIDTH:
        at = keys.find(packed, at + 1)
    return at >= 0
