"""The probability that a page with status 200 says that there is no such page.

A logistic regression over words: the weights of the features of a page are added up. The model is data
(`soft404.json`), made by `python -m benchmarks.soft404`; its precision and recall, measured on wordings
that it was not trained on, are in the file.

A feature is a short string: `t:not found`, words of title and headings; `b:`, of these and the body; and
`n:`, `a:`, `u:`, `r:` for the amount of text, of links, words of the URL, and `noindex`. In scripts
without spaces between words, pairs of characters count as words. All input is bounded, and no expression
backtracks.
"""

from __future__ import annotations

import json
import re
from html import unescape
from importlib.resources import files
from itertools import islice, pairwise
from math import exp, fsum
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.archive.index.sidecar.text import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amicrawl.archive.index.sidecar.findings import Charset
    from amicrawl.archive.index.sidecar.subject import Subject


_MOST = 30.0
_DIGITS = 6
_LEAST = 10.0**-_DIGITS


class Soft404Model:
    """Weights by feature."""

    def __init__(self, weights: Mapping[str, float], *, intercept: float, version: str) -> None:
        self._title = _kind(weights, "t:")
        self._body = _kind(weights, "b:")
        self._rest = {name: weight for name, weight in weights.items() if name[:2] not in ("t:", "b:")}
        pairs = [name.partition(" ") for name in (*self._title, *self._body)]
        self._pairs = frozenset((first, second) for first, blank, second in pairs if blank)
        self._intercept = intercept
        self.version = f"soft404 {version}"

    @classmethod
    def shipped(cls) -> Soft404Model:
        """Return the model that comes with the package."""
        text = (files("amicrawl.archive.index.sidecar") / "soft404.json").read_text("utf-8")
        model: dict[str, Any] = json.loads(text)
        return cls(model["weights"], intercept=model["intercept"], version=model["version"])

    def probability(self, subject: Subject, charset: Charset) -> float:
        """Return the probability for the page *subject*, above 0 and below 1, to six digits."""
        page = read(subject.content[:_BYTES], charset)
        return self.of_page(page, subject.url)

    def of_page(self, page: str, url: str) -> float:
        """Return the probability for *page*, shown under *url*."""
        features = features_of(page, url, of_pairs=self._pairs)
        met = [
            weights[each]
            for found, weights in (
                (features.title, self._title),
                (features.body, self._body),
                (features.rest, self._rest),
            )
            for each in found
            if each in weights
        ]
        # Exact, so that the order in which a set is walked does not show in the last digit.
        total = self._intercept + fsum(met)
        chance = 1 / (1 + exp(-max(-_MOST, min(_MOST, total))))
        return min(max(round(chance, _DIGITS), _LEAST), 1 - _LEAST)


def _kind(weights: Mapping[str, float], prefix: str) -> dict[str, float]:
    return {name[len(prefix) :]: weight for name, weight in weights.items() if name.startswith(prefix)}


PAGE_LIMIT = 32 << 10
"""Characters of a page that are looked at."""
_BYTES = 4 * PAGE_LIMIT
_TITLE_LIMIT = 300
_BODY_LIMIT = 2000
_MOST_HEADINGS = 4

_HIDDEN = re.compile(
    r"<(script|style|noscript|template|svg)\b(?>.*?</\1\b|.*)|<!--(?>.*?-->|.*)|<title\b(?>.*?</title\b|.*)",
    re.DOTALL,
)
_TAG = re.compile(r"<[^>]*+>?")
_TITLE = re.compile(rf"<title\b[^>]{{0,300}}+>([^<]{{0,{_TITLE_LIMIT}}}+)")
_HEADING = re.compile(
    r"<h[12]\b[^>]{0,300}+>\s{0,300}+(?>(?:<[^>]{0,300}+>\s{0,300}+){0,3})([^<]{1,200}+)"
)
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
