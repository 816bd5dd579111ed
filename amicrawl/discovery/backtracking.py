"""Backtracking: how long a regular expression can take at worst, told from the expression alone. Pure.

Python's `re` tries one way after another, and some expressions have ways without number: `(a+)+b` needs
2^n steps to find nothing in n letters. A crawl searches URLs that strangers chose, so an expression is
measured before it is used. The measure errs on the safe side:

* A repetition can be left at one place only, if what may follow it cannot begin another round of it, as
  in `[^/]+/`. Otherwise it can be left at n places, and the steps multiply: `.*a.*b` takes n^2.
* A repetition whose body can itself be matched in several ways is refused: the ways multiply by each
  round. A body has several ways if it has an open repetition in it, or alternatives or an option that
  begin alike.
* An expression that is not tied to the start of the URL is tried at each of n places.

Look-arounds count as what is in them. Atomic groups and possessive repetitions are never gone back into.
"""

from __future__ import annotations

import re
from functools import cache, reduce
from importlib import import_module
from math import factorial
from operator import or_
from typing import Any, NamedTuple

STEPS = 10_000_000
"""Steps that a search may take: about a tenth of a second."""
LONGEST_URL = 2048
"""Characters of a URL that any expression is measured for."""
_SHORTEST_URL = 256
"""An expression that could not even be searched for in a URL of this length is refused."""
_FEW = 8
"""Rounds by which a repetition may vary and still count as a handful of options."""

# Private, and the one place that says how `re` reads an expression; a second reading of our own would
# differ from it. Where it has moved, this import fails and nothing is searched unmeasured.
_parser: Any = import_module("re._parser")

_ALL = (1 << 128) - 1
_END = 1 << 128
"""Stands for the end of the URL among the characters that can follow."""
_REPETITIONS = frozenset({"MAX_REPEAT", "MIN_REPEAT"})
_CLOSED = frozenset({"POSSESSIVE_REPEAT", "ATOMIC_GROUP"})
_ANYTHING = frozenset({"GROUPREF", "GROUPREF_EXISTS"})
"""What these match is not known beforehand."""
_CATEGORIES = {"DIGIT": r"\d", "WORD": r"\w", "SPACE": r"\s"}


class _RefusedError(ValueError):
    """The text says what would multiply."""


class _Ways(NamedTuple):
    """In how many ways a part can match n characters: *factor* times n to the power of *degree*."""

    degree: int = 0
    factor: int = 1
    runs: bool = False
    """Whether it walks over up to n characters in each of the ways."""


def longest_url(expression: str) -> int | str:
    """Return the characters of the longest URL that *expression* may be searched for in.

    If it could take too long in short ones already, returns why instead. Raises `re.error` for what is
    no expression, RecursionError or OverflowError for what is one only by name.
    """
    tree = list(_parser.parse(expression, re.ASCII))
    try:
        ways = _sequence(tree, 0)
    except _RefusedError as refused:
        return str(refused)
    degree = ways.degree + ways.runs + (not _is_anchored(tree))
    longest = int((STEPS * factorial(degree) / ways.factor) ** (1 / degree)) if degree else LONGEST_URL
    if ways.factor > STEPS // LONGEST_URL or longest < _SHORTEST_URL:
        return (
            "its repetitions multiply: a search could take a number of steps that grows as the length "
            f"of the URL to the power of {degree}"
        )
    return min(longest, LONGEST_URL)


def required_literal(expression: str) -> str:
    """Return the longest text that every match of *expression* contains as it stands; empty if none."""
    tree = _parser.parse(expression, re.ASCII)
    if tree.state.flags & re.IGNORECASE:
        return ""
    longest, current = "", ""
    for operation, argument in [*tree, (None, None)]:
        if str(operation) == "LITERAL":
            current += chr(argument)
        else:
            longest, current = max(longest, current, key=len), ""
    return longest


def _is_anchored(tree: list[Any]) -> bool:
    if tree and str(tree[0][0]) == "BRANCH":
        return all(_is_anchored(list(branch)) for branch in tree[0][1][1])
    return bool(tree) and str(tree[0][0]) == "AT" and str(tree[0][1]).startswith("AT_BEGINNING")


def _sequence(items: Any, follow: int) -> _Ways:
    """Measure *items*, one behind the other, behind which the characters *follow* can stand."""
    degree, factor, runs = 0, 1, False
    for item in reversed(list(items)):
        ways = _item(item, follow)
        # A walk counts for each way that leads to it, and not for those that begin behind it: it is
        # outweighed by any repetition to its right that can be left at n places.
        runs = runs or (ways.runs and not degree)
        degree, factor = degree + ways.degree, factor * ways.factor
        mask, is_optional = _first(item)
        if mask & _END and follow:
            mask = _ALL  # what stands behind the end of the URL can only send all back
        follow = mask | (follow if is_optional else 0)
    return _Ways(degree, factor, runs)


