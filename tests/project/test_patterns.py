"""Each pattern of the package finds the same with every Python that amicrawl runs on.

Python 3.11.0 to 3.11.4, and so that of Debian 12, may leave a possessive repetition of a group where its
last iteration failed, and not where that began (CPython's issue 106052).
"""

from __future__ import annotations

import re
from importlib import import_module
from itertools import dropwhile
from pkgutil import walk_packages
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

import pytest

import amicrawl

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE_CHARACTER = {
    *(_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN, _constants.AT),
}
REPEATED = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}


def is_one_character(group: Any) -> bool:
    return len(group) == 1 and group[0][0] in ONE_CHARACTER


def cannot_fail(item: Any) -> bool:
    what, given = item
    return what in REPEATED and given[0] == 0 and is_one_character(given[2])


def may_fail_in_its_middle(group: Any) -> bool:
    """Tell whether *group* may fail behind more than single characters, so that its place was noted."""
    if len(group) == 1 and group[0][0] is _constants.BRANCH:
        return any(map(may_fail_in_its_middle, group[0][1][1]))
    return not all(map(cannot_fail, dropwhile(lambda item: item[0] in ONE_CHARACTER, group)))


def possessive_groups(parsed: Any) -> Iterator[Any]:
    if isinstance(parsed, tuple) and parsed[0] is _constants.POSSESSIVE_REPEAT:
        group = parsed[1][2]
        if not is_one_character(group):
            yield group
    if isinstance(parsed, _parser.SubPattern | list | tuple):
        for each in parsed:
            yield from possessive_groups(each)


def depends_on_python(pattern: re.Pattern[Any]) -> bool:
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    return any(map(may_fail_in_its_middle, possessive_groups(parsed)))


def patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from patterns_in([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from patterns_in(each)


def patterns_of(module: str) -> Iterator[re.Pattern[Any]]:
    for value in list(vars(import_module(module)).values()):
        yield from patterns_in(list(vars(value).values()) if isinstance(value, type) else value)


def test_no_pattern_repeats_possessively_what_fails_in_its_middle() -> None:
    found = {
        pattern.pattern: module.name
        for module in walk_packages(amicrawl.__path__, "amicrawl.")
        if not module.name.endswith("__main__")
        for pattern in patterns_of(module.name)
    }
    assert len(found) > 300
    wrong = {pattern: name for pattern, name in found.items() if depends_on_python(re.compile(pattern))}
    assert not wrong, "write (?>(?:...)*) in place of (?:...)*+"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"(?:[a-z]|/(?!\.))*+", True),
        (r"x|(a(?:[a-z]++,){0,3}+)", True),
        (r"(?:a|(?:b)(?:cd?e)++)", True),
        (r"(?>(?:[a-z]++,)*)", False),
        (r"(?:[^\"]|\\.)*+", False),
        (r"(?:\([^)]*+\)?)*+[a-z]++", False),
    ],
)
def test_what_fails_in_its_middle_is_told_from_what_fails_at_once(pattern: str, expected: bool) -> None:
    assert depends_on_python(re.compile(pattern)) is expected
