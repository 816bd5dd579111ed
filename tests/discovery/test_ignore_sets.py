"""The shipped ignore sets do what their comments and examples say."""

from __future__ import annotations

import pytest

from amicrawl.discovery import IgnoreSet, set_names
from amicrawl.discovery.expression import Expression, searchable
from amicrawl.discovery.ignores import IgnoreEntry, entries_in, ignore_set
from amicrawl.errors import UsageError

ENTRIES = [
    pytest.param(entry, id=f"{name}-{number}")
    for name in set_names()
    for number, entry in enumerate(ignore_set(name), 1)
]

ORDINARY = [
    "https://example.org/",
    "https://example.org/index.html",
    "https://example.org/2019/05/17/a-day-in-the-archive/",
    "https://example.org/news/article-12345.html?page=2",
    "https://example.org/wp-content/uploads/2019/05/photo.jpg",
    "https://example.org/wiki/Main_Page",
    "https://example.org/w/index.php?title=Category:Cats&page=3",
    "https://example.org/forum/viewtopic.php?t=12&start=20",
    "https://example.org/feed/",
    "https://example.org/search?q=archive",
    "https://example.org/products/chair?color=red",
    "https://example.org/login",
    "https://example.org/calendar/",
    "https://example.org/events/2019/05/",
    "https://www.facebook.com/example",
    "https://example.org/sitemap.xml",
    "https://example.org/~ann/papers/thesis.pdf",
]


def test_there_are_sets_for_the_common_traps() -> None:
    assert {"global", "calendar", "session", "wordpress", "mediawiki", "forums"} <= set(set_names())


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_expression_has_a_comment_and_examples_that_are_true(entry: IgnoreEntry) -> None:
    assert entry.comment
    assert entry.ignored
    assert entry.kept
    compiled = Expression(entry.expression)
    assert compiled.engine == "re2" or "(?" in entry.expression
    assert [url for url in entry.ignored if not compiled.found_in(searchable(url))] == []
    assert [url for url in entry.kept if compiled.found_in(searchable(url))] == []


@pytest.mark.parametrize("url", ORDINARY)
def test_ordinary_pages_are_in_no_set(url: str) -> None:
    assert IgnoreSet.of_sets(*set_names()).match(url) is None


def test_no_expression_is_in_two_sets() -> None:
    written = [entry.expression for name in set_names() for entry in ignore_set(name)]
    assert len(written) == len(set(written))


def test_a_set_that_is_not_there_is_refused_by_the_names_of_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"no ignore set 'calender'; there are .*calendar"):
        IgnoreSet.of_sets("calender")


def test_a_heading_belongs_to_no_expression() -> None:
    text = (
        "# The heading.\n\n# Why.\n#+ http://a.example/x\n#- http://a.example/y\n/x\n\n# Why not.\n/z\n"
    )
    assert [tuple(entry) for entry in entries_in(text)] == [
        ("/x", "Why.", ("http://a.example/x",), ("http://a.example/y",)),
        ("/z", "Why not.", (), ()),
    ]