def _item(item: Any, follow: int) -> _Ways:
    operation, argument = str(item[0]), item[1]
    if operation in _REPETITIONS:
        return _repetition(argument, follow)
    if operation in _CLOSED:
        # Never gone back into, but tried to its end.
        if operation == "ATOMIC_GROUP":
            _sequence(argument, 0)
        else:
            _repetition(argument, 0)
        return _Ways(runs=True)
    if operation == "SUBPATTERN":
        return _sequence(argument[3], follow)
    if operation in ("ASSERT", "ASSERT_NOT"):
        return _sequence(argument[1], 0)
    branches = _branches(operation, argument)
    return _alternatives(branches, follow) if branches else _Ways(runs=operation == "GROUPREF")


def _branches(operation: str, argument: Any) -> list[Any]:
    """Return the alternatives of an item; none for one that is no choice."""
    if operation == "BRANCH":
        return list(argument[1])
    if operation == "GROUPREF_EXISTS":
        return [branch or [] for branch in argument[1:]]
    return []


def _alternatives(branches: list[Any], follow: int) -> _Ways:
    measured = [_sequence(branch, follow) for branch in branches]
    overlap, seen = False, 0
    for branch in branches:
        mask = _first_of(branch, follow)
        overlap, seen = overlap or bool(mask & seen), seen | mask
    return _Ways(
        max((ways.degree for ways in measured), default=0),
        max((ways.factor for ways in measured), default=1) * (len(branches) if overlap else 1),
        any(ways.runs for ways in measured),
    )


def _repetition(argument: Any, follow: int) -> _Ways:
    least, most, body = int(argument[0]), int(argument[1]), argument[2]  # unbounded is beyond any count
    mask, is_optional = _sequence_first(body)
    inner = _sequence(body, mask | follow if most > 1 else follow)
    if most <= _FEW:
        options = most - least + 1 if mask & follow else 1
        rounds = max(most, 1)
        return _Ways(inner.degree * rounds, inner.factor**rounds * options, inner.runs)
    if is_optional or inner.degree or inner.factor > 1:
        raise _RefusedError("it repeats something that can itself match the same text in several ways")
    if most > least and mask & follow:
        # What the rounds walk over, they share between them.
        return _Ways(degree=1)
    return _Ways(runs=bool(follow) and not _is_rest(body, follow))


def _is_rest(body: Any, follow: int) -> bool:
    """Tell whether a repetition takes all that is left, whatever it is."""
    return follow == _END and len(body) == 1 and str(body[0][0]) == "ANY"


def _first_of(items: Any, follow: int) -> int:
    mask, is_optional = _sequence_first(items)
    return mask | follow if is_optional else mask


def _sequence_first(items: Any) -> tuple[int, bool]:
    """Return the characters that *items* can begin with, and whether they can match nothing."""
    mask = 0
    for item in items:
        first, is_optional = _first(item)
        mask |= first
        if not is_optional:
            return mask, False
    return mask, True


def _first(item: Any) -> tuple[int, bool]:
    operation, argument = str(item[0]), item[1]
    if operation in _REPETITIONS or operation == "POSSESSIVE_REPEAT":
        mask, is_optional = _sequence_first(argument[2])
        return mask, is_optional or argument[0] == 0
    if operation in ("SUBPATTERN", "ATOMIC_GROUP"):
        return _sequence_first(argument[3] if operation == "SUBPATTERN" else argument)
    if operation == "BRANCH":
        firsts = [_sequence_first(branch) for branch in argument[1]]
        return reduce(or_, (mask for mask, _ in firsts), 0), any(
            is_optional for _, is_optional in firsts
        )
    if operation in _ANYTHING:
        return _ALL, True
    if operation in ("AT", "ASSERT", "ASSERT_NOT"):
        is_end = operation == "AT" and str(argument) in ("AT_END", "AT_END_STRING")
        # What these let through is not known beforehand, and letting nothing through sends all back.
        return (_END, False) if is_end else (_ALL, True)
    return _characters(operation, argument), False


def _characters(name: str, argument: Any) -> int:
    """Return the ASCII characters of a class, a bit for each; both cases of a letter, for the flags."""
    if name == "LITERAL":
        return _bit(argument)
    if name == "NOT_LITERAL":
        return _ALL & ~(1 << argument) if argument < 128 else _ALL
    if name != "IN":
        return _ALL
    mask, negated = 0, False
    for kind, value in argument:
        if str(kind) == "NEGATE":
            negated = True
        elif str(kind) == "RANGE":
            for code in range(value[0], min(value[1], 127) + 1):
                mask |= 1 << code if negated else _bit(code)
        elif str(kind) == "CATEGORY":
            mask |= _category(str(value))
        else:
            mask |= (1 << value if value < 128 else 0) if negated else _bit(value)
    return _ALL & ~mask if negated else mask


def _bit(code: int) -> int:
    if code >= 128:
        return 0
    return 1 << ord(chr(code).lower()) | 1 << ord(chr(code).upper())


@cache
def _category(name: str) -> int:
    _, _, word = name.rpartition("_")
    pattern = re.compile(_CATEGORIES.get(word, r"[\s\S]"), re.ASCII)
    mask = sum(1 << code for code in range(128) if pattern.match(chr(code)))
    return _ALL & ~mask if "_NOT_" in name else mask
