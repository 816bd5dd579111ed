r"""What a byte signature begins with, and what else it demands, so that few have to be tried. Pure.

The expressions are those of Fido: `(?s)\A.{0,1024}\x3c(?:HTML|html)`. Of this one the opening is one of
the literals `<HTML` and `<html`, at byte 0 to 1,024. Where nothing certain can be said, there is none.
"""

from __future__ import annotations

import re
from itertools import product
from typing import NamedTuple

LONGEST = 24
"""Bytes of a literal that are made out."""
SHORTEST = 4
"""Bytes that a literal should have; shorter ones are met everywhere."""
MOST = 32
"""Literals that an opening may have."""

_GAP = re.compile(r"\.(?:\{(\d+)(?:(,)(\d*))?\}|(\*)|(?![?+]))\??")
_REPEATED = re.compile(r"(?:[?*+]|\{[0-9,]+\})[?+]?")
_ESCAPED = {"n": b"\n", "r": b"\r", "t": b"\t", "f": b"\f", "v": b"\v"}


class SignatureOpening(NamedTuple):
    """What has to be there for a signature to match."""

    least: int
    """First byte at which a literal may stand."""
    most: int | None
    """Last byte at which it may begin; None where that is open."""
    literals: tuple[bytes, ...]


def opening_of(expression: str) -> SignatureOpening | None:
    """Return the opening of *expression*, or None where none can be made out."""
    rest = expression.removeprefix("(?s)")
    is_anchored = rest.startswith(r"\A")
    if _has_alternatives(rest):
        return None
    position = 2 if is_anchored else 0
    least, most = 0, (0 if is_anchored else None)
    while (gap := _GAP.match(rest, position)) is not None:
        low, high = _gap(gap)
        least += low
        most = None if most is None or high is None else most + high
        position = gap.end()
    literals, position = _literals(rest, position)
    while not is_anchored and _is_short(literals) and (gap := _GAP.match(rest, position)) is not None:
        # What stands anywhere may be looked for by any of its parts: here by the next one.
        further, position = _literals(rest, gap.end())
        literals = further if not _is_short(further) else literals
    return SignatureOpening(least, most, literals) if literals else None


def literals_in(expression: str) -> list[bytes]:
    """Return literals that all have that *expression* matches, wherever they stand; none is wrong."""
    rest = expression.removeprefix("(?s)")
    if _has_alternatives(rest):
        return []
    found = [b""]
    position = 0
    while position < len(rest):
        choices, end = _atom(rest, position)
        if rest[position] == "(" and not choices:
            end = _end_of_group(rest, position)
        repeated = _REPEATED.match(rest, end)
        if repeated is None and len(choices) == 1:
            found[-1] += choices[0]
        elif found[-1]:
            found.append(b"")
        position = end if repeated is None else repeated.end()
    return [each for each in found if each]


def _gap(match: re.Match[str]) -> tuple[int, int | None]:
    low, comma, high, star = match.groups()
    if star:
        return 0, None
    if low is None:
        return 1, 1
    if not comma:
        return int(low), int(low)
    return int(low), int(high) if high else None


def _has_alternatives(rest: str) -> bool:
    """Return whether there is a `|` outside every group."""
    depth, position = 0, 0
    while position < len(rest):
        char = rest[position]
        if char == "\\":
            position += 1
        elif char == "[":
            position = _end_of_class(rest, position) - 1
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and not depth:
            return True
        position += 1
    return False


def _is_short(literals: tuple[bytes, ...]) -> bool:
    return not literals or min(map(len, literals)) < SHORTEST


def _literals(rest: str, position: int) -> tuple[tuple[bytes, ...], int]:
    """Return what the row of atoms from *position* on can be, as far as that is few and certain.

    And the place of the first atom that is not part of it.
    """
    found: list[bytes] = [b""]
    end = position
    while position < len(rest) and len(found[0]) < LONGEST:
        end = position
        choices, position = _atom(rest, position)
        if not choices or rest[position : position + 1] in ("?", "*", "+", "{"):
            break
        if len(found) * len(choices) > MOST:
            break
        found = [front + back for front, back in product(found, choices)]
        end = position
    literals = tuple(dict.fromkeys(each[:LONGEST] for each in found)) if all(found) else ()
    return literals, end


def _atom(rest: str, position: int) -> tuple[list[bytes], int]:
    """Return what the atom at *position* can be, nothing where that is not known, and where it ends."""
    char = rest[position]
    if char == "\\":
        return _escape(rest, position)
    if char == "[":
        end = _end_of_class(rest, position)
        return _class(rest[position + 1 : end - 1]), end
    if rest.startswith("(?:", position):
        return _group(rest, position + 3)
    if char in ".()|^$?*+{":
        return [], position + 1
    return [char.encode()], position + 1


def _escape(rest: str, position: int) -> tuple[list[bytes], int]:
    char = rest[position + 1 : position + 2]
    if char == "x":
        return [bytes([int(rest[position + 2 : position + 4], 16)])], position + 4
    if char in _ESCAPED:
        return [_ESCAPED[char]], position + 2
    if char.isalnum():
        return [], position + 2
    return [char.encode()], position + 2


def _group(rest: str, position: int) -> tuple[list[bytes], int]:
    """Return the alternatives of the group whose content begins at *position*, where all are literal."""
    choices: list[bytes] = []
    current: bytes | None = b""
    while position < len(rest):
        char = rest[position]
        if char in "|)":
            if not current:  # not literal, or empty: then what follows comes first
                return [], position
            choices.append(current)
            current = b""
            position += 1
            if char == ")":
                return choices, position
            continue
        atoms, position = _atom(rest, position)
        if len(atoms) != 1 or rest[position : position + 1] in ("?", "*", "+", "{"):
            return [], position
        current = (current or b"") + atoms[0]
    return [], position


def _end_of_group(rest: str, position: int) -> int:
    """Return the place behind the `)` of the group that begins at *position*."""
    depth = 0
    while position < len(rest):
        char = rest[position]
        if char == "[":
            position = _end_of_class(rest, position)
            continue
        depth += (char == "(") - (char == ")")
        position += 2 if char == "\\" else 1
        if not depth:
            break
    return position


def _end_of_class(rest: str, position: int) -> int:
    """Return the place behind the `]` of the class that begins at *position*."""
    position += 2 if rest[position + 1 : position + 2] in ("]", "^") else 1
    while position < len(rest) and rest[position] != "]":
        position += 2 if rest[position] == "\\" else 1
    return position + 1


def _class(inside: str) -> list[bytes]:
    """Return the bytes of a class; none where it is negated."""
    if inside.startswith("^"):
        return []
    points: list[int] = []
    position, is_range = 0, False
    while position < len(inside):
        if inside[position] == "-" and points and position + 1 < len(inside):
            is_range = True
            position += 1
            continue
        if inside[position] == "\\":
            atoms, position = _escape(inside, position)
        else:
            atoms, position = [inside[position].encode()], position + 1
        if len(atoms) != 1 or len(atoms[0]) != 1:
            return []
        if is_range:
            points.extend(range(points[-1] + 1, atoms[0][0] + 1))
        else:
            points.append(atoms[0][0])
        is_range = False
    return [bytes([point]) for point in points]
