"""The Unicode 15.0 facts that decide about host names.

A key must come out the same whatever Unicode the installed Python and `idna` package know, or a frontier
would forget its URLs with an upgrade. Later tables only add: characters that 15.0 refused are accepted,
and none of those it accepted (once lower-cased) is mapped otherwise. So mapping is left to `idna`, and
what came after 15.0 is refused by `ACCEPTED`.

A table is a row of ranges in hexadecimal, each written as the gap after the range before it and, behind
a point, its length where that is not 1. Source: the Unicode Character Database 15.0,
`IdnaMappingTable.txt` (statuses valid, mapped, ignored and deviation under STD3 rules) and
`ArabicShaping.txt`.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate


class _Table:
    """A set of characters, unpacked when first used."""

    def __init__(self, ranges: str) -> None:
        self._ranges = ranges

    @cached_property
    def _edges(self) -> list[int]:
        """The first character of every range and the first after it, in turn."""
        steps: list[int] = []
        for word in self._ranges.split():
            gap, _, length = word.partition(".")
            steps += int(gap, 16), int(length or "1", 16)
        return list(accumulate(steps))

    def __contains__(self, character: str) -> bool:
        return bisect_right(self._edges, ord(character)) % 2 == 1


def is_mark(character: str) -> bool:
    """Tell whether *character* is a combining mark (general category M)."""
    return unicodedata.category(character)[0] == "M" or character in NEW_MARKS


def is_virama(character: str) -> bool:
    """Tell whether *character* is a virama (canonical combining class 9)."""
    return unicodedata.combining(character) == 9 or character in "\U00011f41\U00011f42"


def joining_type(character: str) -> str:
    """Return L, D, R or T (transparent), or the empty string for what does not join its neighbours."""
    for letter, table in (("D", DUAL_JOINING), ("R", RIGHT_JOINING), ("L", LEFT_JOINING)):
        if character in table:
            return letter
    # ADLAM NASALIZATION MARK is a letter, yet transparent.
    if character in NEW_NONSPACING_MARKS or character == "\U0001e94b":
        return "T"
    return "T" if unicodedata.category(character) in ("Mn", "Me", "Cf") else ""


def bidi_class(character: str) -> str:
    """Return the bidirectional class of *character* by its short name."""
    known = unicodedata.bidirectional(character)
    if known:
        return known
    if character in NEW_NONSPACING_MARKS:
        return "NSM"
    return "ON" if "\U0001f000" <= character < "\U0001fb00" else "L"


NEW_NONSPACING_MARKS = _Table("""
    ECE 1002E.3 341 CBE.2 34.5 5 1 14FD 6.F AC39 45C.4
""")
"""Marks of category Mn that came with 15.0, which Python 3.11 does not know."""

NEW_MARKS = _Table("""
    CF3 1DA 1002E.3 341 CBE.2 1 30.7 3.5 14FD 6.F AC39 45C.4
""")
"""Marks of category Mn and Mc that came with 15.0."""

LEFT_JOINING = _Table("""
    A872 625A 9 228 2CA
""")
"""Joining type L."""

RIGHT_JOINING = _Table("""
    622.4 1 1 5.4 15 28.3 1.3 10.12 26 2.9 1 1 2.2 1 18.2 20 4.5 4 9 1 1 2 1D B.3 F.2 4 1.2 3.2 C6 5.2
    1 A 1.3 E 1.2 5.13 B 1B.3 1 2.2 6 1020B 1 1.2 3.5 A 3 2 A 91 1.3 3 2 1.2 1 17.4 175 210 20 1F.2
    3E.3 2.2 2 4.2 5
""")
"""Joining type R."""

DUAL_JOINING = _Table("""
    620 5 1 1.5 4.D 1.7 1.2 23.2 8.10 12.26 1.2 9 1 1.2 28.3 2 12.3 5.4 1.9 1 1 1.2 1F.B 3.F 2.4 1 2.3
    2.6 4A.21 56.5 2 1.A 1 A 1.4 2 1D 2.5 12.A 5.2 2.6 1.F F3E 18.59 E.22 1 8F95.32 624E.5 E.4 1.5 1.3
    A.4 91 1 3.3 1.2 1 2 1C.2 152.21 1 20C.3 1.11 C.3 1C.4 2.C 2E 1.2 4 2.2 1.2 1 2 5 D935.44
