"""What the soft-404 model looks at: words of title, headings and text, and how much there is. Pure.

A feature is a short text: `t:not found`, words of title and headings; `b:`, of these and the body; and
`n:`, `a:`, `u:`, `r:` for the amount of text, of links, words of the URL, and robots that are told to
keep out. Of scripts without blanks between words, pairs of characters count as words. Everything that is
looked at is bounded, and no expression goes back over what it has read.
"""

from __future__ import annotations

import re
from html import unescape
from itertools import islice, pairwise
from operator import add
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE_LIMIT = 32 << 10
"""Characters of a page that are looked at."""
_TITLE_LIMIT = 300
_BODY_LIMIT = 2000
_MOST_HEADINGS = 4

_HIDDEN = re.compile(
    r"<(script|style|noscript|template|svg)\b(?>.*?</\1\b|.*)|<!--(?>.*?-->|.*)|<title\b(?>.*?</title\b|.*)",
    re.DOTALL,
)
_TAG = re.compile(r"<[^>]*+>?")
_TITLE = re.compile(rf"<title\b[^>]{{0,300}}+>([^<]{{0,{_TITLE_LIMIT}}}+)")
_HEADING = re.compile(r"<h[12]\b[^>]{0,300}+>\s{0,300}+(?:<[^>]{0,300}+>\s{0,300}+){0,3}+([^<]{1,200}+)")
_NOINDEX = re.compile(r"<meta\b[^>]{0,300}?\bnoindex")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[^\W_]{1,40}+")
_PLAIN_WORD = re.compile(r"[^\W_]{1,40}+")
"""The same as `_WORD` where there are no ideographs, and faster."""
_PLAINER_WORD = re.compile(r"\w{1,40}+")
"""The same where there is no underscore either, and faster still."""
_LINE_END = "\n"
_PATH_WORD = re.compile(r"[a-z]+|[0-9]+")
_PATH_WORDS = frozenset({"404", "error", "err", "notfound", "missing", "gone", "index", "home"})
Pair = tuple[str, str]
"""Two words that stand side by side."""
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Features(NamedTuple):
    """What a page has, each thing once."""

    title: set[str]
    """Words, and pairs of neighbouring words, of title and headings."""
    body: set[str]
    """Words and pairs of title and body."""
    rest: set[str]
    """`n:`, `a:`, `u:` and `r:`."""

    def names(self) -> set[str]:
        """Return all of them in one, by the names that a model is written down with."""
        return {f"t:{each}" for each in self.title} | {f"b:{each}" for each in self.body} | self.rest


def features_of(page: str, url: str = "", *, of_pairs: frozenset[Pair] | None = None) -> Features:
    """Return the features of *page*, shown under *url*; of pairs of words, those that are *of_pairs*.

    A model knows few pairs, and those of a page are many; to make them all takes longer than all else.
    """
    page = page[:PAGE_LIMIT].lower()
    rest = set(_path(url))
    match = _TITLE.search(page)
    title = match[1] if match is not None else ""
    headings = [heading[1] for heading in islice(_HEADING.finditer(page), _MOST_HEADINGS)]
    if _NOINDEX.search(page[:4096]):
        rest.add("r:noindex")
    text = _TAG.sub(" ", _HIDDEN.sub(" ", page))
    body = _without_gaps(text[: 3 * _BODY_LIMIT])
    rest.add(f"n:{(len(text) - text.count(' ') - text.count(_LINE_END)).bit_length()}")
    rest.add(f"a:{page.count('<a ').bit_length()}")
    top = set[str]().union(*(_phrases(each, of_pairs) for each in (title, *headings)))
    return Features(top, _phrases(f"{title} {body[:_BODY_LIMIT]}", of_pairs), rest)


def _without_gaps(text: str) -> str:
    """Return *text* with single blanks; of a long one, enough of it."""
    body = " ".join(text[: _BODY_LIMIT * 5 // 4].split())
    # The last word may have been cut.
    return body if body.rfind(" ") >= _BODY_LIMIT else " ".join(text.split())


def _phrases(text: str, of_pairs: frozenset[Pair] | None) -> set[str]:
    """Return the words of *text* and the pairs of neighbours among them."""
    if "&" in text:
        text = unescape(text)
    if text.isascii() or not _IDEOGRAPHS.search(text):
        words = (_PLAIN_WORD if "_" in text else _PLAINER_WORD).findall(text)
    else:
        words = []
        for word in _WORD.findall(text):
            if word > "\u3040" and len(word) > 2 and _IDEOGRAPHS.match(word):
                words += map(add, word, word[1:])
            else:
                words.append(word)
    pairs = pairwise(words) if of_pairs is None else of_pairs.intersection(pairwise(words))
    return {*words, *map(" ".join, pairs)}


def _path(url: str) -> Iterable[str]:
    path = url[:2048].partition("://")[2].partition("/")[2].lower()
    return [f"u:{word}" for word in _PATH_WORD.findall(path) if word in _PATH_WORDS]