""")
"""Joining type D."""

ACCEPTED = _Table("""
    A1.7 1.6 1.4 1.3 1.21F 6.9A 3.3 1 6.5 1 1.14 1.11D 1.6F 1.26 2.32 2.3 1.37 8.1B 4.6 11.16 1.C0
    1.30 2.3B 2.65 E.3B 2.31 2.F 1.1C 2 1.B 5.1F 9.4A 1.A1 1.8 2.2 2.16 1.7 1 3.4 2.9 2.2 2.4 8 4.2
    1.5 2.19 2.3 1.6 4.2 2.16 1.7 1.2 1.2 1.2 2 1.5 4.2 2.3 3 7.4 1 7.11 A.3 1.9 1.3 1.16 1.7 1.2 1.5
    2.A 1.3 1.3 2 F.4 2.C 7.7 1.3 1.8 2.2 2.16 1.7 1.2 1.5 2.9 2.2 2.3 7.3 4.2 1.5 2.12 A.2 1.6 3.3
    1.4 3.2 1 1.2 3.2 3.3 3.C 4.5 3.3 1.4 2 6 E.15 5.D 1.3 1.17 1.10 2.9 1.3 1.4 7.2 1.3 2 2.4 2.A
    7.16 1.3 1.17 1.A 1.5 2.9 1.3 1.4 7.2 6.2 1.4 2.A 1.3 C.D 1.3 1.33 1.3 1.6 4.10 2.1A 1.3 1.12 3.18
    1.9 1 2.7 3 4.6 1 1.8 6.A 2.3 C.3A 4.1D 25.2 1 1.5 1.18 1 1.17 2.5 1 1.7 1.A 2.4 20.48 1.24 4.27
    1.24 1.F 1.D 25.A0 27 5 2.8F 2.E8 1.4 2.7 1 1.4 2.29 1.4 2.21 1.4 2.7 1 1.4 2.F 1.39 1.4 2.43 2.20
    3.1A 6.56 2.6 2.280 1.1C 3.59 7.16 9.18 9.14 C.D 1.3 1.2 C.34 2.28 2.A 6.A 6.6 1.7 1.B 6.59 7.2B
    5.46 A.1F 1.C 4.C 4 3.2A 2.5 B.2C 4.1A 6.B 3.3E 2.41 1.1D 2.B 6.A 6.E 2.1F 31.4D 3.2F 1.74 8.3C
    3.F 3.3C 7.2B 2.B 8.2B 5.216 2.6 2.26 2.6 2.8 1 1 1 1.1F 2.35 1.7 1 3.3 1.7 3.4 2.6 4.D 5.3 1.7
    E.3 2.7 1.C 3 8.C 1 1.8 3.15 1 3 B.2 2.6 1 3.B 1 4.D 3.21 F.21 11.3 2.2B 1.50 1.8 4.D0 1.D 2.1B7
    19.B 15.14 42.5BE 3.FD 2.20 1.15D 5.2D 1 5 2.38 7.2 E.18 9.7 1.7 1.7 1.7 1.7 1.7 1.7 1.7 1.7E
    22.1A 1.59 C.D6 2B.3F 1.56 2.2 2.63 5.2B 1.33 1.2A 1.54 C.10 44.17E 1.4 1.10 1.70B4 3.37 9.15C
    14.B8 8.CB 5.2 1 1.5 18.3B 3.A 6.38 8.46 8.C 6.74 B.1E 3.4E 1.B 4.21 1.37 9.E 2.A 2.67 18.1C A.6
    2.6 2.6 9.7 1.7 1.3C 4.7E 2.A 6.2BA4 C.17 4.31 2104.16E 2.6A 26.7 C.5 5.C 1.D 1.5 1 1.2 1.2 1.7D
    10.8B 6.12C 2.36 7 20.A 2.14 1 5.2 7.10 1.2 6.E A 6 4.2 4 D 1 3 1 1 1 1.7E 2 D.2 1.A 7.1A 6.1A
    4.41 1.1E 3.6 2.6 2.6 2.3 3.3 1.3 1.7 11.C 1.1A 1.13 1.2 1.F 2.E 22.7B 5.3 4.2D 3.58 1.D 3 2F.2E
    82.1D 3.31 F.1C 4.24 9.1E 5.2B 5.1E 1.25 4.E 2A.9E 2.A 6.24 4.24 4.28 8.34 B.C 1.F 1.7 1.2 1.B 1.F
    1.7 1.2 43.137 9.16 A.8 18.6 1.2A 1.9 45.6 2 1.2C 1.2 3 2.17 1.48 8.9 30.13 1.2 5.21 3.1B 5 40.38
    4.14 2.32 1.2 5.8 1.3 1.1D 2.3 4.A 7.9 7.40 20.27 4.C 9.36 3.1D 2.1B 5.1A 7.4 C.7 50.49 37.33 D.33
    7.2E 8.A 126.1F 1.2A 1.3 2.2 4B.2B 8.2A 16.1A 26.1C 14.17 9.4E 4.24 9.3E 1.5 D.19 7.A 6.35 1.12
    8.27 9.60 1.14 B.12 1.2F 3E.7 1 1.4 1.F 1.B 6.3B 5.A 6.4 1.8 2.2 2.16 1.7 1.2 1.5 1.A 2.2 2.3 2 6
    5.7 2.7 3.5 8B.5C 1.5 1E.48 8.A A6.36 2.26 22.45 B.A 6.D 13.3A 6.A 36.1B 2.F 4.17 B9.3C 64.53 C.8
    2 2.8 1.2 1.1E 1.2 2.C 9.A 46.8 2.2E 2.B 1B.48 8.53 D.49 7.A F6.9 1.2D 1.E A.1D 3.20 2.16 1.E 49.7
    1.2 1.2C 3 1.2 1.9 8.A 6.6 1.2 1.25 1.2 1.6 7.A 136.19 7.11 1.29 3.1C 56 F.32 D.39B 66.6F 1.5 B.C4
    A4C.63 D.430 10.16 FAA.247 21B9.239 7.1F 1.A 4.51 1.A 6.1E 2.6 A.46 A.A 1.7 1.15 5.13 2B0.5B 65.4B
    4.39 7.11 40.5 B.2 E.17F8 8.4D6 2A.9 22E7.4 1.7 1.2 1.123 F 1D.3 2 E.4 8.18C 904.6B 5.D 3.9 7.A
    2.8 125C.2E 2.17 9.74 3C.F6 A.27 2.4A 8.70 15.46 7A.14 C.14 C.57 9.19 87.55 1.47 1.2 2 2.2 2.4 1.C
    1 1.7 1.41 1.4 2.8 1.7 1.1C 1.4 1.5 1 3.7 1.154 2.124 2.2BE F.5 1.F 450.1F 6.6 D5.7 1.11 2.7 1.2
    1.5 5.3E 21 70.2D 3.E 2.A 4.2 140.1F 11.3A 5 1D0.2A 2E6.7 1.4 1.2 1.F 1.C5 2.10 29.4C 4.A 4.2
    311.44 4C.3D C2.4 1.1B 1.2 1 2 1.A 1.4 1 1 6 4 1 1 1.3 1.2 1 2 1 1 1 1 1.2 1 2.4 1.7 1.4 1.4 1 1.A
    1.11 5.3 1.5 1.11 34.2 10E.2C 4.64 C.F 2.F 1.F 1.25 15.5 1A.84 38.1D D.2C 4.9 7.2 E.6 9A.3D8 4.11
    3.D 3.77 4.5F 6.C 4 F.C 4.38 8.A 6.28 8.1E 2.2 4E.154 C.E 2.D 3.9 7.2E 1.7 8.E 4.9 7.9 7.93 1.37
    25.A 406.A6E0 20.103A 6.DE 2.1682 E.1D31 C1F.68 1.B 1.AA 1.3F 1.5F 1.5E 5E2.134B 5.1060 ADD50.F0
""")
"""Characters beyond ASCII that a host name may be written with, before mapping."""
